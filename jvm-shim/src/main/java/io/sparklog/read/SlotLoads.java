package io.sparklog.read;

import io.sparklog.format.BatchDecoder;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.Segment;
import io.sparklog.log.State;
import io.sparklog.partition.SlotTable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** How busy each slot of a topic is: how many of its newest records have keys in it. */
public final class SlotLoads {
  private SlotLoads() {}

  /**
   * The records of each slot, in the newest segments of each partition since the topic was re-routed last.
   *
   * @param bytes to read of each partition, in whole segments
   * @throws io.sparklog.spec.PartlogException what {@link SplitReader#next} throws
   */
  public static long[] of(ReadableTopics topics, State state, long bytes) throws IOException {
    SlotTable table = state.slots().table();
    long[] loads = new long[table.slots()];
    List<Selection> newest = new ArrayList<>();
    for (int partition = 0; partition < state.partitions(); partition++) {
      long first = first(state, partition, bytes);
      if (first < state.end(partition)) {
        newest.add(new Selection(state, partition, Intervals.of(first, state.end(partition) - 1), RecordFilter.ALL_RECORDS));
      }
    }
    for (Split split : new SplitPlanner(topics, SplitSize.WHOLE, false).plan(newest)) {
      try (SplitReader reader = new SplitReader(topics, split, false, false, Long.MAX_VALUE)) {
        while (reader.next()) {
          add(reader.records(), state, table, loads);
        }
      }
    }
    return loads;
  }

  private static long first(State state, int partition, long bytes) {
    long first = state.end(partition);
    long left = bytes;
    List<Segment> live = state.segments(partition);
    for (int i = live.size() - 1; i >= 0 && left > 0; i--) {
      left -= live.get(i).bytes();
      first = live.get(i).base();
    }
    return Math.max(first, Math.max(state.start(partition), state.lastCut(partition)));
  }

  private static void add(VisibleRecords records, State state, SlotTable table, long[] loads) {
    BatchDecoder decoder = records.decoder();
    for (int i = records.first(); i < records.first() + records.rows(); i++) {
      if (decoder.keyLengths()[i] >= 0) {
        loads[table.slot(state.config().partitioner(), decoder.data(), decoder.keyAt()[i], decoder.keyLengths()[i])]++;
      }
    }
  }
}
