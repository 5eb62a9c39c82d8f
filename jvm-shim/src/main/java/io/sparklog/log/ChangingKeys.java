package io.sparklog.log;

import io.sparklog.partition.KeyTable;
import io.sparklog.partition.Pins;
import io.sparklog.partition.SlotMoves;
import io.sparklog.partition.SlotTable;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.IntStream;

/** A table of keys that re-routes change one after another: it is copied once for all of them. FORMAT.md sections 5 and 10. */
final class ChangingKeys {
  private final KeyTable from;
  /** By slot; null until one moves. */
  private int[] slots;
  /** By key; null until one changes. */
  private TreeMap<byte[], Integer> pins;

  ChangingKeys(KeyTable from) {
    this.from = from;
  }

  /** Makes the changes of a re-route. Damaged if one changes nothing or moves a slot without a partition, or there are too many pins. */
  void change(List<SlotMoves> moved, Pins changes) throws Damaged {
    if (slots == null && !moved.isEmpty()) {
      slots = IntStream.range(0, from.slots().slots()).map(from.slots()::partition).toArray();
    }
    for (SlotMoves moves : moved) {
      for (int slot : moves.slots()) {
        Damaged.unless(slots[slot] != SlotTable.UNBOUND, "it moves slot " + slot + ", which has no partition");
        Damaged.unless(slots[slot] != moves.to(), "slot " + slot + " is in partition " + moves.to() + " already");
        slots[slot] = moves.to();
      }
    }
    if (pins == null && !changes.isEmpty()) {
      pins = new TreeMap<>(Arrays::compareUnsigned);
      change(pins, from.pins());
    }
    change(pins, changes);
    Damaged.unless(pins == null || pins.size() <= Pins.COUNT_MAX, "it has more than " + Pins.COUNT_MAX + " pins");
  }

  private static void change(TreeMap<byte[], Integer> pins, Pins changes) throws Damaged {
    for (int i = 0; i < changes.size(); i++) {
      int to = changes.partition(i);
      Integer before = to == Pins.ENDED ? pins.remove(changes.key(i)) : pins.put(changes.key(i), to);
      Damaged.unless((before == null ? Pins.ENDED : before) != to, "it pins a key to its partition, or ends a pin that there is not");
    }
  }

  KeyTable now() {
    return new KeyTable(slots == null ? from.slots() : SlotTable.of(slots),
        pins == null ? from.pins() : Pins.of(pins.keySet().toArray(byte[][]::new), pins.values().stream().mapToInt(to -> to).toArray()));
  }
}
