package io.sparklog.procedures;

import io.sparklog.log.State;
import io.sparklog.segment.Segment;

/**
 * Sums over the live segments of a topic.
 *
 * @param records the records that can be read, from the log start offsets on
 * @param minTimestamp the least time in ms since 1970, −1 without times; so {@code maxTimestamp}
 */
record Totals(long records, long segments, long batches, long bytes, long minTimestamp, long maxTimestamp) {
  static Totals of(State state) {
    Totals totals = new Totals(0, 0, 0, 0, -1, -1);
    for (int partition = 0; partition < state.partitions(); partition++) {
      for (Segment segment : state.segments(partition)) {
        totals = totals.and(segment, state.start(partition));
      }
    }
    return totals;
  }

  private Totals and(Segment segment, long start) {
    long least = segment.minTimestamp() < 0 || minTimestamp >= 0 && minTimestamp < segment.minTimestamp()
        ? minTimestamp
        : segment.minTimestamp();
    return new Totals(records + readable(segment, start), segments + 1, batches + segment.batches(), bytes + segment.bytes(), least,
        Math.max(maxTimestamp, segment.maxTimestamp()));
  }

  /** The records that are not below the log start offset. */
  private static long readable(Segment segment, long start) {
    return segment.end() <= start ? 0 : segment.dense() ? segment.end() - Math.max(segment.base(), start) : segment.records();
  }
}
