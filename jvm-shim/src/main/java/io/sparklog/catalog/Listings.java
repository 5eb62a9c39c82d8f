package io.sparklog.catalog;

import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.Signature;
import java.util.ArrayList;
import java.util.List;

/** Procedures that only look. */
final class Listings {
  private Listings() {}

  static void topics(Call call) {
    State state = call.shown();
    Totals totals = Totals.of(state);
    call.row(state.topicId(), state.partitions(), totals.records(), totals.segments(), totals.batches(), totals.bytes(),
        totals.minTimestamp(), totals.maxTimestamp(), state.version(), state.timeMs());
  }

  static void segments(Call call) {
    segments(call.root(), call.shown()).forEach(call::row);
  }

  /** The columns of the procedure that lists segments, without the column of the topic. */
  public static List<Signature.Column> columnsOfSegments() {
    Signature signature = Signature.all().stream().filter(each -> each.name().equals("segments")).findFirst().orElseThrow();
    return signature.columns().subList(1, signature.columns().size());
  }

  /** The values of these columns for each live segment, by partition, then by base offset. */
  public static List<Object[]> segments(Root root, State state) {
    List<Object[]> rows = new ArrayList<>();
    for (int partition = 0; partition < state.partitions(); partition++) {
      for (Segment segment : state.segments(partition)) {
        String file = root.store().location(Names.dataFile(state.topic(), segment.file()));
        rows.add(new Object[] {partition, segment.base(), segment.end(), segment.records(), segment.batches(), segment.bytes(),
            segment.minTimestamp(), segment.maxTimestamp(), segment.dense(), segment.routed(), segment.ordered(), file,
            segment.position()});
      }
    }
    return rows;
  }

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
}
