package io.sparklog.routing;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.format.Vectors;
import io.sparklog.kit.Seed;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

class PartitionTest {
  private static final List<Partitioner> HASHES = List.of(Partitioner.MURMUR3, Partitioner.MURMUR2);

  @TestFactory
  Stream<DynamicTest> hashesAndPartitionsAreThoseOfOthers() {
    return HASHES.stream()
        .flatMap(partitioner -> StreamSupport.stream(Vectors.load("hashes.json").get(partitioner.optionName()).spliterator(), false)
            .map(v -> DynamicTest.dynamicTest(partitioner + " " + v.get("name").textValue(), () -> routes(partitioner, v))));
  }

  private static void routes(Partitioner partitioner, JsonNode v) {
    byte[] key = HexFormat.of().parseHex(v.get("key").textValue());
    byte[] amidst = new byte[key.length + 9];
    Arrays.fill(amidst, (byte) 0xff);
    System.arraycopy(key, 0, amidst, 5, key.length);
    int hash = partitioner == Partitioner.MURMUR3 ? Murmur.murmur3(amidst, 5, key.length) : Murmur.murmur2(amidst, 5, key.length);
    assertEquals(v.get("hash").intValue(), hash);
    for (var e : v.get("partitions").properties()) {
      Router router = new Router(partitioner, Integer.parseInt(e.getKey()));
      assertEquals(e.getValue().intValue(), router.ofKey(amidst, 5, key.length));
      assertEquals(e.getValue().intValue(), Router.ofKey(partitioner, router.partitions(), key));
    }
    Router router = new Router(partitioner, 9_973);
    assertEquals(router.ofKey(key, 0, key.length), router.ofKey(amidst, 5, key.length));
  }

  @Test
  void vectorsHaveNegativeHashesAndEachTail() {
    for (Partitioner partitioner : HASHES) {
      JsonNode vectors = Vectors.load("hashes.json").get(partitioner.optionName());
      assertTrue(StreamSupport.stream(vectors.spliterator(), false).anyMatch(v -> v.get("hash").intValue() < 0));
      for (int tail = 0; tail < 4; tail++) {
        int rest = tail;
        assertTrue(StreamSupport.stream(vectors.spliterator(), false).anyMatch(v -> v.get("key").textValue().length() / 2 % 4 == rest));
      }
    }
  }

  @Test
  void routersAreEqualIfTheyRouteAlike() {
    Router router = new Router(Partitioner.MURMUR3, 8);
    assertTrue(router.admits(new Router(Partitioner.MURMUR3, 8)));
    assertFalse(router.admits(new Router(Partitioner.MURMUR2, 8)));
    assertFalse(router.admits(new Router(Partitioner.MURMUR3, 9)));
    assertEquals("8 partitions by murmur3", router.toString());
  }

  @Test
  void names() {
    assertEquals(Partitioner.MURMUR3, Partitioner.named("murmur3"));
    assertEquals(Partitioner.MURMUR2, Partitioner.named("murmur2"));
    assertNull(Partitioner.named("MURMUR3"));
    assertNull(Partitioner.named(null));
  }

  private static int[] starts(long[] committed, long batchRecords, int tasks) {
    return IntStream.range(0, tasks)
        .map(task -> new NullKeyRouter(committed, equal(committed.length), batchRecords, false, tasks, task).partition())
        .toArray();
  }

  /**
   * Routes {@code batches} batches of {@code records} records in each of {@code tasks} tasks. @return the records of each partition
   * afterwards
   */
  private static long[] write(long[] committed, long batchRecords, int tasks, int batches, int records) {
    long[] totals = committed.clone();
    for (int task = 0; task < tasks; task++) {
      NullKeyRouter router = new NullKeyRouter(committed, equal(committed.length), batchRecords, false, tasks, task);
      for (int batch = 0; batch < batches; batch++) {
        for (int record = 0; record < records; record++) {
          totals[router.partition()]++;
          router.count();
        }
        router.next(0);
      }
    }
    return totals;
  }

  @Test
  void eachTaskBeginsWhereThoseBeforeItLeaveLeast() {
    assertArrayEquals(new int[] {0, 1, 2, 0, 1, 2}, starts(new long[3], 1, 6)); // ties by number, then around again
    assertArrayEquals(new int[] {1, 3, 1, 3, 1, 3}, starts(new long[] {30, 10, 20, 10}, 10, 6)); // what is above the average is left out
    assertArrayEquals(new int[] {2, 2, 1, 2, 1, 2}, starts(new long[] {90, 20, 0}, 10, 6)); // 0, 10; then 20 and 20: the lower number
  }

  /** The shape that a scheme of "the i-th task begins at the i-th emptiest" gets wrong. */
  @Test
  void aPartitionThatIsAheadByMoreThanAWriteGetsNothingOfIt() {
    for (long batchRecords : new long[] {1, 100, 1250, 1_000_000}) {
      for (int tasks : new int[] {1, 4, 8, 40}) {
        long[] totals = write(new long[] {2000, 1000, 1000, 1000}, batchRecords, tasks, 1, 20);
        assertEquals(2000, totals[0], "batches of " + batchRecords + ", tasks " + tasks);
        assertEquals(5000 + tasks * 20L, Arrays.stream(totals).sum());
      }
    }
  }

  @Test
  void aPartitionIsLeftOutUntilTheOthersHaveCaughtUp() {
    long seed = Seed.draw();
    Random random = new Random(seed);
    for (int round = 0; round < 300; round++) {
      int tasks = 1 + random.nextInt(30);
      int batches = 1 + random.nextInt(5);
      int records = 1 + random.nextInt(50);
      long[] committed = random.longs(2 + random.nextInt(10), 0, 1 + random.nextInt(1000)).toArray();
      int far = random.nextInt(committed.length);
      committed[far] = 1000 + (long) tasks * batches * records + 1;
      long[] totals = write(committed, 1 + random.nextInt(200), tasks, batches, records);
      assertEquals(committed[far], totals[far], "seed " + seed + " round " + round);
    }
  }

