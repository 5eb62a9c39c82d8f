package io.sparklog.serve.records.fetch;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import java.time.Clock;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * Wakes requests that wait for records. A commit of this process wakes them at once. The commits of other processes are found by looks at
 * the topics that somebody waits for: often after a commit, and less often after a silence.
 */
public final class Commits implements AutoCloseable {
  /** The pause between two looks at a topic is this share of the time since its last commit … */
  private static final int SHARE = 10;

  /** … within these limits: on a disk, and where each look takes requests. */
  private static final Rhythm LOCAL = new Rhythm(20, 50);
  private static final Rhythm REMOTE = new Rhythm(500, 5_000);

  private record Rhythm(long leastMs, long mostMs) {}

  private final ReadableTopics topics;
  private final Executor work;
  private final Clock clock;
  private final Rhythm limits;
  private final ScheduledThreadPoolExecutor timer;
  private final Map<String, Watched> watched = new ConcurrentHashMap<>();

  /** A topic that somebody waits for, or has waited for. This object guards its fields. */
  private static final class Watched {
    final Set<Wait> waits = new LinkedHashSet<>();
    Optional<State> seen = Optional.empty();
    boolean isSeen;
    long seenMs;
    long changedMs;

    /** The number of commits of this process. */
    long made;
    boolean isLooking;

    Watched(long nowMs) {
      changedMs = nowMs;
    }
  }

  /** A wait of one request. */
  private final class Wait extends CompletableFuture<Boolean> {
    private final Set<String> names;
    private final BooleanSupplier enough;

    /** Where the wait is registered. */
    private final Set<Watched> watches = ConcurrentHashMap.newKeySet();
    private volatile ScheduledFuture<?> timeout;

    Wait(Collection<String> names, BooleanSupplier enough) {
      this.names = Set.copyOf(names);
      this.enough = enough;
    }

    /** Asks whether there is enough. By one thread at a time. */
    private synchronized void ask() {
      try {
        if (!isDone() && enough.getAsBoolean()) {
          complete(true);
        }
      } catch (RuntimeException | Error e) {
        completeExceptionally(e);
      }
    }
  }

  /**
   * Watches topics.
   *
   * @param work runs looks and questions, which may block
   */
  public Commits(ReadableTopics topics, Executor work, Clock clock) {
    this.topics = topics;
    this.work = work;
    this.clock = clock;
    this.limits = topics.isRemote() ? REMOTE : LOCAL;
    this.timer = new ScheduledThreadPoolExecutor(1, task -> {
      Thread thread = new Thread(task, "server-waits");
      thread.setDaemon(true);
      return thread;
    });
    timer.setRemoveOnCancelPolicy(true);
  }

  /** This process has committed to a topic: the requests that wait for it are asked again. */
  public void made(String topic) {
    Watched watch = watched.get(topic);
    if (watch != null) {
      synchronized (watch) {
        watch.made++;
        watch.isSeen = false;
        watch.changedMs = clock.millis();
      }
      wake(watch);
    }
  }

  /**
   * The newest state of a topic; empty if it does not exist. Where each look takes requests, the answer may be as old as the pause between
   * two looks, but for the commits of this process.
   */
  public Optional<State> recent(String topic) {
    Watched watch = watch(topic);
    synchronized (watch) {
      if (topics.isRemote() && watch.isSeen && clock.millis() - watch.seenMs < pauseMs(watch)) {
        return watch.seen;
      }
    }
    return look(topic, watch);
  }

  /** The newest state of a topic, by a look now; empty if it does not exist. */
  public Optional<State> newest(String topic) {
    return look(topic, watch(topic));
  }

  /**
   * Waits until there is enough, or for {@code ms}. The caller may cancel the wait.
   *
   * @param names of the topics whose commits matter
   * @param enough is asked now, and after each change of a topic, on a thread that may block. Its exception ends the wait
   * @return whether there was enough
   */
  public CompletableFuture<Boolean> await(Collection<String> names, BooleanSupplier enough, long ms) {
    Wait wait = new Wait(names, enough);
    wait.whenComplete((done, failure) -> end(wait));
    // In this order: a commit between the question and the wait would be missed.
    wait.names.forEach(name -> register(wait, name));
    wait.ask();
    if (!wait.isDone()) {
      try {
        wait.timeout = timer.schedule(() -> wait.complete(false), ms, TimeUnit.MILLISECONDS);
      } catch (RejectedExecutionException closed) {
        wait.complete(false);
      }
    }
    if (wait.isDone()) {
      end(wait); // It may have ended before it was registered with each topic, or before it had a timeout.
    }
    return wait;
  }

