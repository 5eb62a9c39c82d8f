package io.sparklog.partition;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.format.Vectors;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

class PartitionTest {
  @TestFactory
  Stream<DynamicTest> hashesAndPartitionsAreThoseOfOthers() {
    return Stream.of(Partitioner.values())
        .flatMap(
            partitioner ->
                StreamSupport.stream(Vectors.load("hashes.json").get(partitioner.optionName()).spliterator(), false)
                    .map(v -> DynamicTest.dynamicTest(partitioner + " " + v.get("name").textValue(), () -> routes(partitioner, v))));
  }

  private static void routes(Partitioner partitioner, JsonNode v) {
    byte[] key = HexFormat.of().parseHex(v.get("key").textValue());
    byte[] amidst = new byte[key.length + 9];
    Arrays.fill(amidst, (byte) 0xff);
    System.arraycopy(key, 0, amidst, 5, key.length);
    int hash = partitioner == Partitioner.MURMUR3 ? KeyHash.murmur3(amidst, 5, key.length) : KeyHash.murmur2(amidst, 5, key.length);
    assertEquals(v.get("hash").intValue(), hash);
    for (var e : v.get("partitions").properties()) {
      assertEquals(e.getValue().intValue(), partitioner.partition(amidst, 5, key.length, Integer.parseInt(e.getKey())));
    }
    assertEquals(partitioner.partition(key, 0, key.length, 9_973), partitioner.partition(amidst, 5, key.length, 9_973));
  }

  @Test
  void vectorsHaveNegativeHashesAndEachTail() {
    for (Partitioner partitioner : Partitioner.values()) {
      JsonNode vectors = Vectors.load("hashes.json").get(partitioner.optionName());
      assertTrue(StreamSupport.stream(vectors.spliterator(), false).anyMatch(v -> v.get("hash").intValue() < 0));
      for (int tail = 0; tail < 4; tail++) {
        int rest = tail;
        assertTrue(StreamSupport.stream(vectors.spliterator(), false).anyMatch(v -> v.get("key").textValue().length() / 2 % 4 == rest));
      }
    }
  }

  @Test
  void names() {
    assertEquals(Partitioner.MURMUR3, Partitioner.named("murmur3"));
    assertEquals(Partitioner.MURMUR2, Partitioner.named("murmur2"));
    assertNull(Partitioner.named("MURMUR3"));
    assertNull(Partitioner.named(null));
  }

  @Test
  void tasksBeginAtTheEmptiestPartitions() {
    long[] committed = {30, 10, 20, 10};
    int[] first = new int[6];
    for (int task = 0; task < 6; task++) {
      first[task] = new NullKeyRouter(committed, 6, task).partition();
    }
    assertEquals("[1, 3, 2, 0, 1, 3]", Arrays.toString(first)); // ties by number, then around again
  }

  @Test
  void aTaskGoesWhereItsOwnRecordsTimesTasksLeaveLeast() {
    long[] committed = {0, 100, 50};
    NullKeyRouter router = new NullKeyRouter(committed, 10, 0);
    assertEquals(0, router.partition());
    for (int i = 0; i < 4; i++) {
      router.count();
    }
    router.next();
    assertEquals(0, router.partition()); // 4 × 10 is still less than 50
    router.count();
    router.next();
    assertEquals(0, router.partition()); // 50 and 50: the lower number
    router.count();
    assertEquals(0, router.partition()); // stays until the batch is closed
    router.next();
    assertEquals(2, router.partition());
    assertEquals(0, committed[0]);
  }

  @Test
  void loadsBeyondALongAreLarge() {
    NullKeyRouter router = new NullKeyRouter(new long[] {Long.MAX_VALUE, Long.MAX_VALUE - 5}, 100, 0);
    assertEquals(1, router.partition());
    router.count();
    router.next();
    assertEquals(0, router.partition());
  }

  @Test
  void tasksThatThinkAlikeEndLevel() {
    int tasks = 20;
    long[] committed = {60_000, 0, 40_000, 10_000, 0, 0, 70_000, 5_000};
    long[] totals = committed.clone();
    for (int task = 0; task < tasks; task++) {
      NullKeyRouter router = new NullKeyRouter(committed, tasks, task);
      for (int batch = 0; batch < 200; batch++) {
        for (int record = 0; record < 100; record++) {
          totals[router.partition()]++;
          router.count();
        }
        router.next();
      }
    }
    long least = Arrays.stream(totals).min().orElseThrow();
    long most = Arrays.stream(totals).max().orElseThrow();
    assertTrue(most - least < most / 20, Arrays.toString(totals));
  }
}
