package io.sparklog.feed;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import java.lang.ref.SoftReference;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.WeakHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The newest states of topics, as the readers of this process have seen them. Readers that wait at the same time share a refresh. For
 * several threads at once.
 */
final class CommitFeed {
  /** After so long, a place that does not watch a topic is asked again: each time takes calls of the file system. */
  private static final long REFUSED_MS = 10_000;

  private static final Map<ReadableTopics, SoftReference<CommitFeed>> OPEN = new WeakHashMap<>();

  final ReadableTopics topics;
  final Clock clock;
  private final Map<String, TopicFeed> known = new ConcurrentHashMap<>();

  /** The order of refreshes and of calls: a refresh answers the calls that began before it. */
  private final AtomicLong order = new AtomicLong();

  /** Is told of commits to a topic, and must not block. */
  interface CommitListener {
    /** The topic has changed. */
    void changed();

    /** A refresh may find a change. */
    void mayHaveChanged();
  }

  /** The knowledge of one topic. This object guards its fields. */
  final class TopicFeed {
    final String name;

    final CopyOnWriteArraySet<CommitListener> listeners = new CopyOnWriteArraySet<>();

    /** The watch does not keep it alive. */
    private final Runnable appeared = this::appeared;
    private boolean isWatched;
    private long refusedMs = -REFUSED_MS;

    /** The answer of the last refresh, where it began, and whether this process has committed nothing since. */
    private Optional<State> seen = Optional.empty();
    private boolean isSeen;
    private long seenOrder;
    private long seenMs;
    private long changedMs;
    private long commits;

    /** Counts the commits of this process, and the files that appeared. */
    private long events;

    /** A refresh that a thread makes at this moment; null if no thread does. */
    private CompletableFuture<Optional<State>> refresh;
    private long refreshOrder;

    TopicFeed(String name) {
      this.name = name;
      changedMs = clock.millis();
    }

    /** This process has committed. */
    private void committed() {
      synchronized (this) {
        commits++;
        events++;
        isSeen = false;
        changedMs = clock.millis();
      }
      listeners.forEach(CommitListener::changed);
    }

    /** A file has appeared in the folder of the topic. */
    private void appeared() {
      synchronized (this) {
        events++;
      }
      listeners.forEach(CommitListener::mayHaveChanged);
    }

    synchronized long events() {
      return events;
    }

    /** Watches the topic if its place can: from now on, listeners are told of the commits of other processes too. */
    synchronized boolean watch() {
      long nowMs = clock.millis();
      if (!isWatched && Math.abs(nowMs - refusedMs) >= REFUSED_MS) {
        isWatched = topics.watch(name, appeared);
        refusedMs = isWatched ? refusedMs : nowMs;
      }
      return isWatched;
    }

    /** Whether the topic is not known to exist, and has no listener. Clients may ask for any name. */
    synchronized boolean isIdle() {
      return listeners.isEmpty() && seen.isEmpty();
    }

    synchronized long pauseMs(Rhythm rhythm) {
      return rhythm.pauseMs(clock.millis() - changedMs);
    }

    /** @return whether the answer differs from the one before */
    private boolean record(Optional<State> newest, long began, long nowMs, long commitsBefore) {
      if (commitsBefore != commits || isBefore(newest, seen)) {
        return false; // It may be older than a commit, or a refresh, that came meanwhile.
      }
      boolean changed = !isSeen || !isSame(newest, seen);
      isWatched &= isSameTopic(newest, seen); // The folder of another topic is another one.
      changedMs = changed ? nowMs : changedMs;
      seen = newest;
      seenMs = nowMs;
      seenOrder = began;
      isSeen = true;
      return changed;
    }
  }

  private static boolean isSameTopic(Optional<State> one, Optional<State> other) {
    return one.map(State::topicId).equals(other.map(State::topicId));
  }

  private static boolean isBefore(Optional<State> one, Optional<State> other) {
    return one.isPresent() && isSameTopic(one, other) && one.get().version() < other.get().version();
  }

  private static boolean isSame(Optional<State> one, Optional<State> other) {
    return isSameTopic(one, other) && one.map(State::version).equals(other.map(State::version));
  }

  /** A feed of its own. */
  CommitFeed(ReadableTopics topics, Clock clock) {
    this.topics = topics;
    this.clock = clock;
  }

  /** The feed that the readers of this process share. */
  static CommitFeed of(ReadableTopics topics) {
    synchronized (OPEN) {
      SoftReference<CommitFeed> kept = OPEN.get(topics);
      CommitFeed feed = kept == null ? null : kept.get();
      if (feed == null) {
        feed = new CommitFeed(topics, Clock.systemUTC());
        OPEN.put(topics, new SoftReference<>(feed));
      }
      return feed;
    }
  }

  TopicFeed topic(String name) {
    return known.computeIfAbsent(name, TopicFeed::new);
  }

  /** Tells a listener of the commits to a topic, until {@link #leave}. */
  TopicFeed listen(String name, CommitListener listener) {
    return known.compute(name, (same, found) -> {
      TopicFeed topic = found == null ? new TopicFeed(name) : found;
      topic.listeners.add(listener);
      return topic;
    });
  }

