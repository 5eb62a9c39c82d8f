package io.sparklog.partition;

import java.io.Serializable;
import java.util.List;

/** The partitions of all keys in one routing epoch: by slot, but for keys that have a pin. FORMAT.md section 13. */
public record KeyTable(SlotTable slots, Pins pins) implements Serializable {
  /** The table of slots alone. */
  public static KeyTable of(SlotTable slots) {
    return new KeyTable(slots, Pins.NONE);
  }

  /** The partition of a key; {@link SlotTable#UNBOUND} if it has none yet. */
  public int partition(Partitioner partitioner, byte[] key) {
    int pinned = pins.of(key);
    return pinned == Pins.ENDED ? slots.partition(slots.slot(partitioner, key)) : pinned;
  }

  /** The table after these slots have got their first partitions. */
  public KeyTable bound(List<SlotMoves> moved) {
    return new KeyTable(slots.after(moved), pins);
  }
}
