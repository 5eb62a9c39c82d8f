package io.sparklog.read;

/** Times of records in the unit of filters and of Spark: microseconds since 1970-01-01 UTC. */
public final class Times {
  private static final long MICROS_PER_MS = 1000;

  /** The first and the last time that a program in Python can take from Spark: of the years 1 and 9999. */
  private static final long LEAST_MS = -62_135_596_800_000L;
  private static final long GREATEST_MS = 253_402_300_799_999L;

  private Times() {}

  /** {@code ms} in microseconds. Times before the year 1 or after the year 9999 become the first or the last of them. */
  public static long micros(long ms) {
    return Math.max(LEAST_MS, Math.min(GREATEST_MS, ms)) * MICROS_PER_MS;
  }
}
