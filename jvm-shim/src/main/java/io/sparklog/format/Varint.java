package io.sparklog.format;

/**
 * Zigzag varints: n ≥ 0 is written as 2n and n &lt; 0 as −2n − 1, in groups of 7 bits, lowest first. FORMAT.md section 3.
 *
 * <p>Longer forms than needed are read; a value that does not fit its type is not.
 */
final class Varint {
  public static final int INT_BYTES_MAX = 5;
  public static final int LONG_BYTES_MAX = 10;

  private Varint() {}

  /** Bytes that {@link #write(byte[], int, int)} needs. */
  public static int sizeOf(int value) {
    // ceil(bits / 7) without a division: 9/64 is close enough to 1/7 for up to 64 bits.
    return (352 - Integer.numberOfLeadingZeros(zigzag(value)) * 9) >>> 6;
  }

  /** Bytes that {@link #write(byte[], int, long)} needs. */
  public static int sizeOf(long value) {
    return (640 - Long.numberOfLeadingZeros(zigzag(value)) * 9) >>> 6;
  }

  /** Writes {@code value} and returns the position after it. */
  public static int write(byte[] to, int at, int value) {
    int rest = zigzag(value);
    // One and two bytes, which lengths and offset deltas mostly take, without a loop.
    if (rest >>> 7 == 0) {
      to[at] = (byte) rest;
      return at + 1;
    }
    to[at] = (byte) (rest | 0x80);
    rest >>>= 7;
    if (rest >>> 7 == 0) {
      to[at + 1] = (byte) rest;
      return at + 2;
    }
    return writeRest(to, at + 1, rest);
  }

  /** Writes {@code value} and returns the position after it. */
  public static int write(byte[] to, int at, long value) {
    return writeRest(to, at, zigzag(value));
  }

  private static int writeRest(byte[] to, int at, long rest) {
    while (rest >>> 7 != 0) {
      to[at++] = (byte) (rest | 0x80);
      rest >>>= 7;
    }
    to[at] = (byte) rest;
    return at + 1;
  }

  /**
   * The position after the varint at {@code at}, which must end before {@code limit} and have at most {@code bytesMax} bytes.
   *
   * <p>Reading is in two steps, this and {@link #intOf} or {@link #longOf}, because Java returns one number at a time.
   */
  public static int endOf(byte[] from, int at, int limit, int bytesMax) throws BadBatch {
    int end = Math.min(limit, at + Math.min(bytesMax, limit - at));
    for (int i = at; i < end; i++) {
      if (from[i] >= 0) {
        return i + 1;
      }
    }
    throw new BadBatch(end == limit ? "a number runs over the end of its record" : "a number has more than " + bytesMax + " bytes");
  }

  /** The varint in [at, end), as {@link #endOf} found it. */
  public static int intOf(byte[] from, int at, int end) throws BadBatch {
    long bits = bitsOf(from, at, end);
    if (bits >>> 32 != 0) {
      throw new BadBatch("a number has more than 32 bits");
    }
    int zigzag = (int) bits;
    return (zigzag >>> 1) ^ -(zigzag & 1);
  }

  /** The varlong in [at, end), as {@link #endOf} found it. */
  public static long longOf(byte[] from, int at, int end) throws BadBatch {
    if (end - at == LONG_BYTES_MAX && from[end - 1] > 1) {
      throw new BadBatch("a number has more than 64 bits");
    }
    long zigzag = bitsOf(from, at, end);
    return (zigzag >>> 1) ^ -(zigzag & 1);
  }

  private static long bitsOf(byte[] from, int at, int end) {
    long bits = 0;
    for (int i = end - 1; i >= at; i--) {
      bits = bits << 7 | (from[i] & 0x7f);
    }
    return bits;
  }

  private static int zigzag(int value) {
    return (value << 1) ^ (value >> 31);
  }

  private static long zigzag(long value) {
    return (value << 1) ^ (value >> 63);
  }
}
