package io.sparklog.routing;

import java.util.Arrays;
import java.util.List;

/** Where each key was in each routing epoch that a state remembers. */
final class KeyHistory {
  /** Where a slot went, from old to new. */
  private static final class Moves {
    private int[] afters = new int[1];
    private int[] partitions = new int[1];
    private int count;

    private void add(int after, int to) {
      if (count == afters.length) {
        afters = Arrays.copyOf(afters, 2 * count);
        partitions = Arrays.copyOf(partitions, 2 * count);
      }
      afters[count] = after;
      partitions[count++] = to;
    }

    /** @param first before all of them */
    private int last(int after, int first) {
      int found = Arrays.binarySearch(afters, 0, count, after);
      int place = found < 0 ? -found - 2 : found;
      return place < 0 ? first : partitions[place];
    }
  }

  private final SlotTable first;
  /** By slot; null for a slot that did not move. */
  private final Moves[] moves;

  KeyHistory(SlotTable first, List<PastReroute> past) {
    this.first = first;
    this.moves = new Moves[first.slots()];
    for (int i = 0; i < past.size(); i++) {
      for (SlotTable.SlotMoves move : past.get(i).moved()) {
        for (int slot : move.slots()) {
          moves[slot] = moves[slot] == null ? new Moves() : moves[slot];
          moves[slot].add(i + 1, move.to());
        }
      }
    }
  }

  /** The partition of a key after the first {@code after} re-routes; {@link SlotTable#UNBOUND} if it had none. */
  int partition(Partitioner partitioner, byte[] key, int after) {
    int slot = first.slot(partitioner, key);
    int partition = first.partition(slot);
    return moves[slot] == null ? partition : moves[slot].last(after, partition);
  }
}
