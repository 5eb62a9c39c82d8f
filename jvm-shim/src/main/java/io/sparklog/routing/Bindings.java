package io.sparklog.routing;

import java.util.Arrays;
import java.util.BitSet;

/** The partitions of keys, and the slots that a task has used which had none when the write was planned. Not thread-safe. */
public final class Bindings {
  private final Router router;
  private final BitSet used = new BitSet();
  /** By slot; only used slots. */
  private char[] chosen = {};

  public Bindings(Router router) {
    this.router = router;
  }

  /** The partition of the key in [at, at + length). */
  public int ofKey(byte[] key, int at, int length) {
    int hash = router.partitioner().hash(key, at, length);
    int partition = router.table().ofHash(hash);
    if (partition != SlotTable.UNBOUND) {
      return partition;
    }
    int slot = router.table().slot(hash);
    if (!used.get(slot)) {
      used.set(slot);
      chosen = chosen.length > slot ? chosen : Arrays.copyOf(chosen, Math.max(slot + 1, 2 * chosen.length));
      chosen[slot] = (char) router.place(slot);
    }
    return chosen[slot];
  }

  /** The used slots that had no partition. */
  public SlotSet used() {
    return new SlotSet(used);
  }
}
