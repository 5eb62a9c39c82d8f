package io.sparklog.read;

/** Times of records in the unit of filters and of Spark: microseconds since 1970-01-01 UTC. */
public final class Times {
  private static final long MICROS_PER_MS = 1000;

  /**
   * The first and the last time that a program in Python can take from Spark, of 3 January 1 and 31 December 9999. PySpark makes local
   * times, of zones up to 16 hours west and 14 hours east, and Python looks at the day before each.
   */
  private static final long LEAST_MS = -62_135_424_000_000L;
  private static final long GREATEST_MS = 253_402_250_399_999L;

  private Times() {}

  /** {@code ms} in microseconds. Times before or after all that Python can show become the first or the last of them. */
  public static long micros(long ms) {
    return Math.max(LEAST_MS, Math.min(GREATEST_MS, ms)) * MICROS_PER_MS;
  }
}
