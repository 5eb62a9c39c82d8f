package io.sparklog.write;

import io.sparklog.log.Query;

/**
 * What makes a write exactly once: the name that its version carries, and by which rule a topic that holds the name already holds the
 * write. FORMAT.md section 7.
 *
 * @param query null for {@link #NEVER}
 */
public record Once(Query query, Rule rule) {
  /** A write without a name: each try of it adds its records. */
  public static final Once NEVER = new Once(null, Rule.NONE);

  /** When a write is one that the topic holds. */
  public enum Rule {
    NONE,
    /** Its version is that of the last one, or lower. */
    TRANSACTION,
    /** Its epoch is there, and read the same input. */
    EPOCH,
    /** As EPOCH; and it has as many records. */
    IN_EPOCH
  }

  /** A user's {@code txnAppId} and {@code txnVersion}. */
  public static Once transaction(String appId, long version) {
    return new Once(new Query(appId, version, null), Rule.TRANSACTION);
  }

  /**
   * An epoch of a streaming query.
   *
   * @param input what it reads, as 16 lower-case hex digits; null if that is not known
   */
  public static Once epoch(String queryId, long epoch, String input) {
    return new Once(new Query(queryId, epoch, input), Rule.EPOCH);
  }

  /**
   * A batch write within an epoch, as {@code foreachBatch} makes it.
   *
   * @param n how many writes to this topic the epoch has done before
   * @param input as in {@link #epoch}
   */
  public static Once inEpoch(String queryId, int n, long epoch, String input) {
    return new Once(new Query(queryId + "/" + n, epoch, input), Rule.IN_EPOCH);
  }
}
