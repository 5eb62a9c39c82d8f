package io.sparklog.read;

/**
 * How large splits should be: by bytes as for Spark's file sources, and smaller where options ask for more of them.
 *
 * @param bytesMax the most bytes of a split ({@code spark.sql.files.maxPartitionBytes})
 * @param openBytes what a split costs to begin, as bytes that could be read meanwhile ({@code spark.sql.files.openCostInBytes})
 * @param parallelism tasks that run at once
 * @param splitsMin at least so many splits, as far as batches can be shared out
 * @param recordsMax the most records of a split
 */
public record SplitSize(long bytesMax, long openBytes, int parallelism, int splitsMin, long recordsMax) {

  /** The bytes that a split should have when {@code totalBytes} are to be read. */
  long bytes(long totalBytes) {
    long shared = Math.min(bytesMax, Math.max(openBytes, totalBytes / Math.max(1, parallelism)));
    return Math.max(1, Math.min(shared, totalBytes / splitsMin));
  }

  /**
   * How many splits of about {@code splitBytes} a partition of {@code bytes} is cut into: the nearest number, since one more task costs
   * more than a task that is up to half as large again. Where options ask
   * for a number of splits, there are rather more.
   */
  long count(long bytes, long splitBytes) {
    return Math.max(1, (bytes + (splitsMin > 1 ? splitBytes - 1 : splitBytes / 2)) / splitBytes);
  }
}