  void leave(TopicFeed topic, CommitListener listener) {
    known.computeIfPresent(topic.name, (name, found) -> {
      topic.listeners.remove(listener);
      return found == topic && topic.isIdle() ? null : found;
    });
  }

  private void forget(TopicFeed topic) {
    known.computeIfPresent(topic.name, (name, found) -> found == topic && topic.isIdle() ? null : found);
  }

  /** This process has committed to a topic. */
  void committed(String name) {
    TopicFeed topic = known.get(name);
    if (topic != null) {
      topic.committed();
    }
  }

  /** The newest state of a topic, by a refresh now; empty if it does not exist. */
  Optional<State> newest(String name) {
    return Optional.ofNullable(newest(List.of(name), now()).get(name));
  }

  /** The newest state of a topic. Where each refresh takes requests, the answer may be as old as a pause, but for the commits of this
   * process. */
  Optional<State> recent(String name, Rhythm rhythm) {
    TopicFeed topic = topic(name);
    synchronized (topic) {
      if (topics.isRemote() && topic.isSeen && clock.millis() - topic.seenMs < topic.pauseMs(rhythm)) {
        return topic.seen;
      }
    }
    return newest(name);
  }

  /** When the last refresh of a topic began that has an answer, in ms since 1970. */
  private long seenMs(String name) {
    TopicFeed topic = topic(name);
    synchronized (topic) {
      return topic.seenMs;
    }
  }

  /** When the oldest of the last refreshes of some topics began, in ms since 1970; {@code Long.MAX_VALUE} without topics. */
  long seenMs(Collection<String> names) {
    return names.stream().mapToLong(this::seenMs).min().orElse(Long.MAX_VALUE);
  }

  /** How many topics are known, or waited for. */
  int size() {
    return known.size();
  }

  /** Later than all refreshes that have begun, and earlier than all that will. */
  long now() {
    return order.incrementAndGet();
  }

  /**
   * The newest states of the topics that exist among {@code names}, by name.
   *
   * @param since the refreshes of other threads that began later will do
   */
  Map<String, State> newest(Collection<String> names, long since) {
    Map<String, State> states = new HashMap<>();
    Map<TopicFeed, CompletableFuture<Optional<State>>> others = new LinkedHashMap<>();
    List<TopicRefresh> own = new ArrayList<>();
    for (String name : names) {
      TopicFeed topic = topic(name);
      synchronized (topic) {
        if (topic.isSeen && topic.seenOrder > since) {
          topic.seen.ifPresent(state -> states.put(name, state));
        } else if (topic.refresh != null && topic.refreshOrder > since) {
          others.put(topic, topic.refresh);
        } else {
          own.add(new TopicRefresh(topic));
        }
      }
    }
    refresh(own, states);
    others.forEach((topic, refresh) -> joined(topic, refresh).ifPresent(state -> states.put(topic.name, state)));
    return states;
  }

  /**
   * The answer of another thread's refresh. The refresh may fail for that thread alone, such as by an interrupt, or for another topic. Then
   * this thread refreshes.
   */
  private Optional<State> joined(TopicFeed topic, CompletableFuture<Optional<State>> refresh) {
    try {
      return refresh.join();
    } catch (CompletionException e) {
      return newest(topic.name);
    }
  }

  private void refresh(List<TopicRefresh> refreshes, Map<String, State> states) {
    if (refreshes.isEmpty()) {
      return;
    }
    try {
      Map<String, State> found = new HashMap<>();
      if (refreshes.size() == 1) {
        String name = refreshes.get(0).topic.name;
        topics.newest(name).ifPresent(state -> found.put(name, state));
      } else {
        found.putAll(topics.newest(refreshes.stream().map(refresh -> refresh.topic.name).toList()));
      }
      states.putAll(found);
      refreshes.forEach(refresh -> refresh.end(Optional.ofNullable(found.get(refresh.topic.name))));
    } catch (RuntimeException | Error e) {
      refreshes.forEach(refresh -> refresh.fail(e));
      throw e;
    }
  }

  /** A refresh of a topic by this thread, from its begin on. Made by a thread that holds the topic. */
  private final class TopicRefresh {
    private final TopicFeed topic;
    private final CompletableFuture<Optional<State>> answer = new CompletableFuture<>();
    private final long began = now();
    private final long nowMs = clock.millis();
    private final long commits;

    TopicRefresh(TopicFeed topic) {
      this.topic = topic;
      commits = topic.commits;
      topic.refresh = answer;
      topic.refreshOrder = began;
    }

    void end(Optional<State> newest) {
      boolean changed;
      synchronized (topic) {
        changed = topic.record(newest, began, nowMs, commits);
        topic.refresh = topic.refresh == answer ? null : topic.refresh;
      }
      answer.complete(newest);
      if (newest.isEmpty()) {
        forget(topic);
      }
      if (changed) {
        topic.listeners.forEach(CommitListener::changed);
      }
    }

    void fail(Throwable e) {
      synchronized (topic) {
        topic.refresh = topic.refresh == answer ? null : topic.refresh;
      }
      answer.completeExceptionally(e);
    }
  }
}
