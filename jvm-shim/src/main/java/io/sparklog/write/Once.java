package io.sparklog.write;

import io.sparklog.log.Query;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.Optional;
import java.util.function.LongFunction;

/**
 * The facts that make a write exactly once: the query and epoch that its version names, and a rule. The rule decides whether a topic with
 * this epoch or a later epoch holds the write. FORMAT.md section 7.
 *
 * @param query null for {@link #NEVER}
 * @param inputs see {@link #withInputs}
 */
public record Once(Query query, Rule rule, LongFunction<String> inputs) {
  /** A write without a name: each run of it adds its records. */
  public static final Once NEVER = of(null, Rule.NONE);

  /** Which writes are the same. */
  public enum Rule {
    NONE,
    /** All whose version is not above the last one. */
    TRANSACTION,
    /** Those of one epoch, if they read the same input or, where that is not known, have as many records. */
    EPOCH,
    /** As EPOCH, if they also have as many records: the n-th write of an epoch may be another one each time. */
    IN_EPOCH
  }

  /** A user's {@code txnAppId} and {@code txnVersion}. */
  public static Once transaction(String appId, long version) {
    return of(new Query(appId, version, null), Rule.TRANSACTION);
  }

  /**
   * An epoch of a streaming query.
   *
   * @param input the hash of the offsets of the epoch, 16 lower-case hex digits; null if it is not known
   */
  public static Once epoch(String queryId, long epoch, String input) {
    return of(new Query(queryId, epoch, input), Rule.EPOCH);
  }

  /**
   * A batch write within an epoch, as {@code foreachBatch} makes it.
   *
   * @param n how many writes to this topic the epoch has done before
   * @param input as in {@link #epoch}
   */
  public static Once inEpoch(String queryId, int n, long epoch, String input) {
    return of(new Query(queryId + "/" + n, epoch, input), Rule.IN_EPOCH);
  }

  private static Once of(Query query, Rule rule) {
    return new Once(query, rule, epoch -> null);
  }

  /** The same, of a query that remembers its epochs: {@code inputs} gives the input of an earlier epoch, null if it is not known. */
  public Once withInputs(LongFunction<String> inputs) {
    return new Once(query, rule, inputs);
  }

  /**
   * Whether a topic holds this write.
   *
   * @param records of this write. A write without records is refused too. If the topic has another epoch of this number, the epochs after
   *     it would be other epochs too, and would have its records again
   * @throws PartlogException EPOCH_DIFFERS if the topic holds another epoch under this number, or may hold it. Also if the query has not
   *     read the epoch that this write follows
   */
  boolean isIn(TopicLog log, State state, long records) throws IOException {
    Query last = query == null ? null : state.query(query.id()).orElse(null);
    if (last == null) {
      return false;
    }
    if (rule == Rule.TRANSACTION) {
      return last.epoch() >= query.epoch();
    }
    if (last.epoch() < query.epoch()) {
      String own = last.input() == null ? null : inputs.apply(last.epoch());
      if (own != null && !own.equals(last.input())) {
        throw differs(log, state, last, "epoch " + last.epoch() + " was applied with input " + last.input()
            + ", and this query's own log has input " + own + " for it");
      }
      return false;
    }
    boolean isLast = last.epoch() == query.epoch();
    if (isLast && rule == Rule.EPOCH && query.isAs(last)) {
      return true;
    }
    Optional<Version> version = log.versionOf(query, state);
    Optional<String> difference;
    if (version.isPresent()) {
      difference = difference(version.get(), records);
    } else if (isLast) {
      difference = difference(last, "it was applied");
    } else if (records == 0) {
      return false; // As the epoch itself may have been, which then has no version.
    } else {
      difference = Optional.of("no version from " + state.boundary() + " on is known to have applied it");
    }
    if (difference.isPresent()) {
      throw differs(log, state, last, difference.get());
    }
    return true;
  }

  private PartlogException differs(TopicLog log, State state, Query last, String difference) {
    return PartlogException.of("EPOCH_DIFFERS", "topic", state.topic(), "root", log.store().root(), "query", query.id(), "newest",
        last.epoch(), "epoch", query.epoch(), "difference", difference);
  }

  /** The difference between this write and the epoch of a version of the same number. */
  private Optional<String> difference(Version version, long records) {
    String applied = "version " + version.version() + " applied it";
    Optional<String> difference = difference(version.query(), applied);
    boolean recordsTell = rule == Rule.IN_EPOCH || !query.isAs(version.query());
    if (difference.isEmpty() && recordsTell && version.records() != records) {
      return Optional.of(applied + " with " + version.records() + " records, and the write has " + records);
    }
    return difference;
  }

  private Optional<String> difference(Query applied, String how) {
    return query.differsFrom(applied)
        ? Optional.of(how + " with input " + applied.input() + ", and the write has input " + query.input())
        : Optional.empty();
  }
}
