package io.sparklog.commits;

import io.sparklog.format.BatchHeader;
import io.sparklog.routing.Router;
import java.util.List;

/**
 * Batches of one partition that may be added.
 *
 * @param topicId of the topic that they are for
 * @param router by which it is known where their keys go; null if that is not known
 * @param fence null if the batches may be added behind any others
 */
public record PreparedAppend(String topicId, Router router, List<PreparedBatch> batches, Fence fence) {
  /**
   * The end offset that the partition must have. A process that knows all records below the offset adds batches behind them, or none: so
   * processes need no leader among them.
   *
   * @param replaces whether the batches take the place of all records of the partition: the log start offset rises to {@code end}
   */
  public record Fence(long end, boolean replaces) {}

  /** Where the keys of a batch belong. */
  public enum KeyHomes {
    /** No record has a key. */
    NONE,
    /** Some records have keys, and all these keys belong into this partition. */
    SOME,
    /** Each record has a key, which belongs into this partition. */
    ALL,
    /** A key belongs into another partition, or that is not known. */
    ASTRAY
  }

  /**
   * A batch that every reader can read, as it will be stored, but for its base offset.
   *
   * @param minTimestamp the least time of its records, in ms since 1970; −1 if a record has no time
   * @param keys where the router that {@link Intake} had puts the keys
   * @param ordered whether no record has a lower time than a record before it, and the first has the base timestamp
   */
  public record PreparedBatch(byte[] bytes, long minTimestamp, KeyHomes keys, boolean ordered) {
    /** A batch that was not looked into: its records may be in any order, and anywhere else than their keys belong. */
    public static PreparedBatch unordered(byte[] bytes, long minTimestamp) {
      return new PreparedBatch(bytes, minTimestamp, KeyHomes.ASTRAY, false);
    }

    /** The time that the log gave to all records, in ms since 1970; −1 if they have the times of their producer. */
    long logAppendTime() {
      return BatchHeader.isLogAppendTime(bytes, 0) ? minTimestamp : -1;
    }
  }

  /** Batches of this process, which are known to be right. */
  public static PreparedAppend of(String topicId, List<PreparedBatch> batches, Fence fence) {
    return new PreparedAppend(topicId, null, batches, fence);
  }

  long bytes() {
    return batches.stream().mapToLong(each -> each.bytes().length).sum();
  }
}
