package io.sparklog.read;

/** Times of records in the unit of filters and of Spark: microseconds since 1970-01-01 UTC. */
public final class Times {
  private static final long MICROS_PER_MS = 1000;

  private Times() {}

  /** {@code ms} in microseconds. Times beyond the range of microseconds become its least or greatest. */
  public static long micros(long ms) {
    return Math.max(Long.MIN_VALUE / MICROS_PER_MS, Math.min(Long.MAX_VALUE / MICROS_PER_MS, ms)) * MICROS_PER_MS;
  }
}
