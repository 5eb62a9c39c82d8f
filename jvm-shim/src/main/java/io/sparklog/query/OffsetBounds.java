package io.sparklog.query;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.read.LaterState;
import io.sparklog.read.Selection;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/** The offsets that a read asks for, of each partition: what its options say, in the state of the topic. */
public final class OffsetBounds {
  private static final long LATEST = -1;
  private static final long EARLIEST = -2;

  private final ReadableTopics root;
  private final Options options;
  private final LaterState.DataLoss dataLoss;
  private final TimeSearch times;

  /** The version of the topic that the read is of, as an error names it; null if a user gave the offsets. */
  private final String version;

  public OffsetBounds(ReadableTopics root, Options options) {
    this(root, options, null);
  }

  /** @param version that gave the options, as an error names it: VERSION AS OF 3; null if a user gave them */
  public OffsetBounds(ReadableTopics root, Options options, String version) {
    this.root = root;
    this.options = options;
    this.version = version;
    this.dataLoss = new LaterState.DataLoss(options.bool("failOnDataLoss"));
    this.times = new TimeSearch(root, new LaterState(root, dataLoss));
  }

  /**
   * The offsets to read of each partition; empty ones too.
   *
   * @throws PartlogException OPTION_VALUE, PARTITION_NOT_FOUND, OFFSETS_OUT_OF_RANGE, OFFSETS_BACKWARDS, TIMESTAMP_NOT_FOUND, and what
   *     {@link TimeSearch#firstOffset} throws
   */
  public List<Selection.OffsetRange> resolve(List<Subscription.Subscribed> topics) throws IOException {
    Bound starting = Bound.starting(options, root, topics);
    Bound ending = Bound.ending(options, root, topics);
    List<Selection.OffsetRange> ranges = new ArrayList<>();
    for (Subscription.Subscribed topic : topics) {
      State state = topic.state();
      for (int partition : topic.partitions()) {
        if (version != null && isEmpty(starting, ending, state, partition)) {
          ranges.add(new Selection.OffsetRange(state, partition, state.end(partition), state.end(partition)));
          continue;
        }
        long start = start(starting, state, partition);
        long end = end(ending, state, partition);
        // With strategy latest, a time after all records starts at the end of the log, so nothing is read, wherever the read ends.
        if (start > end && !(starting.isByTime() && start == state.end(partition))) {
          dataLoss.report(backwards(starting.option(), start, ending.option(), end, state, partition));
        }
        ranges.add(new Selection.OffsetRange(state, partition, Math.min(start, end), end));
      }
    }
    return ranges;
  }

  /** Whether a partition had no records at the version of the read: that its offsets have expired since says nothing then. */
  private static boolean isEmpty(Bound starting, Bound ending, State state, int partition) {
    Long start = starting.number(state.topic(), partition);
    return start != null && start.equals(ending.number(state.topic(), partition));
  }

  /**
   * Where a stream begins in each partition: the ranges go from there to the end.
   *
   * @throws PartlogException OPTION_VALUE, PARTITION_NOT_FOUND, OFFSETS_OUT_OF_RANGE, TIMESTAMP_NOT_FOUND, and what
   *     {@link TimeSearch#firstOffset} throws
   */
  public List<Selection.OffsetRange> resolveStarts(List<Subscription.Subscribed> topics) throws IOException {
    Bound starting = Bound.starting(options, root, topics);
    List<Selection.OffsetRange> ranges = new ArrayList<>();
    for (Subscription.Subscribed topic : topics) {
      State state = topic.state();
      for (int partition : topic.partitions()) {
        Long given = starting.number(state.topic(), partition);
        boolean latest = given == null ? starting.isLatest() : given == LATEST && !starting.isByTime();
        ranges.add(new Selection.OffsetRange(state, partition, latest ? state.end(partition) : start(starting, state, partition),
            state.end(partition)));
      }
    }
    return ranges;
  }

  private long start(Bound bound, State state, int partition) throws IOException {
    Long given = bound.number(state.topic(), partition);
    if (given == null) {
      return state.start(partition);
    }
    if (bound.isByTime()) {
      OptionalLong found = atTime(bound, state, partition, given);
      if (found.isEmpty() && options.text("startingOffsetsByTimestampStrategy").equals("error")) {
        throw PartlogException.of("TIMESTAMP_NOT_FOUND", "topic", state.topic(), "partition", partition, "root", root.location(),
            "timestamp", given);
      }
      return found.orElse(state.end(partition));
    }
    if (given == LATEST) {
      throw bound.refused("-1 (latest) cannot be the start of a batch read; give offsets, or -2 for the earliest");
    }
    return given == EARLIEST ? state.start(partition) : inside(bound, state, partition, given);
  }

  private long end(Bound bound, State state, int partition) throws IOException {
    Long given = bound.number(state.topic(), partition);
    if (given == null) {
      return state.end(partition);
    }
    if (bound.isByTime()) {
      return atTime(bound, state, partition, given).orElse(state.end(partition));
    }
    if (given == EARLIEST) {
      throw bound.refused("-2 (earliest) cannot be an end; give offsets, or -1 for the latest");
    }
    return given == LATEST ? state.end(partition) : inside(bound, state, partition, given);
  }

  private OptionalLong atTime(Bound bound, State state, int partition, long timestamp) throws IOException {
    if (timestamp < 0) {
      throw bound.refused(timestamp + " is not a time; give milliseconds since 1970-01-01 UTC, from 0 on");
    }
    return times.firstOffset(state, partition, timestamp);
  }

  private long inside(Bound bound, State state, int partition, long offset) {
    if (offset < 0) {
      throw bound.refused(offset + " is not an offset; give offsets from 0 on, -2 for the earliest, or -1 for the latest");
    }
    long inside = Math.max(state.start(partition), Math.min(offset, state.end(partition)));
    if (inside != offset) {
      dataLoss.report(outside(bound.option(), offset, state, partition));
    }
    return inside;
  }

  private PartlogException backwards(String starting, long start, String ending, long end, State state, int partition) {
    return PartlogException.of("OFFSETS_BACKWARDS", "starting", starting, "start", start, "ending", ending, "end", end, "topic",
        state.topic(), "partition", partition, "root", root.location());
  }

  private PartlogException outside(String option, long offset, State state, int partition) {
    String way = version == null
        ? "Ask for offsets in that range, or set failOnDataLoss=false, which skips offsets that do not exist"
        : "Records of that version were deleted: ask for a later one, or read the topic as it is, without a version";
    return PartlogException.of("OFFSETS_OUT_OF_RANGE", "option", version == null ? option : version, "offset", offset, "topic",
        state.topic(), "partition", partition, "root", root.location(), "start", state.start(partition), "end", state.end(partition), "way",
        way);
  }
}