  @Test
  void aTaskGoesOnWhereAllTasksTogetherLeaveLeast() {
    long[] committed = {0, 100, 55};
    NullKeyRouter router = new NullKeyRouter(committed, equal(committed.length), 1, false, 10, 0);
    assertEquals(0, router.partition());
    for (int i = 0; i < 4; i++) {
      router.count();
    }
    router.next(0);
    assertEquals(0, router.partition()); // all ten were there: 40 is still less than 55
    router.next(0);
    assertEquals(0, router.partition()); // a batch in which it has no records is not its own
    router.count();
    assertEquals(0, router.partition()); // stays until the batch is closed
    router.next(0);
    assertEquals(0, router.partition()); // seven of the ten were there: 47
    for (int i = 0; i < 6; i++) {
      router.count();
    }
    router.next(0);
    assertEquals(2, router.partition()); // 47 + 10 × 6 is more than the 55 + 3 there
    assertEquals(0, committed[0]);
  }

  @Test
  void bytesAreLevelledWhereThatIsAskedFor() {
    for (boolean byBytes : new boolean[] {false, true}) {
      NullKeyRouter router = new NullKeyRouter(new long[] {0, 1000}, equal(2), 100, byBytes, 1, 0);
      int[] batches = new int[2];
      for (int batch = 0; batch < 30; batch++) {
        batches[router.partition()]++;
        for (int record = 0; record < 100; record++) {
          router.count();
        }
        router.next(1000);
      }
      assertArrayEquals(byBytes ? new int[] {16, 14} : new int[] {20, 10}, batches);
    }
  }

  @Test
  void loadsBeyondALongAreLarge() {
    NullKeyRouter router = new NullKeyRouter(new long[] {Long.MAX_VALUE, Long.MAX_VALUE - 5}, new int[] {1, 1}, 1, false, 100, 0);
    assertEquals(1, router.partition());
    router.count();
    router.next(0);
    assertEquals(0, router.partition());
  }

  /** Loads before a write, the records of its tasks on average, and how far apart the loads may be after it, as a part of their mean. */
  private record Unequal(String name, long[] loads, int records, double most) {
    @Override
    public String toString() {
      return name;
    }
  }

  /** The records of 16 tasks, as parts of 1,000 of their mean. */
  private static final int[] PARTS = {634, 755, 1261, 1152, 594, 1393, 933, 1196, 1222, 1091, 1401, 522, 1439, 1186, 1226, 1264};

  private static final long[] LEVEL = {5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000};

  static final List<Unequal> UNEQUAL = List.of(new Unequal("level, 100,000 records", new long[8], 6250, 0.027),
      new Unequal("a partition is 20,000 behind", new long[] {100_000, 100_000, 100_000, 100_000, 100_000, 100_000, 100_000, 80_000}, 6250,
          0.009),
      new Unequal("loads of 10,000 to 80,000", new long[] {10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000, 80_000}, 50_000, 0.006),
      new Unequal("1,000 records", LEVEL, 62, 0.0125));

  /** A write of 16 tasks, in batches of 160 records. @return the loads after it */
  private static long[] write(long[] loads, int records) {
    long[] totals = loads.clone();
    for (int task = 0; task < PARTS.length; task++) {
      NullKeyRouter router = new NullKeyRouter(loads, equal(loads.length), 160, false, PARTS.length, task);
      for (int i = 1; i <= records * PARTS[task] / 1000; i++) {
        totals[router.partition()]++;
        router.count();
        if (i % 160 == 0) {
          router.next(0);
        }
      }
    }
    return totals;
  }

  private static double spread(long[] loads) {
    return (Arrays.stream(loads).max().orElseThrow() - Arrays.stream(loads).min().orElseThrow())
        / Arrays.stream(loads).average().orElseThrow();
  }

  @ParameterizedTest
  @FieldSource("UNEQUAL")
  void tasksThatDoNotWriteAlikeEndNearLevel(Unequal given) {
    assertTrue(spread(write(given.loads, given.records)) <= given.most, given + ": " + spread(write(given.loads, given.records)));
  }

  @Test
  void smallWritesOneAfterAnotherEndNearLevel() {
    long[] loads = LEVEL;
    for (int write = 0; write < 20; write++) {
      loads = write(loads, 62);
    }
    assertTrue(spread(loads) <= 0.04, Arrays.toString(loads));
  }

  /** Loads that are counted since partitions changed begin at 0. */
  @Test
  void anAddedPartitionGetsItsShare() {
    long[] totals = write(new long[9], 62_500);
    assertEquals(1 / 9.0, totals[8] / (double) Arrays.stream(totals).sum(), 0.002);
  }

  @Test
  void tasksThatWriteAlikeEndWithinABatchOfLevel() {
    long[] committed = {60_000, 0, 40_000, 10_000, 0, 0, 70_000, 5_000};
    for (long batchRecords : new long[] {1, 100, 5000}) {
      long[] totals = write(committed, batchRecords, 20, 200, 100);
      long least = Arrays.stream(totals).min().orElseThrow();
      long most = Arrays.stream(totals).max().orElseThrow();
      assertTrue(most - least <= 100, Arrays.toString(totals));
    }
  }

  static int[] equal(int partitions) {
    int[] equal = new int[partitions];
    Arrays.fill(equal, 1);
    return equal;
  }
}
