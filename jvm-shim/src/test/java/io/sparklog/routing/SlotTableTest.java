package io.sparklog.routing;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.format.Vectors;
import io.sparklog.kit.Seed;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

class SlotTableTest {
  private static final int PLANS = Seed.either(300, 2_000);

  @TestFactory
  Stream<DynamicTest> tablesAreThoseOfTheVectors() {
    SlotTable[] last = {null};
    return StreamSupport.stream(Vectors.load("slots.json").spliterator(), false).map(v -> {
      SlotTable before = before(v, last[0]);
      SlotTable after = before.after(before.replan(weights(v, before)));
      last[0] = v.get("note").textValue().startsWith("back") ? last[0] : after;
      return DynamicTest.dynamicTest(v.get("note").textValue(), () -> isRight(v, before));
    });
  }

  /** Long tables that are no fresh ones go on from the vector before. */
  private static SlotTable before(JsonNode v, SlotTable last) {
    if (v.get("before").isArray()) {
      return SlotTable.of(numbers(v.get("before")));
    }
    if (v.get("before_is").isTextual()) {
      String[] words = v.get("before_is").textValue().split("[ )(]+");
      return SlotTable.modulo(Integer.parseInt(words[2]), v.get("slots").intValue());
    }
    return last;
  }

  private static void isRight(JsonNode v, SlotTable before) throws Exception {
    int[] weights = weights(v, before);
    List<SlotTable.SlotMoves> moves = before.replan(weights);
    SlotTable after = before.after(moves);
    if (v.get("after").isArray()) {
      assertArrayEquals(numbers(v.get("after")), table(after));
    }
    String text = String.join(",", Arrays.stream(table(after)).mapToObj(Integer::toString).toList());
    assertEquals(v.get("after_digest").textValue(), blake2b64(text.getBytes(StandardCharsets.US_ASCII)));
    assertEquals(v.get("moved").intValue(), moved(moves));
    TreeSet<String> pairs = new TreeSet<>();
    moves.forEach(move -> Arrays.stream(move.slots()).forEach(slot -> pairs.add("[" + before.partition(slot) + "," + move.to() + "]")));
    TreeSet<String> expected = new TreeSet<>();
    v.get("pairs").forEach(pair -> expected.add(pair.toString()));
    assertEquals(expected, pairs);
    int[] counts = after.counts(weights.length);
    v.get("counts").properties().forEach(e -> assertEquals(e.getValue().intValue(), counts[Integer.parseInt(e.getKey())]));
    for (JsonNode move : v.get("first_moves")) {
      assertEquals(move.get(1).intValue(), before.partition(move.get(0).intValue()));
      assertEquals(move.get(2).intValue(), after.partition(move.get(0).intValue()));
    }
  }

  private static int[] weights(JsonNode v, SlotTable before) {
    int most = Arrays.stream(table(before)).max().orElseThrow();
    for (var e : v.get("weights").properties()) {
      most = Math.max(most, Integer.parseInt(e.getKey()));
    }
    int[] weights = new int[most + 1];
    v.get("weights").properties().forEach(e -> weights[Integer.parseInt(e.getKey())] = e.getValue().intValue());
    return weights;
  }

  private static int[] numbers(JsonNode array) {
    return StreamSupport.stream(array.spliterator(), false).mapToInt(JsonNode::intValue).toArray();
  }

  private static int[] table(SlotTable table) {
    return IntStream.range(0, table.slots()).map(table::partition).toArray();
  }

  private static int moved(List<SlotTable.SlotMoves> moves) {
    return moves.stream().mapToInt(move -> move.slots().length).sum();
  }

  @Test
  void plansMoveTheFewestSlotsThatMeetTheTargets() {
    for (int plan = 0; plan < PLANS; plan++) {
      Random random = new Random(plan);
      SlotTable table = SlotTable.modulo(1 + random.nextInt(12), 0 + 12 * 11 * 5 * 7 * 2);
      int partitions = 1 + Arrays.stream(table(table)).max().orElseThrow();
      for (int step = 0; step < 1 + random.nextInt(4); step++) {
        int next = partitions + random.nextInt(4);
        boolean equal = random.nextBoolean();
        int[] weights = random.ints(next, 0, 9).map(w -> equal ? Math.min(w, 1) : w).toArray();
        weights[random.nextInt(next)] = 1 + random.nextInt(equal ? 1 : 8);
        check("plan " + plan + " of " + Arrays.toString(weights), table, weights, equal);
        table = table.after(table.replan(weights));
        partitions = next;
      }
    }
  }

  private static void check(String plan, SlotTable table, int[] weights, boolean equal) {
    List<SlotTable.SlotMoves> moves = table.replan(weights);
    SlotTable after = table.after(moves);
    int[] before = table.counts(weights.length);
    int[] counts = after.counts(weights.length);
    long sum = Arrays.stream(weights).sum();
    int fewest = 0;
    for (int p = 0; p < weights.length; p++) {
      long share = (long) table.slots() * weights[p] / sum;
      assertTrue(counts[p] == share || counts[p] == share + 1 && weights[p] > 0, plan);
      fewest += Math.max(0, before[p] - counts[p]);
    }
    assertEquals(fewest, moved(moves), plan);
    int changed = (int) IntStream.range(0, table.slots()).filter(slot -> table.partition(slot) != after.partition(slot)).count();
    assertEquals(fewest, changed, plan);
    if (equal) {
      int[] open = IntStream.range(0, weights.length).filter(p -> weights[p] > 0).map(p -> counts[p]).toArray();
      assertTrue(Arrays.stream(open).max().orElseThrow() - Arrays.stream(open).min().orElseThrow() <= 1, plan);
    }
    int[] again = table(SlotTable.of(table(table)).after(SlotTable.of(table(table)).replan(weights)));
    assertArrayEquals(table(after), again, plan);
    assertTrue(after.isBalanced(weights), plan);
    if (equal) {
      assertEquals(0, moved(after.replan(weights)), plan + ", repeated");
    }
  }

