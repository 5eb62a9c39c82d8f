package io.sparklog.feed;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import java.time.Clock;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** Wakes requests that wait for records. While requests wait for a topic, refreshes of the topic find the commits of other processes. */
public final class CommitWaits implements AutoCloseable {
  private final CommitFeed feed;
  private final Executor work;
  private final ScheduledThreadPoolExecutor timer;
  private final Map<String, Waited> waited = new ConcurrentHashMap<>();

  /** A topic that requests wait for. This object guards its timer. */
  private final class Waited implements CommitFeed.CommitListener {
    private final CommitFeed.TopicFeed topic;
    private final Set<Wait> waits = ConcurrentHashMap.newKeySet();
    private Future<?> refresh;
    private boolean isOver;

    Waited(String name) {
      topic = feed.listen(name, this);
    }

    @Override
    public void changed() {
      waits.forEach(wait -> execute(wait::ask));
    }

    @Override
    public void mayHaveChanged() {
      execute(this::refresh);
    }

    private void refresh() {
      try {
        feed.newest(topic.name);
      } catch (RuntimeException e) {
        changed(); // The requests meet the fault themselves, and report it.
      }
    }

    synchronized void refreshLater() {
      if (refresh == null && !isOver) {
        try {
          refresh = timer.schedule(() -> execute(this::refreshNow), topic.pauseMs(rhythm(topic)), TimeUnit.MILLISECONDS);
        } catch (RejectedExecutionException closed) {
          // No refresh is needed.
        }
      }
    }

    private void refreshNow() {
      try {
        refresh();
      } finally {
        synchronized (this) {
          refresh = null;
        }
        refreshLater();
      }
    }

    synchronized void end() {
      isOver = true;
      feed.leave(topic, this);
      if (refresh != null) {
        refresh.cancel(false);
      }
    }
  }

  /** A wait of one request. */
  private final class Wait extends CompletableFuture<Boolean> {
    private final BooleanSupplier enough;

    Wait(BooleanSupplier enough) {
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
   * @param work runs refreshes and questions, which may block
   */
  public CommitWaits(ReadableTopics topics, Executor work, Clock clock) {
    this.feed = new CommitFeed(topics, clock);
    this.work = work;
    this.timer = new ScheduledThreadPoolExecutor(1, task -> {
      Thread thread = new Thread(task, "server-waits");
      thread.setDaemon(true);
      return thread;
    });
    timer.setRemoveOnCancelPolicy(true);
  }

  private Rhythm rhythm(CommitFeed.TopicFeed topic) {
    return feed.topics.isRemote() ? Rhythm.SERVER_REMOTE : topic.watch() ? Rhythm.SERVER_WATCHED : Rhythm.SERVER;
  }

  /** This process has committed to a topic: the requests that wait for it are asked again. */
  public void committed(String topic) {
    feed.committed(topic);
  }

  /**
   * The newest state of a topic; empty if it does not exist. Where each refresh takes requests, the answer may be as old as the pause
   * between two refreshes, but for the commits of this process.
   */
  public Optional<State> recent(String topic) {
    return feed.recent(topic, Rhythm.SERVER_REMOTE);
  }

  /** The newest state of a topic, by a refresh now; empty if it does not exist. */
  public Optional<State> newest(String topic) {
    return feed.newest(topic);
  }

  /**
   * Waits until there is enough, or for {@code ms}. The caller may cancel the wait.
   *
   * @param names of the topics whose commits matter
   * @param enough is asked now, and after each change of a topic, on a thread that may block. Its exception ends the wait
   * @return whether there was enough
   */
  public CompletableFuture<Boolean> await(Set<String> names, BooleanSupplier enough, long ms) {
    Wait wait = new Wait(enough);
    // In this order: a commit between the question and the wait would be missed.
    names.forEach(name -> waited.compute(name, (same, found) -> {
      Waited topic = found == null ? new Waited(name) : found;
      topic.waits.add(wait);
      topic.refreshLater();
      return topic;
    }));
    wait.ask();
    if (!wait.isDone()) {
      try {
        Future<?> timeout = timer.schedule(() -> wait.complete(false), ms, TimeUnit.MILLISECONDS);
        wait.whenComplete((done, failure) -> timeout.cancel(false));
      } catch (RejectedExecutionException closed) {
        wait.complete(false);
      }
    }
    wait.whenComplete((done, failure) -> names.forEach(name -> end(name, wait)));
    return wait;
  }

  private void end(String name, Wait wait) {
    waited.computeIfPresent(name, (same, topic) -> {
      topic.waits.remove(wait);
      if (topic.waits.isEmpty()) {
        topic.end();
        return null;
      }
      return topic;
    });
  }

  private void execute(Runnable task) {
    try {
      work.execute(task);
    } catch (RejectedExecutionException closed) {
      // The server is closed.
    }
  }

  /** How many requests wait for a topic. */
  public int waiting(String topic) {
    Waited found = waited.get(topic);
    return found == null ? 0 : found.waits.size();
  }

  /** How many topics are remembered. */
  int topics() {
    return feed.size();
  }

  /** Runs a task from time to time. */
  public void repeat(Runnable task, long everyMs) {
    timer.scheduleWithFixedDelay(() -> execute(task), everyMs, everyMs, TimeUnit.MILLISECONDS);
  }

  /** Ends all waits. */
  @Override
  public void close() {
    timer.shutdownNow();
    waited.values().forEach(topic -> topic.waits.forEach(wait -> wait.complete(false)));
  }
}
