package io.sparklog.routing;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.zip.CRC32C;

/** Which partition has each slot. Never changes: moves make another table. FORMAT.md annex A. */
public final class SlotTable implements Serializable {
  private static final long serialVersionUID = 1;

  /** As many slots as a topic can have. FORMAT.md annex A. */
  public static final int SLOTS_MAX = 1 << 20;

  /** In place of the partition of a slot that has none yet. */
  public static final int UNBOUND = 0xffff;

  public static final int WEIGHT_MAX = 1_000_000;

  /** A topic gets at least this many slots. */
  private static final int SLOTS_LEAST = 4096;

  private final int slots;
  /** 2⁶⁴ / slots, rounded up; modulo 2⁶⁴. */
  private final long inverse;
  /** How many partitions a topic without slots has; 0 if it has slots. */
  private final int modulo;
  /** By slot; null if the topic has no slots. */
  private final char[] partitions;

  private SlotTable(int slots, int modulo, char[] partitions) {
    this.slots = slots;
    this.inverse = Long.divideUnsigned(-1, slots) + 1;
    this.modulo = modulo;
    this.partitions = partitions;
  }

  /** @param partitions of each slot, from 0 to {@link Router#PARTITIONS_MAX} − 1, or {@link #UNBOUND} */
  public static SlotTable of(int[] partitions) {
    char[] table = new char[partitions.length];
    for (int slot = 0; slot < table.length; slot++) {
      table[slot] = (char) partitions[slot];
    }
    return new SlotTable(table.length, 0, table);
  }

  /** The table that routes as hashing modulo {@code partitions} does: it has a multiple of so many slots. */
  public static SlotTable modulo(int partitions) {
    return modulo(partitions, partitions * ((SLOTS_LEAST + partitions - 1) / partitions));
  }

  /** As {@link #modulo(int)}, with a given number of slots. */
  public static SlotTable modulo(int partitions, int slots) {
    return new SlotTable(slots, partitions, null);
  }

  /** The table of a topic that begins with {@code slots} slots without partitions. */
  public static SlotTable unbound(int slots) {
    char[] table = new char[slots];
    Arrays.fill(table, (char) UNBOUND);
    return new SlotTable(table.length, 0, table);
  }

  /** Whether the partition of a key is its hash modulo the number of partitions: the topic has no slots. */
  public boolean isModulo() {
    return modulo > 0;
  }

  public int slots() {
    return slots;
  }

  /** The partition of a slot; {@link #UNBOUND} if it has none. */
  public int partition(int slot) {
    return modulo > 0 ? slot % modulo : partitions[slot];
  }

  /** The partition of each slot; {@link #UNBOUND} for a slot without a partition. */
  public int[] partitions() {
    return IntStream.range(0, slots).map(this::partition).toArray();
  }

  /** The partition of the keys with a hash; {@link #UNBOUND} if their slot has no partition. */
  int ofHash(int hash) {
    return modulo > 0 ? Partitioner.positive(hash) % modulo : partitions[slot(hash)];
  }

  /** The partition of a key; {@link #UNBOUND} if its slot has none. */
  public int partition(Partitioner partitioner, byte[] key) {
    return ofHash(partitioner.hash(key, 0, key.length));
  }

  /** The slot of a key. */
  public int slot(Partitioner partitioner, byte[] key) {
    return slot(partitioner, key, 0, key.length);
  }

  /** The slot of the key in [at, at + length). */
  public int slot(Partitioner partitioner, byte[] key, int at, int length) {
    return slot(partitioner.hash(key, at, length));
  }

  /**
   * The hash without its sign, modulo the number of slots. For 32 bits that is the whole part of slots * f, where f is the fraction of hash
   * / slots in 64 bits. Two multiplications take less time than a division.
   */
  int slot(int hash) {
    long fraction = inverse * Partitioner.positive(hash);
    // The high half of a product without signs.
    return (int) (Math.multiplyHigh(fraction, slots) + (fraction >> Long.SIZE - 1 & slots));
  }

  /** How many slots each of {@code count} partitions has. */
  public int[] counts(int count) {
    int[] counts = new int[count];
    for (int slot = 0; slot < slots; slot++) {
      if (partition(slot) != UNBOUND) {
        counts[partition(slot)]++;
      }
    }
    return counts;
  }

  /** The CRC-32C of the partitions of all slots, each as two bytes with the low one first. */
  public int crc() {
    byte[] bytes = new byte[2 * slots];
    for (int slot = 0; slot < slots; slot++) {
      bytes[2 * slot] = (byte) partition(slot);
      bytes[2 * slot + 1] = (byte) (partition(slot) >>> 8);
    }
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    return (int) crc.getValue();
  }

