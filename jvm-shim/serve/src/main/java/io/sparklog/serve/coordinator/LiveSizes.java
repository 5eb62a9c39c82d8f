package io.sparklog.serve.coordinator;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * The memory that the newest record of each key takes, without the keys: a table by a hash of 64 bits. Two keys of one hash count as one.
 * A client that does not know the seed cannot find such keys.
 */
final class LiveSizes {
  /** The memory that a record takes in the coordinator beside its key and its value, about. */
  static final int RECORD_BYTES = 300;

  private static final long SEED = new SecureRandom().nextLong();

  /** 0: the entry is free. */
  private long[] hashes = new long[16];
  /** 0: the key has no live record. */
  private int[] sizes = new int[16];
  private int used;
  private long bytes;

  /** The memory of all newest records. */
  long bytes() {
    return bytes;
  }

  /** The changes that some records make, which {@link #take} makes then. */
  final class Added {
    private final Map<Long, Integer> newest = new HashMap<>();
    private long growth;

    /** @param value null in a tombstone */
    void add(ByteBuffer key, ByteBuffer value) {
      add(key, value == null ? 0 : key.remaining() + value.remaining() + RECORD_BYTES);
    }

    private void add(ByteBuffer key, int size) {
      long hash = hash(key);
      Integer before = newest.put(hash, size);
      growth += size - (before == null ? sizes[find(hash)] : before);
    }

    long growth() {
      return growth;
    }
  }

  void take(Added change) {
    change.newest.forEach(this::put);
  }

  void put(ByteBuffer key, ByteBuffer value) {
    Added change = new Added();
    change.add(key, value);
    take(change);
  }

  private void put(long hash, int size) {
    int at = find(hash);
    if (hashes[at] == 0) {
      if (size == 0) {
        return;
      }
      hashes[at] = hash;
      used++;
    }
    bytes += size - sizes[at];
    sizes[at] = size;
    if (used > hashes.length / 2) {
      rehash();
    }
  }

  /** Leaves out the keys without a live record. */
  private void rehash() {
    long live = Arrays.stream(sizes).filter(size -> size > 0).count();
    long[] oldHashes = hashes;
    int[] oldSizes = sizes;
    int length = Math.max(16, Integer.highestOneBit((int) live) * 4);
    hashes = new long[length];
    sizes = new int[length];
    used = 0;
    for (int i = 0; i < oldHashes.length; i++) {
      if (oldSizes[i] > 0) {
        int at = find(oldHashes[i]);
        hashes[at] = oldHashes[i];
        sizes[at] = oldSizes[i];
        used++;
      }
    }
  }

  /** The entry of a hash, or the free entry that it would get. */
  private int find(long hash) {
    int at = (int) hash & hashes.length - 1;
    while (hashes[at] != 0 && hashes[at] != hash) {
      at = at + 1 & hashes.length - 1;
    }
    return at;
  }

  private static long hash(ByteBuffer key) {
    long hash = SEED;
    for (int i = key.position(); i < key.limit(); i++) {
      hash = (hash ^ key.get(i)) * 0x9E3779B97F4A7C15L;
      hash ^= hash >>> 32;
    }
    return hash == 0 ? 1 : hash;
  }
}
