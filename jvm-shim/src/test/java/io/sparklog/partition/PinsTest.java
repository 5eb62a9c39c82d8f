package io.sparklog.partition;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Keys that go to partitions of their own choice. FORMAT.md section 13. */
final class PinsTest {
  private static byte[] key(Random random) {
    byte[] key = new byte[random.nextInt(4)];
    random.nextBytes(key);
    return key;
  }

  private static Pins of(Map<byte[], Integer> pins) {
    return Pins.of(pins.keySet().toArray(byte[][]::new), pins.values().stream().mapToInt(to -> to).toArray());
  }

  @Test
  void changesComeOneAfterAnother() {
    for (int seed = 0; seed < 300; seed++) {
      Random random = new Random(seed);
      Pins pins = Pins.NONE;
      TreeMap<byte[], Integer> expected = new TreeMap<>(Arrays::compareUnsigned);
      for (int round = 0; round < 12; round++) {
        TreeMap<byte[], Integer> changes = new TreeMap<>(Arrays::compareUnsigned);
        for (int i = random.nextInt(30); i >= 0; i--) {
          changes.put(key(random), random.nextInt(3) == 0 ? Pins.ENDED : random.nextInt(9));
        }
        List<byte[]> changed = new ArrayList<>();
        for (Map.Entry<byte[], Integer> change : changes.entrySet()) {
          if (expected.getOrDefault(change.getKey(), Pins.ENDED).intValue() != change.getValue()) {
            changed.add(change.getKey());
          }
        }
        Pins effective = pins.changedBy(of(changes));
        assertEquals(changed.size(), effective.size(), "seed " + seed);
        pins = pins.after(random.nextBoolean() ? effective : of(changes));
        changes.forEach((key, to) -> {
          if (to == Pins.ENDED) {
            expected.remove(key);
          } else {
            expected.put(key, to);
          }
        });
        assertEquals(of(expected), pins, "seed " + seed);
        byte[] data = new byte[40];
        for (int i = 0; i < 40; i++) {
          byte[] key = key(random);
          int at = random.nextInt(30);
          System.arraycopy(key, 0, data, at, key.length);
          int to = expected.getOrDefault(key, Pins.ENDED);
          assertEquals(to, pins.of(data, at, key.length), "seed " + seed);
          assertEquals(to, pins.of(key));
        }
        int[] counts = new int[9];
        expected.values().forEach(to -> counts[to]++);
        assertArrayEquals(counts, pins.counts(9));
      }
    }
  }

  @Test
  void aKeyIsShownAsTextOrAsBytes() {
    assertEquals("Käse", Pins.shown("Käse".getBytes(StandardCharsets.UTF_8)));
    assertEquals("X'00ff'", Pins.shown(new byte[] {0, -1}));
    assertEquals("X'610a'", Pins.shown("a\n".getBytes(StandardCharsets.UTF_8)));
  }

  /** A pinned key uses no slot: the slot stays without a partition until another key is written. */
  @Test
  void aPinnedKeyBindsNoSlot() {
    byte[] pinned = "pinned".getBytes(StandardCharsets.UTF_8);
    byte[] other = "other".getBytes(StandardCharsets.UTF_8);
    KeyTable keys = new KeyTable(SlotTable.unbound(4096), Pins.of(List.of(pinned, pinned), 2));
    Bindings bindings = new Bindings(new Router(Partitioner.LAG_AWARE, 1, keys, new int[] {1, 0, 5}));
    assertEquals(2, bindings.ofKey(pinned, 0, pinned.length));
    assertTrue(bindings.used().isEmpty());
    bindings.ofKey(other, 0, other.length);
    BitSet used = new BitSet();
    bindings.used().addTo(used);
    assertArrayEquals(new int[] {keys.slots().slot(Partitioner.LAG_AWARE, other)}, used.stream().toArray());
    assertTrue(keys.partition(Partitioner.LAG_AWARE, pinned) == 2 && keys.partition(Partitioner.LAG_AWARE, other) == SlotTable.UNBOUND);
  }
}
