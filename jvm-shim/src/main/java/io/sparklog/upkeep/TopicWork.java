package io.sparklog.upkeep;

import io.sparklog.log.Change;
import io.sparklog.log.Committed;
import io.sparklog.log.Committers;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.merge.MergeCounts;
import io.sparklog.merge.Merging;
import java.time.Clock;
import java.util.List;
import java.util.Optional;
import java.util.random.RandomGenerator;

/**
 * The only way to change a topic: commits the given change, and always does the upkeep after the commit. A failure of the upkeep is logged,
 * and never fails the commit.
 */
public final class TopicWork {
  private final Committers committers;

  public TopicWork(TopicLog log, Clock clock, RandomGenerator random) {
    committers = new Committers(log, clock, random);
  }

  public TopicLog log() {
    return committers.log();
  }

  public Clock clock() {
    return committers.clock();
  }

  /** A random identity, for names of temporary files. */
  public String identity() {
    return committers.identity();
  }

  /**
   * Commits a change that an operator asks for. A topic that it deletes has no upkeep.
   *
   * @throws io.sparklog.spec.PartlogException as {@link io.sparklog.log.Committer#commit}; so all the methods here
   */
  public Committed commit(Change change) {
    return commit(change, RetentionTerms.OF_THE_TOPIC);
  }

  /** As {@link #commit(Change)}. @param terms for the retention that may follow */
  public Committed commit(Change change, RetentionTerms terms) {
    return begin(change, identity(), 0, terms).followed();
  }

  /**
   * Commits a change, and does not wait for the upkeep that follows. The upkeep is done when a caller waits for it, or for the upkeep of a
   * later commit.
   *
   * @param txn the random identity of the change
   * @param mergeBytes how many bytes may be merged after it; 0: none
   */
  public Begun begin(Change change, String txn, long mergeBytes) {
    return begin(change, txn, mergeBytes, RetentionTerms.OF_THE_TOPIC);
  }

  private Begun begin(Change change, String txn, long mergeBytes, RetentionTerms terms) {
    Upkeep upkeep = new Upkeep(committers, txn, mergeBytes, terms);
    long began = clock().millis();
    Optional<Version> version = committers.as(txn).commit(change);
    long commitMs = clock().millis() - began;
    version.filter(put -> !put.head().deleted()).ifPresent(upkeep::owe);
    if (version.isEmpty()) {
      upkeep.oweRepeat(change.query());
    }
    return new Begun(version, commitMs, upkeep);
  }

  /** A change that is committed, and whose upkeep may not be done yet. */
  public final class Begun {
    private final Optional<Version> version;
    private final long commitMs;
    private final Upkeep upkeep;

    private Begun(Optional<Version> version, long commitMs, Upkeep upkeep) {
      this.version = version;
      this.commitMs = commitMs;
      this.upkeep = upkeep;
    }

    /** Whether a version was put: otherwise nothing follows, and the upkeep of earlier commits is still owed. */
    public boolean isPut() {
      return version.isPresent();
    }

    /** Waits for the upkeep of this commit. A failure of the upkeep is logged, and never thrown. */
    public Committed followed() {
      long began = clock().millis();
      Optional<State> after = upkeep.await();
      long liveSegments = version.isEmpty() ? 0 : after.map(State::liveSegments).orElse(0L);
      return new Committed(log().topic(), version, liveSegments, upkeep.mergedBytes(), commitMs, clock().millis() - began);
    }
  }

  /**
   * Merges all that is there now, in as many commits as that takes.
   *
   * @param batchBytes if above 0, tiny batches are first written again, as batches of up to this many bytes before compression
   */
  public MergeCounts merge(int batchBytes) {
    Merging merging = new Merging(committers);
    MergeCounts done = batchBytes > 0 ? merging.rebatch(batchBytes) : merging.all();
    followAll(done.replaced() > 0, RetentionTerms.OF_THE_TOPIC);
    return done;
  }

  /** Deletes the expired records of the topic of {@code state}, by {@code terms} for it. @return the deleted records */
  public List<Retention.Expired> expire(State state, RetentionTerms terms) {
    List<Retention.Expired> expired = Retention.expire(committers, state, terms);
    followAll(!expired.isEmpty(), terms);
    return expired;
  }

  private void followAll(boolean committed, RetentionTerms terms) {
    Upkeep upkeep = new Upkeep(committers, identity(), 0, terms);
    (committed ? upkeep.owe() : upkeep.oweDeletion()).await();
  }
}
