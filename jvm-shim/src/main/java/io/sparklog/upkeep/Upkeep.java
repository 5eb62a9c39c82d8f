package io.sparklog.upkeep;

import io.sparklog.log.Committers;
import io.sparklog.log.Failures;
import io.sparklog.log.Query;
import io.sparklog.log.State;
import io.sparklog.log.Step;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.merge.Merging;
import io.sparklog.segment.Segment;
import io.sparklog.spec.Warnings;
import io.sparklog.view.KafkaView;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The work that follows a commit and cannot fail it: merging, the Kafka view, replaced data files, a checkpoint, retention, and files below
 * the boundary. The next commit does what a process leaves undone. FORMAT.md sections 6, 7, 8 and 14.
 */
final class Upkeep {
  private final Committers committers;
  private final TopicLog log;
  private final String txn;
  private final CommitLogCleaner cleaner;
  private final long mergeBytes;
  private final RetentionTerms terms;
  private long mergedBytes;
  /** The newest version that this process has put for this. */
  private long ownVersion = -1;
  private boolean interrupted;

  /**
   * @param txn a random identity, for the names of temporary files
   * @param mergeBytes how many bytes may be merged after a commit; 0: none
   * @param terms of an operator's call: the retention that comes with a checkpoint must not delete what the call keeps
   */
  Upkeep(Committers committers, String txn, long mergeBytes, RetentionTerms terms) {
    this.committers = committers;
    this.log = committers.log();
    this.txn = txn;
    this.mergeBytes = mergeBytes;
    this.terms = terms;
    this.cleaner = new CommitLogCleaner(log, committers.clock());
  }

  /**
   * Follows the commit of {@code version}. Failures are logged only.
   *
   * @return the newest state; empty if it cannot be read
   */
  Optional<State> after(Version version) {
    return run(List.of(version));
  }

  /**
   * As {@link #after}, when a write was found to be committed already: the process that committed it may have died before this.
   *
   * @param query of that write; null if it has none
   */
  void afterRepeat(Query query) {
    if (query != null && isNewestEpoch(query)) {
      run(List.of());
    }
  }

  /** As {@link #after}, also if another process committed last: an operator's call may be many commits. */
  Optional<State> afterAll() {
    return run(List.of());
  }

  private boolean isNewestEpoch(Query query) {
    try {
      return log.newest().flatMap(state -> state.query(query.id())).filter(query::isNumbered).isPresent();
    } catch (RuntimeException e) {
      warn("reading the topic", e);
      return false;
    }
  }

  private Optional<State> run(List<Version> put) {
    put.forEach(version -> ownVersion = version.version());
    // An interrupt (a query that is stopped) closes the channels that are in use: it waits until a part is done.
    interrupted = Thread.interrupted();
    try {
      Step.COMMIT_DONE.reached();
      synchronized (log.hints(state())) {
        follow(new ArrayList<>(put));
      }
      return Optional.of(state());
    } catch (Throwable e) { // An Error, too, must not make a commit that is done look as if it had failed.
      warn("reading the topic", e);
      return Optional.empty();
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** @param own the versions that this process has just put, in order; what is put here is added */
  private void follow(List<Version> own) {
    // A call of an operator may be followed by another that shows what would expire.
    boolean isWrite = own.stream().anyMatch(version -> !version.added().isEmpty());
    part("merging", () -> merge(own));
    // Asked once: a checkpoint that becomes due later waits, since the whole view is looked at before each.
    State newest = state();
    boolean due = newest.isCheckpointDue(log.pace().checkpointVersions());
    boolean overdue = isWrite && Retention.isOverdue(newest, terms, committers.clock());
    publish(own, due);
    part("deleting replaced data files", () -> new ReplacedFiles(log, state(), committers.clock()).deleteDue(own));
    int put = own.size();
    boolean[] written = {false};
    part("the checkpoint", () -> written[0] = due && cleaner.checkpoint(state(), txn));
    if (overdue || written[0] && !state().isDeleted()) {
      part("deleting expired records", () -> Retention.follow(committers, state(), terms).ifPresent(own::add));
    }
    if (written[0] || state().isDeleted()) {
      part("cleaning up", () -> cleaner.clean(state()));
    }
    if (cleaner.isBoundaryBehind(state())) {
      part("raising the boundary", () -> cleaner.carryBoundary(committers.next()).ifPresent(own::add));
    }
    if (own.size() > put) {
      // Only what the view has not followed yet: with more it would be listed once more.
      publish(own.subList(put, own.size()), false);
      part("deleting replaced data files", () -> new ReplacedFiles(log, state(), committers.clock()).deleteDue(own));
    }
    part("deleting old version files", () -> cleaner.deleteVersions(state()));
  }

  /** If another process has committed since, that one merges. */
  private void merge(List<Version> own) throws IOException {
    if (mergeBytes > 0 && !own.isEmpty() && own.get(own.size() - 1).version() == state().version()) {
      new Merging(committers).within(mergeBytes).ifPresent(merged -> {
        own.add(merged);
        mergedBytes = merged.added().stream().mapToLong(Segment::bytes).sum();
      });
    }
  }

  /** The bytes of the segments that merging has made. */
  long mergedBytes() {
    return mergedBytes;
  }

  /** An interrupt does not keep it from running: after a stream was stopped, the promise is that the view has all its records. */
  private void publish(List<Version> own, boolean all) {
    attempt("bringing the Kafka view up to date", () -> KafkaView.keepUp(log, own, txn, all));
  }

  private State state() {
    return log.after(ownVersion).orElseThrow().forWriters();
  }

  private void part(String what, Failures.Part part) {
    if (!interrupted) {
      attempt(what, part);
    }
  }

  /** A part that fails does not keep the next one from running. */
  private void attempt(String what, Failures.Part part) {
    try {
      part.run();
    } catch (Throwable e) {
      warn(what, e);
    } finally {
      interrupted |= Thread.interrupted();
    }
  }

  private void warn(String what, Throwable e) {
    Warnings.warn(Upkeep.class, "a write to topic {} under {} is committed, but {} failed; the next one makes up for it", log.topic(),
        log.store().root(), what, e);
  }
}
