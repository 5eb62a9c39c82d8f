package io.sparklog.read;

import io.sparklog.format.BatchDecoder;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.Segment;
import io.sparklog.log.State;
import io.sparklog.partition.Pins;
import io.sparklog.partition.SlotTable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * How busy each slot of a topic is: how many of its newest records have keys in it.
 *
 * @param slots the records by slot, without those of pinned keys
 * @param pinned the records of pinned keys, by partition
 */
public record SlotLoads(long[] slots, long[] pinned) {
  /**
   * The records in the newest segments of each partition since the topic was re-routed last.
   *
   * @param bytes to read of each partition, in whole segments
   * @throws io.sparklog.spec.PartlogException what {@link SplitReader#next} throws
   */
  public static SlotLoads of(ReadableTopics topics, State state, long bytes) throws IOException {
    SlotTable table = state.slots().table();
    SlotLoads loads = new SlotLoads(new long[table.slots()], new long[state.partitions()]);
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
          loads.add(reader.records(), state, table);
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

  private void add(VisibleRecords records, State state, SlotTable table) {
    Pins pins = state.slots().pins();
    BatchDecoder decoder = records.decoder();
    for (int i = records.first(); i < records.first() + records.rows(); i++) {
      if (decoder.keyLengths()[i] >= 0) {
        int partition = pins.of(decoder.data(), decoder.keyAt()[i], decoder.keyLengths()[i]);
        if (partition == Pins.ENDED) {
          slots[table.slot(state.config().partitioner(), decoder.data(), decoder.keyAt()[i], decoder.keyLengths()[i])]++;
        } else {
          pinned[partition]++;
        }
      }
    }
  }
}