  private void register(Wait wait, String name) {
    while (true) {
      Watched watch = watch(name);
      synchronized (watch) {
        if (watched.get(name) == watch) { // Otherwise a look has just forgotten this object, and no commit would wake the wait.
          watch.waits.add(wait);
          wait.watches.add(watch);
          lookLater(name, watch);
          return;
        }
      }
    }
  }

  private void end(Wait wait) {
    for (Watched watch : wait.watches) {
      synchronized (watch) {
        watch.waits.remove(wait);
      }
    }
    ScheduledFuture<?> timeout = wait.timeout;
    if (timeout != null) {
      timeout.cancel(false);
    }
  }

  private Watched watch(String topic) {
    return watched.computeIfAbsent(topic, name -> new Watched(clock.millis()));
  }

  private void lookLater(String topic, Watched watch) {
    if (!watch.isLooking && !watch.waits.isEmpty()) {
      try {
        timer.schedule(() -> lookNow(topic, watch), pauseMs(watch), TimeUnit.MILLISECONDS);
        watch.isLooking = true;
      } catch (RejectedExecutionException closed) {
        // No look is needed.
      }
    }
  }

  private long pauseMs(Watched watch) {
    return Math.max(limits.leastMs, Math.min(limits.mostMs, (clock.millis() - watch.changedMs) / SHARE));
  }

  /** On the timer's thread, which must not block. */
  private void lookNow(String topic, Watched watch) {
    try {
      work.execute(() -> {
        try {
          look(topic, watch);
        } catch (RuntimeException e) {
          wake(watch); // The requests meet the fault themselves, and report it.
        } finally {
          synchronized (watch) {
            watch.isLooking = false;
            lookLater(topic, watch);
          }
        }
      });
    } catch (RejectedExecutionException closed) {
      // The server is closed.
    }
  }

  /** Looks at a topic, and wakes its waits if there is something new. */
  private Optional<State> look(String topic, Watched watch) {
    long nowMs = clock.millis();
    long made;
    synchronized (watch) {
      made = watch.made;
    }
    Optional<State> newest = topics.newest(topic);
    boolean changed;
    synchronized (watch) {
      if (made != watch.made || isBefore(newest, watch.seen)) {
        return newest; // It may be older than a commit, or a look, that came meanwhile.
      }
      changed = !watch.isSeen || !isSame(newest, watch.seen);
      watch.changedMs = changed ? nowMs : watch.changedMs;
      watch.seen = newest;
      watch.seenMs = nowMs;
      watch.isSeen = true;
      if (newest.isEmpty() && watch.waits.isEmpty()) {
        watched.remove(topic, watch); // Clients may ask for any name.
      }
    }
    if (changed) {
      wake(watch);
    }
    return newest;
  }

  private static boolean isBefore(Optional<State> one, Optional<State> other) {
    return one.isPresent() && other.isPresent() && one.get().topicId().equals(other.get().topicId())
        && one.get().version() < other.get().version();
  }

  private static boolean isSame(Optional<State> one, Optional<State> other) {
    return one.isPresent() == other.isPresent()
        && (one.isEmpty() || one.get().version() == other.get().version() && one.get().topicId().equals(other.get().topicId()));
  }

  private void wake(Watched watch) {
    List<Wait> woken;
    synchronized (watch) {
      woken = List.copyOf(watch.waits);
    }
    woken.forEach(wait -> work.execute(wait::ask));
  }

  /** How many requests wait for a topic. */
  int waiting(String topic) {
    Watched watch = watch(topic);
    synchronized (watch) {
      return watch.waits.size();
    }
  }

  /** Runs a task from time to time. */
  void repeat(Runnable task, long everyMs) {
    timer.scheduleWithFixedDelay(() -> work.execute(task), everyMs, everyMs, TimeUnit.MILLISECONDS);
  }

  /** Ends all waits. */
  @Override
  public void close() {
    timer.shutdownNow();
    for (Watched watch : watched.values()) {
      List<Wait> ended;
      synchronized (watch) {
        ended = List.copyOf(watch.waits);
      }
      ended.forEach(wait -> wait.complete(false));
    }
  }
}
