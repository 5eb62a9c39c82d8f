package io.sparklog.routing;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** The two hash functions that a topic's partitioner may be built on. */
public final class Murmur {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private Murmur() {}

  /**
   * MurmurHash3 x86 32-bit, seed 0, of [at, at + length).
   *
   * <p>Spark's SQL function {@code hash} treats the bytes after the last whole four differently, so it gives other values.
   */
  public static int murmur3(byte[] b, int at, int length) {
    int hash = 0;
    int tail = at + (length & ~3);
    for (int i = at; i < tail; i += 4) {
      hash = Integer.rotateLeft(hash ^ mixed3((int) INT.get(b, i)), 13) * 5 + 0xe6546b64;
    }
    int rest = length & 3;
    if (rest != 0) {
      hash ^= mixed3(tailOf(b, tail, rest));
    }
    hash ^= length;
    hash = (hash ^ hash >>> 16) * 0x85ebca6b;
    hash = (hash ^ hash >>> 13) * 0xc2b2ae35;
    return hash ^ hash >>> 16;
  }

  /** murmur2 as Kafka's Java clients use it, of [at, at + length). */
  public static int murmur2(byte[] b, int at, int length) {
    int m = 0x5bd1e995;
    int hash = 0x9747b28c ^ length;
    int tail = at + (length & ~3);
    for (int i = at; i < tail; i += 4) {
      int k = (int) INT.get(b, i) * m;
      hash = hash * m ^ (k ^ k >>> 24) * m;
    }
    int rest = length & 3;
    if (rest != 0) {
      hash = (hash ^ tailOf(b, tail, rest)) * m;
    }
    hash = (hash ^ hash >>> 13) * m;
    return hash ^ hash >>> 15;
  }

  private static int mixed3(int k) {
    return Integer.rotateLeft(k * 0xcc9e2d51, 15) * 0x1b873593;
  }

  /** One to three bytes as a little-endian number. */
  private static int tailOf(byte[] b, int at, int rest) {
    int k = b[at] & 0xff;
    if (rest > 1) {
      k |= (b[at + 1] & 0xff) << 8;
    }
    if (rest > 2) {
      k |= (b[at + 2] & 0xff) << 16;
    }
    return k;
  }
}
