package io.sparklog.log;

import io.sparklog.segment.Segment;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The memory of a process about a topic beyond its state, to tidy it with less work. If it is lost, tidying takes more work.
 *
 * <p>The run of {@link UpkeepQueue} that is at work has it alone, so that each run goes on where the run before it ended.
 */
public final class UpkeepHints {
  private final String topicId;
  private State view;
  private final Removals removals = new Removals();
  private volatile Cleaned cleaned = new Cleaned(0, 0);
  private long filesFrom;
  private final Set<Segment> damaged = ConcurrentHashMap.newKeySet();

  /** @param keepMs {@code versions.keep.ms} of then: a version that was old need not be old with a longer time */
  private record Cleaned(long version, long keepMs) {}

  UpkeepHints(String topicId) {
    this.topicId = topicId;
  }

  boolean areOf(String id) {
    return id.equals(topicId);
  }

  /** The state for which the Kafka view is known to be right, or null. */
  public State view() {
    return view;
  }

  /** The view is right as of {@code state}, which may be null. */
  public void view(State state) {
    view = state;
  }

  /** The files of the topic that wait for their deletion. */
  public Removals removals() {
    return removals;
  }

  /**
   * An old version with a whole checkpoint at or above it, below which all that versions removed is deleted; 0 if none is known.
   *
   * @param state to be extended
   */
  public long cleanedTo(State state) {
    Cleaned now = cleaned;
    return state.config().versionsKeepMs() <= now.keepMs ? now.version : 0;
  }

  /** @param state by whose configuration the version is old */
  public void cleaned(State state, long version) {
    cleaned = new Cleaned(Math.max(cleanedTo(state), version), state.config().versionsKeepMs());
  }

  /** Version files below it are deleted; 0 if that is not known. */
  public long filesFrom() {
    return filesFrom;
  }

  public void filesFrom(long version) {
    filesFrom = version;
  }

  /** Segments that were found to be damaged: this process need not read them again to learn that they cannot be merged. */
  public Set<Segment> damaged() {
    return damaged;
  }
}
