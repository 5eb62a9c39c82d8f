package io.sparklog.read;

import io.sparklog.log.State;
import io.sparklog.spec.Option;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where a batch read starts and ends in each partition. The options of one end come before each other: times for all partitions, times by
 * partition, offsets.
 */
public final class OffsetBounds {
  private static final Logger LOG = LoggerFactory.getLogger(OffsetBounds.class);
  private static final long LATEST = -1;
  private static final long EARLIEST = -2;

  /** The offsets [{@code start}, {@code end}) of a partition. */
  public record Range(State state, int partition, long start, long end) {}

  private final LogStore store;
  private final Options options;
  private final boolean failOnDataLoss;

  public OffsetBounds(LogStore store, Options options) {
    this.store = store;
    this.options = options;
    this.failOnDataLoss = options.bool("failOnDataLoss");
  }

  /**
   * The offsets to read of each partition; empty ones too.
   *
   * @throws PartlogException OPTION_VALUE, PARTITION_NOT_FOUND, OFFSETS_OUT_OF_RANGE, OFFSETS_BACKWARDS, TIMESTAMP_NOT_FOUND
   */
  public List<Range> resolve(List<Subscription.Subscribed> topics) throws IOException {
    Side starting = new Side("starting", topics);
    Side ending = new Side("ending", topics);
    List<Range> ranges = new ArrayList<>();
    for (Subscription.Subscribed topic : topics) {
      State state = topic.state();
      for (int partition : topic.partitions()) {
        long start = starting.offset(state, partition, state.start(partition));
        long end = ending.offset(state, partition, state.end(partition));
        // A time later than all records, where that is no error, starts at the log's end: then there is nothing to read, wherever the end.
        if (start > end && !(starting.byTime && start == state.end(partition))) {
          complain(backwards(starting.option, start, ending.option, end, state, partition));
        }
        ranges.add(new Range(state, partition, Math.min(start, end), end));
      }
    }
    return ranges;
  }

  private PartlogException backwards(String starting, long start, String ending, long end, State state, int partition) {
    return PartlogException.of("OFFSETS_BACKWARDS", "starting", starting, "start", start, "ending", ending, "end", end, "topic",
        state.topic(), "partition", partition, "root", store.root());
  }

  private PartlogException outside(String option, long offset, State state, int partition) {
    return PartlogException.of("OFFSETS_OUT_OF_RANGE", "option", option, "offset", offset, "topic", state.topic(), "partition", partition,
        "root", store.root(), "start", state.start(partition), "end", state.end(partition));
  }

  private void complain(PartlogException error) {
    if (failOnDataLoss) {
      throw error;
    }
    LOG.warn("{} Going on with what is there, since failOnDataLoss is false.", error.getMessage());
  }

  /** One end of the ranges: the option that counts, and what it says. */
  private final class Side {
    private final boolean starts;
    private final String option;
    private final boolean byTime;
    private final Long forAll;
    private final TreeMap<String, TreeMap<Integer, Long>> byPartition;

    private Side(String side, List<Subscription.Subscribed> topics) {
      starts = side.equals("starting");
      String forAllTimes = side + "Timestamp";
      String times = side + "OffsetsByTimestamp";
      byTime = options.given(forAllTimes) || options.given(times);
      option = options.given(forAllTimes) ? forAllTimes : options.given(times) ? times : side + "Offsets";
      forAll = options.given(forAllTimes) ? Long.valueOf(options.number(forAllTimes)) : null;
      String text = options.text(option);
      byPartition = text.startsWith("{") ? PartitionJson.numbers(option, text) : null;
      if (byPartition != null) {
        requireSame(text, topics);
      }
    }

    private void requireSame(String text, List<Subscription.Subscribed> topics) {
      Map<String, TreeMap<Integer, Long>> left = new TreeMap<>();
      byPartition.forEach((topic, numbers) -> left.put(topic, new TreeMap<>(numbers)));
      for (Subscription.Subscribed topic : topics) {
        String name = topic.state().topic();
        TreeMap<Integer, Long> numbers = left.getOrDefault(name, new TreeMap<>());
        for (int partition : topic.partitions()) {
          if (numbers.remove(partition) == null) {
            throw Option.invalidValue(option, text, "it does not name partition " + partition + " of topic " + name + ", which is read");
          }
        }
        if (!numbers.isEmpty()) {
          Subscription.requirePartition(option, store, topic.state(), numbers.lastKey());
          throw Option.invalidValue(option, text, "it names partition " + numbers.firstKey() + " of topic " + name + ", which is not read");
        }
        left.remove(name);
      }
      for (String topic : left.keySet()) {
        throw Option.invalidValue(option, text, "it names topic " + topic + ", which is not read");
      }
    }

    private long offset(State state, int partition, long otherwise) throws IOException {
      Long given = forAll != null ? forAll : byPartition == null ? null : byPartition.get(state.topic()).get(partition);
      if (given == null) {
        return otherwise;
      }
      return byTime ? atTime(state, partition, given) : atOffset(state, partition, given);
    }

    private long atTime(State state, int partition, long timestamp) throws IOException {
      if (timestamp < 0) {
        throw Option.invalidValue(option, options.text(option), timestamp + " is no time in milliseconds since 1970-01-01 UTC");
      }
      OptionalLong found = TimeSearch.firstOffset(store, state, partition, timestamp);
      if (found.isEmpty() && starts && options.text("startingOffsetsByTimestampStrategy").equals("error")) {
        throw PartlogException.of("TIMESTAMP_NOT_FOUND", "topic", state.topic(), "partition", partition, "root", store.root(), "timestamp",
            timestamp);
      }
      return found.orElse(state.end(partition));
    }

    private long atOffset(State state, int partition, long offset) {
      if (offset == (starts ? EARLIEST : LATEST)) {
        return starts ? state.start(partition) : state.end(partition);
      }
      if (offset < 0) {
        String meaning = offset == LATEST
            ? "-1, the latest, is no start of a batch read"
            : offset == EARLIEST ? "-2, the earliest, is no end" : offset + " is no offset";
        throw Option.invalidValue(option, options.text(option), meaning);
      }
      long inside = Math.max(state.start(partition), Math.min(offset, state.end(partition)));
      if (inside != offset) {
        complain(outside(option, offset, state, partition));
      }
      return inside;
    }
  }
}
