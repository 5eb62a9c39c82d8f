package io.sparklog.log;

import java.io.Serializable;

/**
 * The write that a version applied: a streaming query and its epoch, or a user's {@code txnAppId} and {@code txnVersion}. FORMAT.md section
 * 5.
 *
 * @param id of the query; {@code <query id>/<n>} for the n-th batch write within an epoch
 * @param epoch at least 0
 * @param input the hash of the offsets of the epoch, 16 lower-case hex digits; null if it is not known
 */
public record Query(String id, long epoch, String input) implements Serializable {
  /** The query as a version has applied it. @param timeMs of the version */
  public record Applied(Query query, long timeMs) implements Serializable {}

  /** Whether this is another epoch under the same number. Not if either input is unknown. */
  public boolean differsFrom(Query other) {
    return input != null && other.input != null && !input.equals(other.input);
  }

  /** Whether both are known to have read the same. */
  public boolean isAs(Query other) {
    return input != null && input.equals(other.input);
  }

  /** Whether both have the same id and number; whether it is the same epoch, the inputs tell. */
  public boolean isNumbered(Query other) {
    return epoch == other.epoch && id.equals(other.id);
  }

  static boolean isInput(String text) {
    return text.matches("[0-9a-f]{16}");
  }
}
