package io.sparklog.catalog;

import io.sparklog.log.Names;
import io.sparklog.log.Segment;
import io.sparklog.log.State;

/** Procedures that only look. */
final class Listings {
  private Listings() {}

  static void topics(Call call) {
    State state = call.state();
    long records = 0;
    long segments = 0;
    long batches = 0;
    long bytes = 0;
    long least = -1;
    long greatest = -1;
    for (int partition = 0; partition < state.partitions(); partition++) {
      for (Segment segment : state.segments(partition)) {
        records += readable(segment, state.start(partition));
        segments++;
        batches += segment.batches();
        bytes += segment.bytes();
        least = segment.minTimestamp() < 0 || least >= 0 && least < segment.minTimestamp() ? least : segment.minTimestamp();
        greatest = Math.max(greatest, segment.maxTimestamp());
      }
    }
    call.row(state.topicId(), state.partitions(), records, segments, batches, bytes, least, greatest, state.version(), state.timeMs());
  }

  /** The records that are not below the log start offset. */
  private static long readable(Segment segment, long start) {
    return segment.end() <= start ? 0 : segment.dense() ? segment.end() - Math.max(segment.base(), start) : segment.records();
  }

  static void segments(Call call) {
    State state = call.state();
    for (int partition = 0; partition < state.partitions(); partition++) {
      for (Segment segment : state.segments(partition)) {
        String file = call.log().store().location(Names.topicFile(call.topic(), segment.file()));
        call.row(partition, segment.base(), segment.end(), segment.records(), segment.batches(), segment.bytes(), segment.minTimestamp(),
            segment.maxTimestamp(), segment.dense(), segment.routed(), segment.ordered(), file, segment.position());
      }
    }
  }
}
