package io.sparklog.routing;

import java.util.Collections;
import java.util.Comparator;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Swaps of slots that level the loads of partitions, where keys are not equally busy. Each partition keeps its number of slots. They depend
 * on the arguments alone.
 */
public final class SlotSwaps {
  /** The greatest load must fall by this part at least, or nothing is worth its barrier. */
  private static final double WORTHWHILE = 0.05;

  private final SlotTable table;
  private final int[] partitions;
  private final long[] loads;
  private final int[] weights;
  private final long[] sums;

  private SlotSwaps(SlotTable table, long[] loads, int[] weights) {
    this.table = table;
    this.partitions = IntStream.range(0, table.slots()).map(table::partition).toArray();
    this.loads = loads;
    this.weights = weights;
    this.sums = sums(table, loads, weights.length);
  }

  /** The load of each of {@code partitions} partitions. @param loads by slot */
  public static long[] sums(SlotTable table, long[] loads, int partitions) {
    long[] sums = new long[partitions];
    for (int slot = 0; slot < loads.length; slot++) {
      if (table.partition(slot) != SlotTable.UNBOUND) {
        sums[table.partition(slot)] += loads[slot];
      }
    }
    return sums;
  }

  /**
   * By slot, the partition that it moves to; empty if the greatest load of a partition, by weight, falls by less than 5 %.
   *
   * @param loads by slot, 0 or more
   * @param weights by partition
   * @param most how many slots may move
   */
  public static SortedMap<Integer, Integer> of(SlotTable table, long[] loads, int[] weights, int most) {
    SlotSwaps swaps = new SlotSwaps(table, loads, weights);
    double before = swaps.load(swaps.busiest());
    for (int moved = 0; moved + 2 <= most && swaps.swap(); moved += 2) {
      // Each swap lowers the greatest load, or how many partitions have it.
    }
    double after = swaps.load(swaps.busiest());
    return before - after < WORTHWHILE * before ? Collections.emptySortedMap() : swaps.moves();
  }

  /** Exchanges the largest slot of the busiest partition, whose move lowers the maximum, for the smallest slot of the idlest one. */
  private boolean swap() {
    int from = busiest();
    int to = open().mapToObj(p -> p).min(Comparator.comparingDouble(this::load)).orElseThrow();
    int back = slots(to).min(Comparator.comparingLong(slot -> loads[slot])).orElse(-1);
    if (from == to || back < 0) {
      return false;
    }
    double most = load(from);
    int chosen = slots(from)
        .filter(slot -> loads[slot] > loads[back] && (double) (sums[to] + loads[slot] - loads[back]) / weights[to] < most)
        .max(Comparator.comparingLong((Integer slot) -> loads[slot]).thenComparing(Comparator.reverseOrder()))
        .orElse(-1);
    if (chosen < 0) {
      return false;
    }
    long difference = loads[chosen] - loads[back];
    sums[from] -= difference;
    sums[to] += difference;
    partitions[chosen] = to;
    partitions[back] = from;
    return true;
  }

  private IntStream open() {
    return IntStream.range(0, weights.length).filter(p -> weights[p] > 0);
  }

  private Stream<Integer> slots(int partition) {
    return IntStream.range(0, partitions.length).filter(slot -> partitions[slot] == partition).boxed();
  }

  private double load(int partition) {
    return (double) sums[partition] / weights[partition];
  }

  /** The lowest of equals. */
  private int busiest() {
    return open().boxed().max(Comparator.comparingDouble(this::load).thenComparing(Comparator.reverseOrder())).orElseThrow();
  }

  private SortedMap<Integer, Integer> moves() {
    TreeMap<Integer, Integer> moves = new TreeMap<>();
    for (int slot = 0; slot < partitions.length; slot++) {
      if (partitions[slot] != table.partition(slot)) {
        moves.put(slot, partitions[slot]);
      }
    }
    return moves;
  }
}
