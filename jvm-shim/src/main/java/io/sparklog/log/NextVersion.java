package io.sparklog.log;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The next version of a topic in the making: it says what the state before it says, except for what is set here. FORMAT.md section 5. */
public final class NextVersion {
  private final String topic;
  private final String topicId;
  private final long number;
  private final String previous;
  private final String operation;
  private final long horizon;
  private final long boundary;
  private final Map<String, String> config;
  private final long[] starts;
  private final long[] ends;
  private final List<Segment> added = new ArrayList<>();
  private Query query;

  /**
   * The version after {@code newest}.
   *
   * @param operation what it does, in one word for people, as {@code write}
   */
  public NextVersion(State newest, String operation) {
    topic = newest.topic();
    topicId = newest.topicId();
    number = newest.version() + 1;
    previous = newest.hash();
    this.operation = operation;
    horizon = newest.horizon();
    boundary = newest.boundary();
    config = Map.of();
    starts = newest.starts();
    ends = newest.ends();
  }

  /** Version 0, which creates the topic. */
  public NextVersion(String topic, String topicId, TopicConfig config, String operation) {
    this.topic = topic;
    this.topicId = topicId;
    number = 0;
    previous = null;
    this.operation = operation;
    horizon = 0;
    boundary = 0;
    this.config = config.entries();
    starts = new long[config.partitions()];
    ends = new long[config.partitions()];
  }

  /** Notes what this version applies. @param query may be null */
  public NextVersion apply(Query query) {
    this.query = query;
    return this;
  }

  /** Adds a segment at the end of its partition. */
  public void append(Segment segment) {
    Segment placed = segment.at(ends[segment.partition()]);
    ends[segment.partition()] = placed.end();
    added.add(placed);
  }

  /** The finished version. @param timeMs when it is written, ms since 1970 */
  Version version(String txn, long timeMs) {
    return new Version(topic, topicId, number, txn, previous, timeMs, operation, query, horizon, boundary, config, starts, ends, List.of(),
        added);
  }
}
