package io.sparklog.read;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;

/**
 * A condition on the topic, partition, offset, time and key of a record. There is no "not": it is moved into the leaves. Only the key may
 * be null among these columns. No leaf excludes keys, so null counts as false.
 */
@FunctionalInterface
public interface Filter {
  Filter ALL_RECORDS = of(RecordFilter.ALL_RECORDS);
  Filter NO_RECORDS = of(RecordFilter.NO_RECORDS);

  /** More bytes of keys are not looked at: a filter of them would cost more than it can spare. */
  long KEYS_BYTES_MAX = 256 << 20;

  /** The rest of the condition, for the records of one partition. */
  RecordFilter at(String topic, int partition);

  /** As many as {@link RecordFilter#bytes} of any partition, or more. */
  default long bytes() {
    return 0;
  }

  private static Filter of(RecordFilter everywhere) {
    return new Everywhere(everywhere);
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
    return of(new RecordFilter.Within(false, offsets));
  }

  /** @param micros times in microseconds since 1970, as {@link Times#micros} gives them */
  static Filter time(Intervals micros) {
    return of(new RecordFilter.Within(true, micros));
  }

  /** Records with one of these keys; none is null. @param keys of no more than {@link #KEYS_BYTES_MAX} */
  static Filter key(Collection<byte[]> keys) {
    return of(KeyFilter.Among.of(Keys.of(keys)));
  }

  /** Records with a key, or without a key if not {@code present}. */
  static Filter keyPresence(boolean present) {
    return of(new KeyFilter.Presence(present));
  }

  static Filter all(List<Filter> filters) {
    return AllOrAny.of(true, filters);
  }

  static Filter any(List<Filter> filters) {
    return AllOrAny.of(false, filters);
  }

  /** The same, as a {@link Hint}: the reader of the records tests it too. */
  default Filter asHint() {
    return (topic, partition) -> Hint.of(at(topic, partition));
  }

  /** The same condition in all partitions. */
  record Everywhere(RecordFilter filter) implements Filter {
    @Override
    public RecordFilter at(String topic, int partition) {
      return filter;
    }

    @Override
    public long bytes() {
      return filter.bytes();
    }
  }

  /** Met by what meets all of some filters, or any of them. */
  record AllOrAny(boolean all, List<Filter> filters) implements Filter {
    /** Without nested filters of its own kind: a query may have a thousand conditions, each inside the condition before. */
    private static Filter of(boolean all, List<Filter> filters) {
      List<Filter> flat = new ArrayList<>();
      for (Filter filter : filters) {
        if (filter instanceof AllOrAny inner && inner.all == all) {
          flat.addAll(inner.filters);
        } else {
          flat.add(filter);
        }
      }
      return new AllOrAny(all, flat);
    }

    @Override
    public RecordFilter at(String topic, int partition) {
      List<RecordFilter> there = filters.stream().map(filter -> filter.at(topic, partition)).toList();
      return all ? RecordFilter.all(there) : RecordFilter.any(there);
    }

    @Override
    public long bytes() {
      return RecordFilter.OBJECT_BYTES + filters.stream().mapToLong(Filter::bytes).sum();
    }
  }
}