  /** The table after these moves. */
  public SlotTable after(List<SlotMoves> moves) {
    if (moves.isEmpty()) {
      return this;
    }
    int[] table = partitions();
    for (SlotMoves move : moves) {
      for (int slot : move.slots()) {
        table[slot] = move.to();
      }
    }
    return of(table);
  }

  /**
   * The fewest moves that give each partition its share of the slots that are bound. They depend on the table and on the weights alone.
   *
   * @param weights by partition, from 0 to {@link #WEIGHT_MAX}, not all 0; every partition that has a slot must have one. A partition of
   *     weight 0 keeps no slot
   * @return by partition
   */
  public List<SlotMoves> replan(int[] weights) {
    int[] owned = counts(weights.length);
    int[] targets = targets(owned, weights);
    int[] given = given(owned, targets);
    List<SlotMoves> moves = new ArrayList<>();
    int at = 0;
    for (int p = 0; p < weights.length; p++) {
      int lacks = targets[p] - owned[p];
      if (lacks > 0) {
        int[] taken = Arrays.copyOfRange(given, at, at + lacks);
        Arrays.sort(taken);
        moves.add(new SlotMoves(p, taken));
        at += lacks;
      }
    }
    return moves;
  }

  /**
   * Whether each partition has its share of the slots, to one slot. Where two weights leave equal remainders, there are several such
   * tables, and {@link #replan} may lead from one to another.
   */
  public boolean isBalanced(int[] weights) {
    int[] owned = counts(weights.length);
    long bound = Arrays.stream(owned).asLongStream().sum();
    long sum = Arrays.stream(weights).asLongStream().sum();
    return IntStream.range(0, owned.length).allMatch(p -> {
      long above = owned[p] - bound * weights[p] / sum;
      return above == 0 || above == 1 && weights[p] > 0;
    });
  }

  /** By largest remainder. Among equal remainders, partitions with more slots come first, then lower numbers. */
  private int[] targets(int[] owned, int[] weights) {
    long all = Arrays.stream(owned).asLongStream().sum();
    long sum = Arrays.stream(weights).asLongStream().sum();
    int[] targets = Arrays.stream(weights).map(weight -> (int) (all * weight / sum)).toArray();
    int left = (int) all - Arrays.stream(targets).sum();
    IntStream.range(0, weights.length)
        .filter(p -> weights[p] > 0)
        .boxed()
        .sorted(
            Comparator.comparingLong((Integer p) -> -(all * weights[p] % sum)).thenComparingInt(p -> -owned[p]).thenComparingInt(p -> p))
        .limit(left)
        .forEach(p -> targets[p]++);
    return targets;
  }

  /** The slots that are to move, by the partition that has them, then ascending: each gives its highest ones. */
  private int[] given(int[] owned, int[] targets) {
    int[] surplus = new int[owned.length];
    int[] end = new int[owned.length];
    int count = 0;
    for (int p = 0; p < owned.length; p++) {
      surplus[p] = Math.max(0, owned[p] - targets[p]);
      count += surplus[p];
      end[p] = count;
    }
    int[] given = new int[count];
    for (int slot = slots - 1; slot >= 0; slot--) {
      int p = partition(slot);
      if (p != UNBOUND && surplus[p] > 0) {
        surplus[p]--;
        given[--end[p]] = slot;
      }
    }
    return given;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof SlotTable table && slots == table.slots
        && IntStream.range(0, slots).allMatch(slot -> partition(slot) == table.partition(slot));
  }

  @Override
  public int hashCode() {
    return crc();
  }

  /** {@code 4096 slots} */
  @Override
  public String toString() {
    return slots + " slots";
  }

  /**
   * Slots that a partition takes from others.
   *
   * @param to the partition
   * @param slots at least one, ascending
   */
  public record SlotMoves(int to, int[] slots) {
    /** The moves, by partition. @param partitions by slot, the partition that it moves to */
    public static List<SlotMoves> of(SortedMap<Integer, Integer> partitions) {
      TreeMap<Integer, List<Integer>> taken = new TreeMap<>();
      partitions.forEach((slot, partition) -> taken.computeIfAbsent(partition, absent -> new ArrayList<>()).add(slot));
      return taken.entrySet()
          .stream()
          .map(each -> new SlotMoves(each.getKey(), each.getValue().stream().mapToInt(slot -> slot).toArray()))
          .toList();
    }
  }
}
