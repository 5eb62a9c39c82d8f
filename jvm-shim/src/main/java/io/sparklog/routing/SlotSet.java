package io.sparklog.routing;

import java.io.Serializable;
import java.util.BitSet;

/** Slots as a task reports them: four bytes for each, or one bit for each slot of the topic, whichever is less. At most 128 KiB. */
public final class SlotSet implements Serializable {
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
