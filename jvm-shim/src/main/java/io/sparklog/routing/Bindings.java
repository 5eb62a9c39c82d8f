package io.sparklog.routing;

import java.io.Serializable;
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

  /** Slots as a task reports them: four bytes for each, or one bit for each slot of the topic, whichever is less. At most 128 KiB. */
  public static final class SlotSet implements Serializable {
    public static final SlotSet NONE = new SlotSet(new BitSet());

    private static final long serialVersionUID = 1;

    /** Null if there are many; {@link #bits} is null otherwise. */
    private final int[] few;
    private final long[] bits;

    /** Those of the bits that are set. */
    public SlotSet(BitSet slots) {
      long[] all = slots.toLongArray();
      boolean areFew = (long) slots.cardinality() * Integer.BYTES <= (long) all.length * Long.BYTES;
      few = areFew ? slots.stream().toArray() : null;
      bits = areFew ? null : all;
    }

    public boolean isEmpty() {
      return bits == null && few.length == 0;
    }

    /** Sets the bit of each slot. */
    public void addTo(BitSet slots) {
      if (bits != null) {
        slots.or(BitSet.valueOf(bits));
        return;
      }
      for (int slot : few) {
        slots.set(slot);
      }
    }
  }
}
