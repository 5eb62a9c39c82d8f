package io.sparklog.read;

import io.sparklog.format.BatchDecoder;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.routing.Partitioner;
import io.sparklog.routing.SlotTable;
import io.sparklog.segment.Segment;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.function.IntPredicate;

/** The keys that share a slot, by the newest records of its partition. */
public final class SlotKeys {
  /** Takes the key in [at, at + length) of {@code data}, its slot, and the partition of its record. */
  @FunctionalInterface
  private interface KeyTaker {
    void take(int partition, int slot, byte[] data, int at, int length);
  }

  private SlotKeys() {}

  /**
   * By slot, its keys in the newest segments of its partition, and how many records each of these has there.
   *
   * @param slots the slots to look for, each with a partition
   * @throws io.sparklog.spec.PartlogException the errors of {@link SplitReader#next}
   */
  public static Map<Integer, Map<ByteBuffer, Long>> of(ReadableTopics topics, State state, SortedSet<Integer> slots, long bytes)
      throws IOException {
    SlotTable table = state.routing().table();
    Map<Integer, Map<ByteBuffer, Long>> found = new HashMap<>();
    slots.forEach(slot -> found.put(slot, new HashMap<>()));
    read(topics, state, partition -> slots.stream().anyMatch(slot -> table.partition(slot) == partition), bytes,
        (partition, slot, data, at, length) -> {
          if (found.containsKey(slot) && table.partition(slot) == partition) {
            found.get(slot).merge(ByteBuffer.wrap(Arrays.copyOfRange(data, at, at + length)), 1L, Long::sum);
          }
        });
    return found;
  }

  private static void read(ReadableTopics topics, State state, IntPredicate partitions, long bytes, KeyTaker taker) throws IOException {
    List<Selection> newest = new ArrayList<>();
    for (int partition = 0; partition < state.partitions(); partition++) {
      long first = first(state, partition, bytes);
      if (partitions.test(partition) && first < state.end(partition)) {
        newest.add(new Selection(state, partition, Intervals.of(first, state.end(partition) - 1), RecordFilter.ALL_RECORDS));
      }
    }
    Partitioner partitioner = state.config().partitioner();
    SlotTable table = state.routing().table();
    for (Split split : new SplitPlanner(topics, SplitPlanner.SplitSize.WHOLE, false).plan(newest)) {
      try (SplitReader reader = new SplitReader(topics, split, false, false, Long.MAX_VALUE)) {
        while (reader.next()) {
          VisibleRecords records = reader.records();
          BatchDecoder decoder = records.decoder();
          for (int i = records.first(); i < records.first() + records.rows(); i++) {
            int at = decoder.keyAt()[i];
            int length = decoder.keyLengths()[i];
            if (length >= 0) {
              taker.take(split.partition(), table.slot(partitioner, decoder.data(), at, length), decoder.data(), at, length);
            }
          }
        }
      }
    }
  }

  /** The offset from which on a partition has about so many bytes: within a segment, by the share of its offsets. */
  private static long first(State state, int partition, long bytes) {
    long first = state.end(partition);
    long left = bytes;
    List<Segment> live = state.segments(partition);
    for (int i = live.size() - 1; i >= 0 && left > 0; i--) {
      Segment segment = live.get(i);
      double skipped = Math.max(0, 1 - (double) left / segment.bytes());
      first = segment.base() + (long) ((segment.end() - segment.base()) * skipped);
      left -= segment.bytes();
    }
    return Math.max(first, state.start(partition));
  }
}
