package io.sparklog.routing;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Random;
import java.util.SortedMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class SlotSwapsTest {
  private static double most(long[] sums, int[] weights) {
    return IntStream.range(0, sums.length).filter(p -> weights[p] > 0).mapToDouble(p -> (double) sums[p] / weights[p]).max().orElseThrow();
  }

  @Test
  void busySlotsGoWhereThereIsRoom() {
    SlotTable table = SlotTable.modulo(2, 8);
    // Partition 0 has the busy slots 0, 2 and 4, partition 1 none.
    long[] loads = {50, 1, 30, 1, 20, 1, 0, 1};
    SortedMap<Integer, Integer> moves = SlotSwaps.of(table, loads, new int[] {1, 1}, 100);
    assertArrayEquals(new long[] {52, 52}, SlotSwaps.sums(table.after(SlotMoves.of(moves)), loads, 2));
    assertArrayEquals(new int[] {4, 4}, table.after(SlotMoves.of(moves)).counts(2));
    assertEquals(2, SlotSwaps.of(table, loads, new int[] {1, 1}, 3).size(), "no more than it may");
    assertEquals(Map.of(), SlotSwaps.of(table, loads, new int[] {1, 1}, 1));
  }

  @Test
  void aSlotThatIsBusyAloneStays() {
    assertEquals(Map.of(), SlotSwaps.of(SlotTable.modulo(2, 8), new long[] {100, 0, 0, 0, 0, 0, 0, 0}, new int[] {1, 1}, 100));
    assertEquals(Map.of(), SlotSwaps.of(SlotTable.modulo(2, 8), new long[8], new int[] {1, 1}, 100), "nothing is busy");
  }

  @Test
  void aFallOfLessThanAPartInTwentyIsNotWorthIt() {
    long[] loads = {52, 48, 1, 1};
    assertEquals(Map.of(), SlotSwaps.of(SlotTable.modulo(2, 4), loads, new int[] {1, 1}, 100));
  }

  @Test
  void randomLoadsAreLevelled() {
    for (int seed = 0; seed < 300; seed++) {
      Random random = new Random(seed);
      int partitions = 2 + random.nextInt(6);
      int[] weights = random.ints(partitions, 0, 4).toArray();
      weights[0] = weights[1] = 1;
      SlotTable modulo = SlotTable.modulo(partitions, partitions * 40);
      SlotTable table = modulo.after(modulo.replan(weights));
      long[] loads = random.doubles(table.slots()).mapToLong(x -> (long) (1 / (x + 0.001))).toArray();
      int most = random.nextInt(60);
      SortedMap<Integer, Integer> moves = SlotSwaps.of(table, loads, weights, most);
      SlotTable after = table.after(SlotMoves.of(moves));
      assertTrue(moves.size() <= most);
      assertArrayEquals(table.counts(partitions), after.counts(partitions), "each keeps its number of slots");
      double before = most(SlotSwaps.sums(table, loads, partitions), weights);
      double fell = before - most(SlotSwaps.sums(after, loads, partitions), weights);
      assertTrue(moves.isEmpty() || fell >= 0.05 * before, "seed " + seed);
      SortedMap<Integer, Integer> again = SlotSwaps.of(SlotTable.of(IntStream.range(0, table.slots()).map(table::partition).toArray()),
          loads, weights, most);
      assertEquals(moves, again);
    }
  }
}
