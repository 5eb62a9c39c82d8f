package io.sparklog.feed;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import java.time.Clock;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * A thread that reads topics on and on, such as a streaming query. Spark would have an idle query refresh up to a hundred times a second,
 * and each refresh costs money where it is a request. For one thread.
 */
public final class CommitReader {
  private final CommitFeed feed;
  private final Clock clock;
  private final Waiting waiting;
  private long mostMs;
  private long busyMs;
  private long refreshedMs;

  /** Where the present call began, or the last event in it: only a refresh after it has all commits of before. */
  private volatile long began;

  /** When the refresh of another thread began whose answer this thread has; greater than the time now without such a refresh. */
  private long sharedMs = Long.MAX_VALUE;

  /** The topics of the last refresh, and what their listeners had been told before it. */
  private final Map<String, Long> events = new HashMap<>();

  /** Waits. */
  interface Waiting {
    /** For {@code ms} at most; less after a release of {@code told}. */
    void await(Semaphore told, long ms) throws InterruptedException;
  }

  /** @param mostMs the longest wait, in ms; 0 for no waits */
  public CommitReader(ReadableTopics topics, long mostMs, Clock clock) {
    this(CommitFeed.of(topics), mostMs, clock, (told, ms) -> told.tryAcquire(ms, TimeUnit.MILLISECONDS));
  }

  CommitReader(CommitFeed feed, long mostMs, Clock clock, Waiting waiting) {
    this.feed = feed;
    this.clock = clock;
    this.waiting = waiting;
    this.mostMs = feed.topics.isRemote() ? mostMs : Math.min(mostMs, Rhythm.QUERY_WATCHED.mostMs());
    busy();
    refreshedMs = busyMs;
    began = feed.now();
  }

  /**
   * Waits until the thread refreshes again: for a tenth of the time since it last found something, within the limit of the place, and no
   * longer than until a commit is seen. An interrupt ends the wait, and stays.
   */
  public void await() {
    began = feed.now();
    long most = feed.topics.isRemote() || isWatched() ? mostMs : 0;
    // A clock that was set back must not add to it.
    long ms = Math.min(most, new Rhythm(0, most).pauseMs(refreshedMs - busyMs) - (clock.millis() - refreshedMs));
    if (ms > 0) {
      try {
        awaitEvent(ms);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private boolean isWatched() {
    return !events.isEmpty() && events.keySet().stream().allMatch(name -> feed.topic(name).watch());
  }

  private void awaitEvent(long ms) throws InterruptedException {
    Semaphore told = new Semaphore(0);
    CommitFeed.CommitListener listener = new CommitFeed.CommitListener() {
      @Override
      public void changed() {
        told.release();
      }

      @Override
      public void mayHaveChanged() {
        began = feed.now(); // A refresh of before may have missed it.
        told.release();
      }
    };
    List<CommitFeed.TopicFeed> topics = events.keySet().stream().map(name -> feed.listen(name, listener)).toList();
    try {
      if (topics.stream().allMatch(topic -> topic.events() == events.get(topic.name))) {
        waiting.await(told, ms);
      } else {
        began = feed.now();
      }
    } finally {
      topics.forEach(topic -> feed.leave(topic, listener));
    }
  }

  /**
   * The newest states of the topics that exist among {@code names}, by name: at least as new as the begin of the last {@link #await}, or of
   * this call if it is not the first since.
   */
  public Map<String, State> newest(Collection<String> names) {
    events.clear();
    names.forEach(name -> events.put(name, feed.topic(name).events()));
    long nowMs = clock.millis();
    try {
      Map<String, State> states = feed.newest(names, began);
      long seenMs = feed.seenMs(names);
      sharedMs = seenMs < nowMs ? seenMs : Long.MAX_VALUE;
      return states;
    } finally {
      began = feed.now();
    }
  }

  /** The thread has refreshed, or has the answer of another's refresh. @param isNew whether it found something to read */
  public void refreshed(boolean isNew) {
    // The pause counts from the refresh: so readers that share a refresh make their next refresh together.
    refreshedMs = Math.min(clock.millis(), Math.max(sharedMs, busyMs));
    if (isNew) {
      busyMs = refreshedMs;
    }
  }

  /**
   * The query has run a micro-batch, maybe with records of another source alone. A wait of this source would delay the next micro-batch of
   * that other source.
   */
  public void busy() {
    busyMs = clock.millis();
  }

  /** From now on, the thread does not wait. */
  public void end() {
    mostMs = 0;
  }
}
