package io.sparklog.procedures;

import io.sparklog.log.Names;
import io.sparklog.log.Segment;
import io.sparklog.log.State;

/** Procedures that only look. */
final class Listings {
  private Listings() {}

  static void topics(Call call) {
    State state = call.state();
    Totals totals = Totals.of(state);
    call.row(state.topicId(), state.partitions(), totals.records(), totals.segments(), totals.batches(), totals.bytes(),
        totals.minTimestamp(), totals.maxTimestamp(), state.version(), state.timeMs());
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
