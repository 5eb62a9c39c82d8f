package io.sparklog.partition;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.format.Vectors;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;

/** The partition of a slot that has none yet. FORMAT.md section 13. */
final class PlacementTest {
  private static int[] numbers(JsonNode array) {
    return StreamSupport.stream(array.spliterator(), false).mapToInt(JsonNode::intValue).toArray();
  }

  private static Router router(int... shares) {
    int[] equal = new int[shares.length];
    Arrays.fill(equal, 1);
    return new Router(Partitioner.LAG_AWARE, 0, KeyTable.of(SlotTable.unbound(1 << 16)), equal).sharing(shares);
  }

  @Test
  void numbersAreThoseOfTheVectors() {
    for (JsonNode race : Vectors.load("placement.json").get("races")) {
      assertEquals(race.get(2).longValue(), Race.of(new byte[8], race.get(0).intValue(), race.get(1).intValue()), race.toString());
    }
  }

  @Test
  void placesAreThoseOfTheVectors() {
    for (JsonNode each : Vectors.load("placement.json").get("cases")) {
      Router router = router(numbers(each.get("shares")));
      assertArrayEquals(numbers(each.get("partitions")), Arrays.stream(numbers(each.get("slots"))).map(router::place).toArray());
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
    int slot = router(1, 1).table().slot(Partitioner.LAG_AWARE, one);
    assertEquals(router(1, 1).place(slot), bindings.ofKey(one, 0, one.length));
    bindings.ofKey(two, 0, two.length);
    bindings.ofKey(one, 0, one.length);
    int[] expected = {slot, router(1, 1).table().slot(Partitioner.LAG_AWARE, two)};
    Arrays.sort(expected);
    assertArrayEquals(expected, bindings.used());
    Bindings modulo = new Bindings(new Router(Partitioner.MURMUR3, 2));
    modulo.ofKey(one, 0, one.length);
    assertEquals(0, modulo.used().length);
  }
}
