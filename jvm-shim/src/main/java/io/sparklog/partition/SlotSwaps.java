package io.sparklog.partition;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
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

  private SlotSwaps(SlotTable table, long[] loads, long[] pinned, int[] weights) {
    this.table = table;
    this.partitions = IntStream.range(0, table.slots()).map(table::partition).toArray();
    this.loads = loads;
    this.weights = weights;
    this.sums = sums(table, loads, pinned);
  }

  /** The load of each partition. @param loads by slot. @param pinned by partition, that no slot has */
  public static long[] sums(SlotTable table, long[] loads, long[] pinned) {
    long[] sums = pinned.clone();
    for (int slot = 0; slot < loads.length; slot++) {
      if (table.partition(slot) != SlotTable.UNBOUND) {
        sums[table.partition(slot)] += loads[slot];
      }
    }
    return sums;
  }

  /**
   * The moves, by partition that takes; none if the greatest load of a partition, by weight, falls by less than 5 %.
   *
   * @param loads by slot, 0 or more
   * @param pinned by partition, that stays where it is
   * @param weights by partition
   * @param most how many slots may move
   */
  public static List<SlotMoves> of(SlotTable table, long[] loads, long[] pinned, int[] weights, int most) {
    SlotSwaps swaps = new SlotSwaps(table, loads, pinned, weights);
    double before = swaps.load(swaps.busiest());
    for (int moved = 0; moved + 2 <= most && swaps.swap(); moved += 2) {
      // Each swap lowers the greatest load, or how many partitions have it.
    }
    double after = swaps.load(swaps.busiest());
    return before - after < WORTHWHILE * before ? List.of() : swaps.moves();
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

  private List<SlotMoves> moves() {
    TreeMap<Integer, int[]> taken = new TreeMap<>();
    for (int slot = 0; slot < partitions.length; slot++) {
      if (partitions[slot] != table.partition(slot)) {
        int[] its = taken.getOrDefault(partitions[slot], new int[0]);
        its = Arrays.copyOf(its, its.length + 1);
        its[its.length - 1] = slot;
        taken.put(partitions[slot], its);
      }
    }
    List<SlotMoves> moves = new ArrayList<>();
    taken.forEach((to, slots) -> moves.add(new SlotMoves(to, slots)));
    return moves;
  }
}
