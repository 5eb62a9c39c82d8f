package io.sparklog.serve.records.fetch;

import io.sparklog.log.State;
import io.sparklog.read.PartitionCursor.Batches;
import io.sparklog.segment.Segment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Where the batches are that reads have checked. Committed bytes never change, so a later read of the same batches need not check them
 * again. The oldest are forgotten first. For several threads at once.
 */
final class CheckedBatches {
  /** With batches of 128 KiB and large reads, these are 8 GiB of a log. They take some 8 MiB of memory. */
  private static final int CUTS_MAX = 64 << 10;

  /** An entry of the map, without its cuts, takes as much memory as this number of cuts. */
  private static final int CUTS_OF_ENTRY = 8;

  private record Partition(String topicId, int number) {}

  private record BatchPlace(Partition partition, long base) {}

  private final int cutsMax;
  private final Map<Partition, TreeMap<Long, Batches>> known = new HashMap<>();
  private final ArrayDeque<BatchPlace> oldest = new ArrayDeque<>();
  private int cuts;

  CheckedBatches() {
    this(CUTS_MAX);
  }

  /** @param cutsMax the places at which all batches that are known can be cut */
  CheckedBatches(int cutsMax) {
    this.cutsMax = cutsMax;
  }

  /**
   * The batches from {@code offset} on, as many as fit in {@code bytesMax}. None if too few of them are known: then a read gives more, and
   * they are known afterwards.
   */
  synchronized List<Batches> find(State state, int partition, long offset, int bytesMax) {
    Partition place = new Partition(state.topicId(), partition);
    TreeMap<Long, Batches> ofPartition = known.get(place);
    if (ofPartition == null || offset < state.start(partition)) {
      return List.of();
    }
    List<Batches> found = new ArrayList<>();
    int left = bytesMax;
    long next = offset;
    while (next < state.end(partition)) {
      Map.Entry<Long, Batches> entry = ofPartition.floorEntry(next);
      if (entry == null || entry.getValue().nextOffset() <= next || !isLive(state, partition, next, entry.getValue().segment())) {
        break;
      }
      Optional<Batches> more = entry.getValue().from(next, left);
      if (more.isEmpty()) {
        break; // The next batch does not fit, or the offset is within a batch.
      }
      Batches last = found.isEmpty() ? null : found.get(found.size() - 1);
      if (last != null && last.isBefore(more.get())) {
        found.set(found.size() - 1, last.and(more.get())); // One part of an answer opens one file.
      } else {
        found.add(more.get());
      }
      left -= more.get().bytes();
      next = more.get().nextOffset();
    }
    return next == state.end(partition) || left < bytesMax / 2 ? found : List.of();
  }

  /** A merge may have put the batches into another file. */
  private static boolean isLive(State state, int partition, long offset, Segment segment) {
    List<Segment> live = state.segments(partition, offset, offset + 1);
    return !live.isEmpty() && live.get(0).equals(segment);
  }

  /** Batches of files, which a read has checked. */
  synchronized void add(String topicId, int partition, List<Batches> batches) {
    Partition of = new Partition(topicId, partition);
    for (Batches each : batches) {
      TreeMap<Long, Batches> ofPartition = known.computeIfAbsent(of, absent -> new TreeMap<>());
      Batches before = ofPartition.get(each.base());
      if (before != null && before.segment().equals(each.segment()) && before.nextOffset() >= each.nextOffset()) {
        continue;
      }
      ofPartition.put(each.base(), each);
      cuts += weight(each);
      if (before == null) {
        oldest.add(new BatchPlace(of, each.base()));
      } else {
        cuts -= weight(before);
      }
    }
    while (cuts > cutsMax) {
      BatchPlace first = oldest.remove();
      TreeMap<Long, Batches> ofPartition = known.get(first.partition);
      cuts -= weight(ofPartition.remove(first.base));
      if (ofPartition.isEmpty()) {
        known.remove(first.partition);
      }
    }
  }

  private static int weight(Batches batches) {
    return batches.cuts().size() + CUTS_OF_ENTRY;
  }

  /** A file is not as it was when it was checked: the next reads check all batches of the partition. */
  synchronized void forget(String topicId, int partition) {
    Partition of = new Partition(topicId, partition);
    TreeMap<Long, Batches> forgotten = known.remove(of);
    if (forgotten != null) {
      forgotten.values().forEach(each -> cuts -= weight(each));
      oldest.removeIf(place -> place.partition.equals(of));
    }
  }

  synchronized int cuts() {
    return cuts;
  }
}