  @Test
  void growingMovesSlotsToNewPartitionsOnly() {
    SlotTable table = SlotTable.modulo(4);
    for (int partitions = 5; partitions < 40; partitions++) {
      int[] equal = new int[partitions];
      Arrays.fill(equal, 1);
      for (SlotTable.SlotMoves move : table.replan(equal)) {
        assertEquals(partitions - 1, move.to());
        int[] sorted = move.slots().clone();
        Arrays.sort(sorted);
        assertArrayEquals(sorted, move.slots());
      }
      table = table.after(table.replan(equal));
    }
  }

  @Test
  void aFirstTableRoutesAsModuloDoes() {
    Random random = new Random(1);
    for (int partitions : new int[] {1, 2, 3, 7, 8, 100, 4095, 4096, 4097, 10_000}) {
      int[] equal = new int[partitions];
      Arrays.fill(equal, 1);
      SlotTable table = SlotTable.modulo(partitions);
      assertTrue(table.slots() >= 4096 && table.slots() % partitions == 0 && table.slots() < 4096 + partitions);
      for (Partitioner partitioner : List.of(Partitioner.MURMUR3, Partitioner.MURMUR2)) {
        Router slots = new Router(partitioner, false, 0, SlotTable.of(table.partitions()), equal);
        Router modulo = new Router(partitioner, partitions);
        assertTrue(modulo.admits(slots));
        assertTrue(slots.admits(modulo));
        for (int i = 0; i < 1_000; i++) {
          byte[] key = new byte[random.nextInt(20)];
          random.nextBytes(key);
          assertEquals(modulo.ofKey(key, 0, key.length), slots.ofKey(key, 0, key.length));
        }
      }
    }
  }

  /** So it takes few bytes in the plan of each write, and a program sees that the topic has no slots. */
  @Test
  void aTopicWithoutSlotsHasNoTableInMemory() throws IOException {
    SlotTable modulo = SlotTable.modulo(3);
    SlotTable slots = SlotTable.of(modulo.partitions());
    assertTrue(modulo.isModulo());
    assertFalse(slots.isModulo());
    assertFalse(modulo.after(List.of(new SlotTable.SlotMoves(1, new int[] {0}))).isModulo());
    assertEquals(slots, modulo);
    assertEquals(slots.hashCode(), modulo.hashCode());
    assertTrue(serialized(modulo) < 300, () -> "bytes: " + serialized(modulo));
    assertTrue(serialized(slots) > 2 * modulo.slots());
  }

  private static int serialized(SlotTable table) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(table);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.size();
  }

  @Test
  void theSlotOfAHashIsItsRemainder() {
    Random random = new Random(1);
    for (int slots : new int[] {1, 2, 3, 641, 4095, 4096, 4098, 10_000, 65_521, 65_535, 65_536}) {
      SlotTable table = SlotTable.of(IntStream.range(0, slots).toArray());
      int multiple = Integer.MAX_VALUE / slots * slots;
      IntStream chosen = IntStream.of(0, 1, -1, slots - 1, slots, slots + 1, multiple - 1, multiple, Integer.MAX_VALUE, Integer.MIN_VALUE);
      IntStream multiples = random.ints(10_000, 1, Integer.MAX_VALUE / slots).map(n -> n * slots).flatMap(m -> IntStream.of(m - 1, m, -m));
      IntStream.concat(IntStream.concat(chosen, multiples), random.ints(10_000))
          .forEach(
              hash -> assertEquals((hash & Integer.MAX_VALUE) % slots, table.partition(table.slot(hash)), () -> hash + " of " + slots));
    }
  }

  @Test
  void routersOfDifferentEpochsDiffer() {
    SlotTable table = SlotTable.modulo(2);
    Router first = new Router(Partitioner.MURMUR3, false, 1, table, new int[] {1, 1});
    assertTrue(first.admits(new Router(Partitioner.MURMUR3, false, 1, table, new int[] {1, 1})));
    assertFalse(first.admits(new Router(Partitioner.MURMUR3, false, 2, table, new int[] {1, 1})));
    assertFalse(first.admits(new Router(Partitioner.MURMUR3, 2)));
    Router closed = new Router(Partitioner.MURMUR3, false, 2, table.after(table.replan(new int[] {1, 0})), new int[] {1, 0});
    assertTrue(closed.isOpen(0));
    assertFalse(closed.isOpen(1));
    assertEquals("2 partitions by murmur3 in routing epoch 2", closed.toString());
  }

  /** The CRC of a table, FORMAT.md section A.2: two bytes for each slot, the low one first. */
  @Test
  void aTableHasTheCrcOfItsBytes() {
    java.util.zip.CRC32C crc = new java.util.zip.CRC32C();
    crc.update(new byte[] {0, 0, 0x0f, 0x27, 1, 0});
    assertEquals((int) crc.getValue(), SlotTable.of(new int[] {0, 9_999, 1}).crc());
  }

  /** BLAKE2b of 8 bytes, for the digests of the vectors (RFC 7693). */
  private static String blake2b64(byte[] data) {
    return Blake2b.hex(data, 8);
  }
}
