package io.sparklog.read;

import java.util.Collection;
import java.util.List;
import java.util.Set;

/**
 * A condition on the topic, partition, offset, time and key of a record. There is no "not": it is moved into the leaves. The only column
 * of these that may be null is the key, and no leaf is about keys other than some, so that null counts as false.
 */
@FunctionalInterface
public interface Filter {
  Filter ALL_RECORDS = of(RecordFilter.ALL_RECORDS);
  Filter NO_RECORDS = of(RecordFilter.NO_RECORDS);

  /** The rest of the condition, for the records of one partition. */
  RecordFilter at(String topic, int partition);

  private static Filter of(RecordFilter everywhere) {
    return (topic, partition) -> everywhere;
  }

  private static RecordFilter constant(boolean met) {
    return met ? RecordFilter.ALL_RECORDS : RecordFilter.NO_RECORDS;
  }

  static Filter partition(Intervals partitions) {
    return (topic, partition) -> constant(partitions.contains(partition));
  }

  /** Topics in {@code topics}, or if {@code others} all but these. */
  static Filter topic(Set<String> topics, boolean others) {
    return (topic, partition) -> constant(topics.contains(topic) != others);
  }

  static Filter offset(Intervals offsets) {
    return of(new RecordFilter.Offsets(offsets));
  }

  /** @param micros times in microseconds since 1970, as {@link Times#micros} gives them */
  static Filter time(Intervals micros) {
    return of(new RecordFilter.RecordTimes(micros));
  }

  /** Records with one of these keys; none is null. */
  static Filter key(Collection<byte[]> keys) {
    return of(KeyFilter.Among.of(keys));
  }

  /** Records with a key, or if not {@code present} those without one. */
  static Filter keyPresence(boolean present) {
    return of(new KeyFilter.Presence(present));
  }

  static Filter all(List<Filter> filters) {
    return (topic, partition) -> RecordFilter.all(filters.stream().map(filter -> filter.at(topic, partition)).toList());
  }

  static Filter any(List<Filter> filters) {
    return (topic, partition) -> RecordFilter.any(filters.stream().map(filter -> filter.at(topic, partition)).toList());
  }
}
