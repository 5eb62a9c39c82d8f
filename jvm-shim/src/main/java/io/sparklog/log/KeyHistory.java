package io.sparklog.log;

import io.sparklog.partition.KeyTable;
import io.sparklog.partition.Partitioner;
import io.sparklog.partition.Pins;
import io.sparklog.partition.SlotMoves;
import io.sparklog.partition.SlotTable;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Where each key was in each routing epoch that a state remembers. */
final class KeyHistory {
  private static final int[] NEVER = {};

  private final KeyTable first;
  /** By slot, the moves of it: after which re-route, and where to. Null for a slot that did not move. */
  private final int[][] moves;
  /** The same by key, of those whose pins changed. */
  private final Map<byte[], int[]> pins = new TreeMap<>(Arrays::compareUnsigned);

  KeyHistory(KeyTable first, List<PastReroute> past) {
    this.first = first;
    this.moves = new int[first.slots().slots()][];
    for (int i = 0; i < past.size(); i++) {
      for (SlotMoves move : past.get(i).moved()) {
        for (int slot : move.slots()) {
          moves[slot] = with(moves[slot] == null ? NEVER : moves[slot], i + 1, move.to());
        }
      }
      Pins changes = past.get(i).pins();
      for (int k = 0; k < changes.size(); k++) {
        pins.put(changes.key(k), with(pins.getOrDefault(changes.key(k), NEVER), i + 1, changes.partition(k)));
      }
    }
  }

  private static int[] with(int[] its, int after, int to) {
    int[] more = Arrays.copyOf(its, its.length + 2);
    more[its.length] = after;
    more[its.length + 1] = to;
    return more;
  }

  /** The partition of a key after the first {@code after} re-routes; {@link SlotTable#UNBOUND} if it had none. */
  int partition(Partitioner partitioner, byte[] key, int after) {
    int pinned = last(pins.getOrDefault(key, NEVER), after, first.pins().of(key));
    int slot = first.slots().slot(partitioner, key);
    return pinned != Pins.ENDED ? pinned : last(moves[slot] == null ? NEVER : moves[slot], after, first.slots().partition(slot));
  }

  private static int last(int[] its, int after, int first) {
    int last = first;
    for (int i = 0; i < its.length && its[i] <= after; i += 2) {
      last = its[i + 1];
    }
    return last;
  }
}
