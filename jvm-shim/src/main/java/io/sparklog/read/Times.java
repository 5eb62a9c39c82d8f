package io.sparklog.read;

/** Times of records in the unit that filters and Spark have: microseconds since 1970. */
public final class Times {
  private static final long MICROS_PER_MS = 1000;

  private Times() {}

  /** {@code ms} in microseconds. Kafka's format holds times beyond the range of microseconds: they become its first or last. */
  public static long micros(long ms) {
    return Math.max(Long.MIN_VALUE / MICROS_PER_MS, Math.min(Long.MAX_VALUE / MICROS_PER_MS, ms)) * MICROS_PER_MS;
  }
}
