package io.sparklog.read;

/**
 * How large splits should be: by bytes, like for Spark's file sources, and smaller if options ask for more splits.
 *
 * @param bytesMax the most bytes of a split ({@code spark.sql.files.maxPartitionBytes})
 * @param openBytes the cost of starting a split, as the bytes that could be read in that time ({@code spark.sql.files.openCostInBytes})
 * @param parallelism how many tasks run at once
 * @param splitsMin the least number of splits, if there are enough batches; at least 1
 * @param recordsMax the most records of a split; at least 1
 */
public record SplitSize(long bytesMax, long openBytes, int parallelism, int splitsMin, long recordsMax) {
  /** Each partition in one split. */
  public static final SplitSize WHOLE = new SplitSize(Long.MAX_VALUE, 1, 1, 1, Long.MAX_VALUE);

  /** The bytes that a split should have when {@code totalBytes} are to be read. */
  long bytes(long totalBytes) {
    long shared = Math.min(bytesMax, Math.max(openBytes, totalBytes / Math.max(1, parallelism)));
    return Math.max(1, Math.min(shared, totalBytes / splitsMin));
  }

  /**
   * The number of splits of about {@code splitBytes} for a partition of {@code bytes}. It is the nearest number, since one more task costs
   * more than a task that is up to half as large again. If options ask for a number of splits, it is rounded up.
   */
  long count(long bytes, long splitBytes) {
    return Math.max(1, (bytes + (splitsMin > 1 ? splitBytes - 1 : splitBytes / 2)) / splitBytes);
  }
}
