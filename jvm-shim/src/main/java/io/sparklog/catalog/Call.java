package io.sparklog.catalog;

import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.PartlogException;
import java.util.Collections;
import java.util.SortedMap;

/**
 * One call of a procedure, for one topic; or for a root, whose location is in the place of the topic then.
 *
 * @param seen the state of the topic when the call began; null if it was not looked at
 * @param answer takes the rows
 */
record Call(Root root, String topic, State seen, Arguments arguments, Answer answer) {
  TopicLog log() {
    return root.topic(topic);
  }

  /** A state for a look: the newest one when the call began or later. @throws PartlogException TOPIC_NOT_FOUND */
  State shown() {
    return seen == null ? state() : seen;
  }

  /** The newest state. @throws PartlogException TOPIC_NOT_FOUND */
  State state() {
    return root.state(topic);
  }

  /** The newest state, for a procedure that changes it, also in a dry run. @throws PartlogException TOPIC_NOT_FOUND, FORMAT_TOO_NEW */
  State toChange() {
    return state().forWriters();
  }

  /** The offsets of the topic's partitions that the call keeps. */
  SortedMap<Integer, Long> keep() {
    return arguments.keep().getOrDefault(topic, Collections.emptySortedMap());
  }

  /** Adds a row about the topic. {@code values} are the values of the columns after it. */
  void row(Object... values) {
    answer.add(topic, values);
  }
}
