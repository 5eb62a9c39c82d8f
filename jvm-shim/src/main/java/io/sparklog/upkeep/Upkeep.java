package io.sparklog.upkeep;

import io.sparklog.log.Committers;
import io.sparklog.log.Failures;
import io.sparklog.log.Query;
import io.sparklog.log.State;
import io.sparklog.log.Step;
import io.sparklog.log.TopicLog;
import io.sparklog.log.UpkeepQueue;
import io.sparklog.log.Version;
import io.sparklog.merge.Merging;
import io.sparklog.segment.Segment;
import io.sparklog.spec.Warnings;
import io.sparklog.view.KafkaView;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * The work that follows a commit and cannot fail it: merging, the Kafka view, replaced data files, a checkpoint, retention, and files below
 * the boundary. The next commit does the work that a process leaves undone. FORMAT.md sections 6, 7, 8 and 12.
 */
final class Upkeep implements UpkeepQueue.UpkeepRun {
  private final Committers committers;
  private final TopicLog log;
  private final String txn;
  private final CommitLogCleaner cleaner;
  private final RetentionTerms terms;
  /** The versions to follow, in order. */
  private final List<Version> put = new ArrayList<>();
  /** Whether a commit was made. Without one only files are deleted: on a full disk, the view would take the room again. */
  private boolean followsCommit;
  private long mergeBytes;
  /** The run that does the work of this run: this run itself, or the run that took the work. */
  private Upkeep run = this;
  /** The first commit of this run that may merge: the merged bytes count for that commit. */
  private Upkeep merger = this;
  private Optional<State> after = Optional.empty();
  private long mergedBytes;
  /** The newest version to follow. */
  private long ownVersion = -1;
  private boolean interrupted;

  /**
   * @param txn a random identity, for the names of temporary files
   * @param mergeBytes how many bytes may be merged after a commit; 0: none
   * @param terms of an operator's call: the retention that comes with a checkpoint must not delete the records that the call keeps
   */
  Upkeep(Committers committers, String txn, long mergeBytes, RetentionTerms terms) {
    this.committers = committers;
    this.log = committers.log();
    this.txn = txn;
    this.mergeBytes = mergeBytes;
    this.terms = terms;
    this.cleaner = new CommitLogCleaner(log, committers.clock());
  }

  /** Hands the upkeep after {@code version} to the topic's queue. Failures are logged only, here and in the upkeep. */
  Upkeep owe(Version version) {
    put.add(version);
    return owe();
  }

  /**
   * As {@link #owe(Version)}, when a write was found to be committed already: the process that committed it may have died since.
   *
   * @param query of that write; null if it has none
   */
  Upkeep oweRepeat(Query query) {
    return query != null && isNewestEpoch(query) ? owe() : this;
  }

  /** As {@link #owe(Version)}, also if another process committed last: an operator's call may be many commits. */
  Upkeep owe() {
    followsCommit = true;
    return oweDeletion();
  }

  /** Hands the deletion of files to the topic's queue, after a call that committed nothing. Failures are logged only. */
  Upkeep oweDeletion() {
    boolean held = Thread.interrupted();
    try {
      Step.COMMIT_DONE.reached();
      log.owed().add(this);
    } catch (Throwable e) { // An Error, too, must not make a finished commit look failed.
      warn("handing over what follows", e);
    } finally {
      if (held) {
        Thread.currentThread().interrupt();
      }
    }
    return this;
  }

  /** Waits until the run that was handed over is done, here or by another thread. @return the newest state; empty if it was not read */
  Optional<State> await() {
    log.owed().await(run);
    return run.after;
  }

  private boolean isNewestEpoch(Query query) {
    try {
      return log.newest().flatMap(state -> state.query(query.id())).filter(query::isNumbered).isPresent();
    } catch (RuntimeException e) {
      warn("reading the topic", e);
      return false;
    }
  }

  /** A run with an operator's terms is not shared: these terms may keep more records than the topic's terms. */
  @Override
  public boolean takes(UpkeepQueue.UpkeepRun later) {
    if (!(later instanceof Upkeep taken) || taken.terms != terms) {
      return false;
    }
    put.addAll(taken.put);
    merger = mergeBytes > 0 ? merger : taken;
    followsCommit |= taken.followsCommit;
    mergeBytes += Math.min(taken.mergeBytes, Long.MAX_VALUE - mergeBytes);
    taken.run = this;
    return true;
  }

  @Override
  public void run() {
    // An interrupt (a query that is stopped) closes the channels that are in use: it waits until a part is done.
    interrupted = Thread.interrupted();
    try {
      put.sort(Comparator.comparingLong(Version::version));
      put.forEach(version -> ownVersion = version.version());
      state(); // A topic that cannot be read fails here, and is reported once.
      if (followsCommit) {
        follow(put);
      } else {
        deleteReplaced(put);
        deleteVersions();
      }
      after = Optional.of(state());
    } catch (Throwable e) { // As where it was handed over.
      warn("reading the topic", e);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** @param own the versions that this process has just put, in order; versions that are put here are added */
  private void follow(List<Version> own) {
    // After a call of an operator, another call may show the records that would expire.
    boolean isWrite = own.stream().anyMatch(version -> !version.added().isEmpty());
    part("merging", () -> merge(own));
    // Asked once: a checkpoint that becomes due later waits, since the whole view is looked at before each.
    State newest = state();
    boolean due = newest.isCheckpointDue(log.pace().checkpointVersions());
    boolean overdue = isWrite && Retention.isOverdue(newest, terms, committers.clock());
    publish(own, due);
    deleteReplaced(own);
    int followed = own.size();
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
    if (own.size() > followed) {
      // Only versions that the view has not followed yet: with more it would be listed once more.
      publish(own.subList(followed, own.size()), false);
      deleteReplaced(own);
    }
    deleteVersions();
  }

  private void deleteReplaced(List<Version> own) {
    part("deleting replaced data files", () -> new ReplacedFiles(log, state(), committers.clock()).deleteDue(own));
  }

  private void deleteVersions() {
    part("deleting old version files", () -> cleaner.deleteVersions(state()));
  }

  /** If another process has committed since, that one merges. */
  private void merge(List<Version> own) throws IOException {
    if (mergeBytes > 0 && !own.isEmpty() && own.get(own.size() - 1).version() == state().version()) {
      new Merging(committers).within(mergeBytes, ownVersion).ifPresent(merged -> {
        own.add(merged);
        merger.mergedBytes = merged.added().stream().mapToLong(Segment::bytes).sum();
      });
    }
  }

  /** The bytes of the segments that merging has made; 0 if they count for another commit of the same run. */
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

  private void part(String what, Failures.Task part) {
    if (!interrupted) {
      attempt(what, part);
    }
  }

  /** If a part fails, the next part runs nevertheless. */
  private void attempt(String what, Failures.Task part) {
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
