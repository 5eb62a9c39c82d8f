package io.sparklog.commits;

import io.sparklog.format.BatchHeader;

/**
 * A batch that every reader can read, as it will be stored, but for its base offset.
 *
 * @param minTimestamp the least time of its records, in ms since 1970; −1 if a record has no time
 * @param keyed whether a record has a key
 * @param routed whether each record has a key, and the router that {@link Intake} had puts the key into this partition
 * @param ordered whether no record has a lower time than a record before it, and the first has the base timestamp
 */
public record PreparedBatch(byte[] bytes, long minTimestamp, boolean keyed, boolean routed, boolean ordered) {
  /** A batch that was not looked into: its records may be in any order, and anywhere else than their keys belong. */
  public static PreparedBatch unordered(byte[] bytes, long minTimestamp) {
    return new PreparedBatch(bytes, minTimestamp, false, false, false);
  }

  /** The time that the log gave to all records, in ms since 1970; −1 if they have the times of their producer. */
  long logAppendTime() {
    return BatchHeader.isLogAppendTime(bytes, 0) ? minTimestamp : -1;
  }
}
