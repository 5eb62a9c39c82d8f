package io.sparklog.routing;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.format.Vectors;
import io.sparklog.kit.Seed;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;

/** The partition that an unbound slot gets. FORMAT.md annex A. */
final class PlacementTest {
  private static int[] numbers(JsonNode array) {
    return StreamSupport.stream(array.spliterator(), false).mapToInt(JsonNode::intValue).toArray();
  }

  private static Router router(int... shares) {
    int[] equal = new int[shares.length];
    Arrays.fill(equal, 1);
    return new Router(Partitioner.MURMUR3, true, 0, SlotTable.unbound(1 << 16), equal).sharing(shares);
  }

  @Test
  void numbersAreThoseOfTheVectors() {
    for (JsonNode race : Vectors.load("placement.json").get("races")) {
      assertEquals(race.get(2).longValue(), number(race.get(0).intValue(), race.get(1).intValue()), race.toString());
    }
  }

  @Test
  void placesAreThoseOfTheVectors() {
    for (JsonNode each : Vectors.load("placement.json").get("cases")) {
      Router router = router(numbers(each.get("shares")));
      assertArrayEquals(numbers(each.get("partitions")), Arrays.stream(numbers(each.get("slots"))).map(router::place).toArray());
    }
  }

  @Test
  void keysGoWhereTheVectorsSay() {
    for (JsonNode each : Vectors.load("placement.json").get("keys")) {
      int[] shares = numbers(each.get("shares"));
      byte[] key = HexFormat.of().parseHex(each.get("key").textValue());
      SlotTable unbound = SlotTable.unbound(each.get("slots").intValue());
      Router router = new Router(Partitioner.named(each.get("partitioner").textValue()), true, 0, unbound, shares);
      assertEquals(each.get("slot").intValue(), router.table().slot(router.partitioner(), key), each.toString());
      assertEquals(each.get("partition").intValue(), router.ofKey(key, 0, key.length), each.toString());
    }
  }

  private static long number(int slot, int partition) {
    return Router.Race.of(Router.Race.draw(new byte[2 * Integer.BYTES], slot, partition));
  }

  /** A partition is left out without its number where another one is before it in any case. */
  @Test
  void thePlaceIsThatOfTheLeastNumberForItsShare() {
    Random random = new Random(Seed.draw());
    for (int round = 0; round < 300; round++) {
      int most = random.nextBoolean() ? 3 : SlotTable.WEIGHT_MAX;
      int[] shares = random.ints(1 + random.nextInt(30), 0, most).toArray();
      shares[random.nextInt(shares.length)] = 1;
      for (int slot = 0; slot < 100; slot++) {
        int of = slot;
        int best = IntStream.range(0, shares.length)
            .filter(p -> shares[p] > 0)
            .reduce((one, other) -> number(of, other) * shares[one] < number(of, one) * shares[other] ? other : one)
            .getAsInt();
        assertEquals(best, router(shares).place(slot), () -> of + " of " + Arrays.toString(shares));
      }
    }
  }

  /** The greatest shares there can be do not overflow: 40 partitions of each a million share alike. */
  @Test
  void sharesMayBeAsGreatAsWeights() {
    int[] ones = new int[40];
    int[] most = new int[40];
    Arrays.fill(ones, 1);
    Arrays.fill(most, SlotTable.WEIGHT_MAX);
    for (int slot = 0; slot < 2_000; slot++) {
      assertEquals(router(ones).place(slot), router(most).place(slot));
    }
  }

  @Test
  void aTaskReportsTheSlotsThatItUsedOnceEach() {
    Bindings bindings = new Bindings(router(1, 1));
    byte[] one = "one".getBytes(StandardCharsets.UTF_8);
    byte[] two = "two".getBytes(StandardCharsets.UTF_8);
    int slot = router(1, 1).table().slot(Partitioner.MURMUR3, one);
    assertEquals(router(1, 1).place(slot), bindings.ofKey(one, 0, one.length));
    bindings.ofKey(two, 0, two.length);
    bindings.ofKey(one, 0, one.length);
    BitSet expected = new BitSet();
    expected.set(slot);
    expected.set(router(1, 1).table().slot(Partitioner.MURMUR3, two));
    BitSet found = new BitSet();
    bindings.used().addTo(found);
    assertEquals(expected, found);
    Bindings modulo = new Bindings(new Router(Partitioner.MURMUR3, 2));
    modulo.ofKey(one, 0, one.length);
    assertTrue(modulo.used().isEmpty());
  }

  @Test
  void aSetOfSlotsIsSmallWhateverIsInIt() throws Exception {
    Random random = new Random(Seed.draw());
    for (int count : new int[] {0, 1, 1000, 40_000, SlotTable.SLOTS_MAX}) {
      BitSet slots = new BitSet();
      for (int i = 0; i < count; i++) {
        slots.set(count == SlotTable.SLOTS_MAX ? i : random.nextInt(SlotTable.SLOTS_MAX));
      }
      ByteArrayOutputStream sent = new ByteArrayOutputStream();
      try (ObjectOutputStream out = new ObjectOutputStream(sent)) {
        out.writeObject(new Bindings.SlotSet(slots));
      }
      assertTrue(sent.size() <= Math.min(4L * count, SlotTable.SLOTS_MAX / 8) + 200, count + " slots: " + sent.size() + " bytes");
      try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(sent.toByteArray()))) {
        Bindings.SlotSet received = (Bindings.SlotSet) in.readObject();
        BitSet found = new BitSet();
        received.addTo(found);
        assertEquals(slots, found);
        assertEquals(count == 0, received.isEmpty());
      }
    }
  }
}
