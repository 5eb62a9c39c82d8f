package io.sparklog.partition;

import java.io.Serializable;

/**
 * Where the records of a topic go by their keys: from the hash of a key to a partition. FORMAT.md section 13. Two writers of a topic must
 * have equal routers. Records without a key are for {@link NullKeyRouter}.
 *
 * @param partitions how many the topic has, from 1 to {@link #PARTITIONS_MAX}
 */
public record Router(Partitioner partitioner, int partitions) implements Serializable {
  public static final int PARTITIONS_MAX = 10_000;

  /** The partition of the key in [at, at + length). */
  public int ofKey(byte[] key, int at, int length) {
    return ofHash(partitioner.hash(key, at, length), partitions);
  }

  /** As {@link #ofKey(byte[], int, int)}, in a topic with this number of partitions: for a caller that has another number at each call. */
  public static int ofKey(Partitioner partitioner, int partitions, byte[] key) {
    return ofHash(partitioner.hash(key, 0, key.length), partitions);
  }

  private static int ofHash(int hash, int partitions) {
    // The sign bit is cleared, not the sign changed: the absolute value of the least int is negative.
    return (hash & Integer.MAX_VALUE) % partitions;
  }

  /** {@code 8 partitions by murmur3} */
  @Override
  public String toString() {
    return partitions + " partitions by " + partitioner.optionName();
  }
}
