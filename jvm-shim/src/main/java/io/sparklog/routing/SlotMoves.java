package io.sparklog.routing;

import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Slots that a partition takes from others.
 *
 * @param to the partition
 * @param slots at least one, ascending
 */
public record SlotMoves(int to, int[] slots) {
  /** The moves, by partition. @param partitions by slot, the partition that it moves to */
  public static List<SlotMoves> of(SortedMap<Integer, Integer> partitions) {
    TreeMap<Integer, List<Integer>> taken = new TreeMap<>();
    partitions.forEach((slot, partition) -> taken.computeIfAbsent(partition, absent -> new ArrayList<>()).add(slot));
    return taken.entrySet()
        .stream()
        .map(each -> new SlotMoves(each.getKey(), each.getValue().stream().mapToInt(slot -> slot).toArray()))
        .toList();
  }
}
