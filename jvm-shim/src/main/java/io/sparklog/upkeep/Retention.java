package io.sparklog.upkeep;

import io.sparklog.log.Change;
import io.sparklog.log.Committers;
import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.Version;
import io.sparklog.merge.TimeGroups;
import io.sparklog.segment.Segment;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Deletes the records that a topic's {@code retention.ms} and {@code retention.bytes}, or a call's, let go. FORMAT.md section 12. */
public final class Retention implements Change.Administrative {
  /** An expired segment may wait for a checkpoint for this part of the span of times that a merge joins. */
  private static final int WAIT_PART = 8;

  private static final int WAIT_MS_MIN = 1000;

  private final String topicId;
  private final RetentionTerms terms;
  private final long nowMs;
  private List<Expired> expired = List.of();

  /**
   * The segments of a partition that expire: whole ones, the oldest first.
   *
   * @param before the log start offset as it was
   * @param start the log start offset then
   * @param records the offsets in between
   * @param bytes of their batches
   */
  public record Expired(int partition, long before, long start, long records, long bytes) {}

  private Retention(String topicId, RetentionTerms terms, long nowMs) {
    this.topicId = topicId;
    this.terms = terms;
    this.nowMs = nowMs;
  }

  /**
   * Commits the deletion of the expired records of the topic of {@code state}, by {@code terms} for it.
   *
   * @return the deleted records; if no record was deleted, nothing was committed
   * @throws io.sparklog.spec.PartlogException as of any commit
   */
  static List<Expired> expire(Committers committers, State state, RetentionTerms terms) {
    Retention retention = new Retention(state.topicId(), terms, committers.clock().millis());
    return committers.next().commit(retention).isPresent() ? retention.expired : List.of();
  }

  /** As {@link #expire}. @return the version that deletes records; empty if none has expired */
  static Optional<Version> follow(Committers committers, State state, RetentionTerms terms) {
    long nowMs = committers.clock().millis();
    boolean none = expired(state, terms, nowMs).isEmpty();
    return none ? Optional.empty() : committers.next().commit(new Retention(state.topicId(), terms, nowMs));
  }

  @Override
  public Optional<NextVersion> next(Optional<State> newest) {
    if (newest.isEmpty() || newest.get().isDeleted() || !newest.get().topicId().equals(topicId)) {
      return Optional.empty();
    }
    State state = newest.get();
    expired = expired(state, terms, nowMs);
    return expired.isEmpty() ? Optional.empty() : Optional.of(deletion(state, expired));
  }

  /** The version after {@code state} that deletes its expired records. */
  static NextVersion deletion(State state, List<Expired> expired) {
    NextVersion next = new NextVersion(state, "delete-records");
    expired.forEach(each -> next.raiseStart(each.partition(), each.start()));
    return next;
  }

  /** The segments of {@code state} that have expired at a time in ms since 1970, by partition. Changes nothing. */
  public static List<Expired> expired(State state, RetentionTerms terms, long nowMs) {
    List<Expired> expired = new ArrayList<>();
    for (int partition = 0; partition < state.partitions(); partition++) {
      long start = state.start(partition);
      List<Segment> kept = state.segments(partition, start, state.end(partition));
      int gone = gone(kept, terms.retentionMs(state), terms.retentionBytes(state), terms.limit(partition), nowMs);
      if (gone > 0) {
        long to = kept.get(gone - 1).end();
        long bytes = kept.subList(0, gone).stream().mapToLong(Segment::bytes).sum();
        expired.add(new Expired(partition, start, to, to - start, bytes));
      }
    }
    return expired;
  }

  /** How many of a partition's segments go, the first ones. @param limit the offset that the log start offset may not rise above */
  private static int gone(List<Segment> segments, long retentionMs, long retentionBytes, long limit, long nowMs) {
    long bytes = segments.stream().mapToLong(Segment::bytes).sum();
    int gone = 0;
    while (gone < segments.size() && segments.get(gone).end() <= limit) {
      Segment oldest = segments.get(gone);
      boolean beyond = retentionBytes >= 0 && gone < segments.size() - 1 && bytes - oldest.bytes() >= retentionBytes;
      if (!beyond && !isOld(oldest, retentionMs, nowMs)) {
        break;
      }
      bytes -= oldest.bytes();
      gone++;
    }
    return gone;
  }

  private static boolean isOld(Segment segment, long retentionMs, long nowMs) {
    return retentionMs >= 0 && segment.maxTimestamp() >= 0 && segment.maxTimestamp() < nowMs - retentionMs;
  }

  /**
   * Whether a segment has been expired by its time for so long that it should not wait for the next checkpoint. Looks at the oldest segment
   * of each partition. The segments that are deleted then have not expired for long in any partition. So retention puts a version at most
   * once in the time that a segment may wait, at any rate of commits.
   */
  static boolean isOverdue(State state, RetentionTerms terms, Clock clock) {
    long retentionMs = terms.retentionMs(state);
    if (retentionMs < 0) {
      return false;
    }
    long sinceMs = clock.millis() - Math.max(TimeGroups.spanMs(state.config(), retentionMs) / WAIT_PART, WAIT_MS_MIN);
    for (int partition = 0; partition < state.partitions(); partition++) {
      List<Segment> live = state.segments(partition, state.start(partition), state.end(partition));
      if (!live.isEmpty() && live.get(0).end() <= terms.limit(partition) && isOld(live.get(0), retentionMs, sinceMs)) {
        return true;
      }
    }
    return false;
  }
}
