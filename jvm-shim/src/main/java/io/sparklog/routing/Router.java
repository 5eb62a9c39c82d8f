package io.sparklog.routing;

import java.io.Serializable;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * Where the records of a topic go by their keys: from the hash of a key to a partition. FORMAT.md annex A.
 *
 * <p>A topic's router must admit the router of each writer. Records without a key are for {@link NullKeyRouter}.
 */
public final class Router implements Serializable {
  private static final long serialVersionUID = 1;

  public static final int PARTITIONS_MAX = 10_000;

  private final Partitioner partitioner;
  private final boolean bindsSlots;
  private final int epoch;
  private final SlotTable table;
  /** By partition; a partition of weight 0 is closed. */
  private final int[] weights;
  /** By partition, of the slots that have none yet. */
  private final int[] shares;

  /** The router of a topic without slots. @param partitions how many it has, from 1 to {@link #PARTITIONS_MAX} */
  public Router(Partitioner partitioner, int partitions) {
    this(partitioner, false, 0, SlotTable.modulo(partitions), IntStream.generate(() -> 1).limit(partitions).toArray());
  }

  /**
   * The router of a topic in a routing epoch. In one topic, there is one table for each.
   *
   * @param bindsSlots whether a slot gets its partition with the first record of its keys
   * @param weights by partition; the partitions of weight 0 are closed
   */
  public Router(Partitioner partitioner, boolean bindsSlots, int epoch, SlotTable table, int[] weights) {
    this(partitioner, bindsSlots, epoch, table, weights, weights);
  }

  private Router(Partitioner partitioner, boolean bindsSlots, int epoch, SlotTable table, int[] weights, int[] shares) {
    this.partitioner = partitioner;
    this.bindsSlots = bindsSlots;
    this.epoch = epoch;
    this.table = table;
    this.weights = weights.clone();
    this.shares = shares.clone();
  }

  /** The same, but slots without a partition are shared in this way, and not by the weights. @param shares by partition */
  public Router sharing(int[] shares) {
    return new Router(partitioner, bindsSlots, epoch, table, weights, shares);
  }

  public Partitioner partitioner() {
    return partitioner;
  }

  public int partitions() {
    return weights.length;
  }

  /** By partition; a partition of weight 0 is closed. */
  public int[] weights() {
    return weights.clone();
  }

  public SlotTable table() {
    return table;
  }

  /** Whether records may go to a partition. */
  public boolean isOpen(int partition) {
    return weights[partition] > 0;
  }

  /** The partition of the key in [at, at + length). */
  public int ofKey(byte[] key, int at, int length) {
    int hash = partitioner.hash(key, at, length);
    int partition = table.ofHash(hash);
    return partition == SlotTable.UNBOUND ? place(table.slot(hash)) : partition;
  }

  /** The partition that a slot without one gets: the same for all that have equal shares. FORMAT.md annex A. */
  public int place(int slot) {
    int best = -1;
    long least = 0;
    long greatest = 0;
    byte[] hashed = new byte[2 * Integer.BYTES];
    for (int p = 0; p < shares.length; p++) {
      if (shares[p] > 0) {
        long draw = Race.draw(hashed, slot, p);
        if (best >= 0 && draw <= greatest && shares[p] <= shares[best]) {
          continue; // The logarithm, which takes longest, would be no less, of no greater share.
        }
        long race = Race.of(draw);
        if (best < 0 || race * shares[best] < least * shares[p]) {
          best = p;
          least = race;
          greatest = draw;
        }
      }
    }
    return best;
  }

  /** As {@link #ofKey(byte[], int, int)}, in a topic without slots with this number of partitions, which may differ at each call. */
  public static int ofKey(Partitioner partitioner, int partitions, byte[] key) {
    return Partitioner.positive(partitioner.hash(key, 0, key.length)) % partitions;
  }

  /**
   * Whether a write that was planned by a router may commit where this one is the newest. In routing epoch 0, a topic with slots routes
   * like a topic without slots. Slots that get their first partition do not count: the slots that a writer has chosen are compared one by
   * one.
   */
  public boolean admits(Router planned) {
    if (partitioner != planned.partitioner || weights.length != planned.weights.length || bindsSlots != planned.bindsSlots
        || epoch != planned.epoch) {
      return false;
    }
    boolean isSame = bindsSlots ? table.slots() == planned.table.slots() : epoch == 0 || table.equals(planned.table);
    return isSame && (epoch == 0 || Arrays.equals(weights, planned.weights));
  }

  /** {@code 8 partitions by murmur3}, {@code 9 partitions by murmur2 with 65536 slots, placed on first write, in routing epoch 2} */
  @Override
  public String toString() {
    return weights.length + " partitions by " + partitioner.optionName()
        + (bindsSlots ? " with " + table.slots() + " slots, placed on first write," : "") + (epoch > 0 ? " in routing epoch " + epoch : "");
  }

  /** The number of a slot and a partition in the choice of a partition for the slot. FORMAT.md annex A. */
  static final class Race {
    private static final int FRACTION_BITS = 24;
    private static final int HASH_BITS = 32;
    private static final int MANTISSA_BITS = 31;

    private Race() {}

    /**
     * h + 1, where h is the hash of both, from 1 to 2³². The number falls or stays as this rises.
     *
     * @param hashed eight bytes, which are overwritten
     */
    static long draw(byte[] hashed, int slot, int partition) {
      put(hashed, 0, slot);
      put(hashed, Integer.BYTES, partition);
      return 1 + Integer.toUnsignedLong(Murmur.murmur3(hashed, 0, hashed.length));
    }

    private static void put(byte[] to, int at, int number) {
      for (int i = 0; i < Integer.BYTES; i++) {
        to[at + i] = (byte) (number >>> Byte.SIZE * i);
      }
    }

    /** −log₂({@code draw} / 2³²) in units of 2⁻²⁴, at least 1. Integers alone: the same in each language. */
    static long of(long draw) {
      int whole = Long.SIZE - 1 - Long.numberOfLeadingZeros(draw);
      // From 1 to below 2, with 31 bits after the point.
      long mantissa = whole > MANTISSA_BITS ? draw >>> whole - MANTISSA_BITS : draw << MANTISSA_BITS - whole;
      long log = whole;
      for (int bit = 0; bit < FRACTION_BITS; bit++) {
        mantissa = mantissa * mantissa >>> MANTISSA_BITS;
        log <<= 1;
        if (mantissa >>> MANTISSA_BITS + 1 != 0) {
          mantissa >>>= 1;
          log |= 1;
        }
      }
      return Math.max(1, ((long) HASH_BITS << FRACTION_BITS) - log);
    }
  }
}
