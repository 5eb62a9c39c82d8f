package io.sparklog.routing;

/** The number of a slot and a partition in the choice of a partition for the slot. FORMAT.md annex A. */
final class Race {
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
