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
  private volatile long cleanedTo;
  private long filesFrom;
  private final Set<Segment> damaged = ConcurrentHashMap.newKeySet();

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

  /** All that versions below it removed is deleted, and a checkpoint at or above it was read whole; 0 if that is not known. */
  public long cleanedTo() {
    return cleanedTo;
  }

  public void cleaned(long version) {
    cleanedTo = Math.max(cleanedTo, version);
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
