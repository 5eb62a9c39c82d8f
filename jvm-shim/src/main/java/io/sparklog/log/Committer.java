package io.sparklog.log;

import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.Requests;
import java.io.IOException;
import java.time.Clock;
import java.util.Optional;
import java.util.random.RandomGenerator;

/**
 * Commits one change of one topic: FORMAT.md section 7, the part of the driver, step by step. It need not know the change.
 *
 * <p>A commit is done once its version file is there. It is not done if that file is another writer's, or is absent and each put of it is
 * over. It is unknown if the outcome cannot be determined. Once a put was tried, nothing that the version names may be deleted.
 */
public final class Committer {
  /** How often a put may be lost to a version that no reader finds afterwards. */
  private static final int STANDSTILLS_MAX = 5;

  private final Attempt attempt;
  private final TopicLog log;
  private final Clock clock;

  /** @param txn the random identity of this attempt, by which it knows its own version file */
  public Committer(TopicLog log, String txn, Clock clock, RandomGenerator random) {
    this.attempt = new Attempt(log, txn, random);
    this.log = log;
    this.clock = clock;
  }

  /** Whether a version file may have been written: then nothing that it names may be deleted. */
  public boolean putTried() {
    return attempt.putTried();
  }

  /**
   * Commits {@code change}.
   *
   * @return the version that was put; empty if the state held the change already, or there was nothing to commit
   * @throws PartlogException if it is not done; COMMIT_UNKNOWN if that cannot be told
   */
  public Optional<Version> commit(Change change) {
    Optional<Version> version;
    try {
      version = tryUntilTold(change);
    } catch (Throwable e) {
      if (!putTried()) { // Otherwise a version may name files that the change has made.
        change.refused();
      }
      throw e;
    }
    change.settled();
    return version;
  }

  private Optional<Version> tryUntilTold(Change change) {
    attempt.putOffInterrupt();
    try {
      attempt.store.probe(Names.PROBE);
      Optional<State> newest = prepare(change);
      Version unseen = null;
      long lost = -1;
      int standstills = 0;
      while (true) {
        if (newest.isPresent() && isDone(change, newest.get())) {
          return Optional.empty();
        }
        if (unseen != null && unseen.query() == null && !(change instanceof Change.Administrative)) {
          throw attempt.unknown(unseen.version(), new IOException("earlier versions were deleted while it was put"));
        }
        Optional<NextVersion> next = change.next(newest);
        if (next.isEmpty()) {
          return Optional.empty();
        }
        if (newest.isEmpty()) {
          attempt.store.createFolder(Names.topicFile(log.topic(), Names.DATA));
        }
        newest.ifPresent(this::requireDurable);
        newest.ifPresent(state -> raiseBoundary(next.get(), state));
        Version version = next.get().version(attempt.txn, Math.max(0, clock.millis()));
        VersionPut put = new VersionPut(attempt, version, newest);
        VersionPut.Outcome outcome = put.put(change.steps());
        if (outcome != VersionPut.Outcome.LOST) {
          Optional<VersionPut.Outcome> seen = put.look(outcome);
          if (seen.isEmpty()) {
            // If the version has a query, the newest state shows whether the version was there before its file was deleted.
            unseen = version;
            newest = newest(change, unseen);
            continue;
          }
          if (seen.get() == VersionPut.Outcome.THERE) {
            log.noteDurable(version.head().topicId(), version.version());
            newest.ifPresent(put::extend);
            return Optional.of(version);
          }
          throw put.notDone(seen.get());
        }
        standstills = version.version() == lost ? standstills + 1 : 0;
        lost = version.version();
        if (standstills == STANDSTILLS_MAX) {
          throw attempt.failed(null, "version " + lost + " already exists, but reading the topic does not find it");
        }
        attempt.backOff();
        newest = newest(change, unseen);
      }
    } catch (IOException e) {
      throw attempt.failed(e, e.toString());
    } finally {
      attempt.over();
    }
  }

  /** Any version may carry the boundary of this process's clean-up, so the clean-up needs no version of its own. FORMAT.md section 12. */
  private void raiseBoundary(NextVersion next, State extended) {
    long cleaned = log.hints(extended).cleanedTo(extended);
    if (cleaned <= extended.version() && !extended.isDeleted()) {
      next.raiseBoundary(cleaned);
    }
  }

  /**
   * Prepares the change. Where several requests can be made at once, the newest state is asked for at the same time: a later version would
   * refuse the put.
   *
   * @return the newest state
   */
  private Optional<State> prepare(Change change) throws IOException {
    boolean isPlanned = !(change instanceof Change.Administrative);
    try (Requests.Pending<Optional<State>> newest = attempt.store.requests().begin(isPlanned ? log::toExtend : log::latest)) {
      change.prepare();
      Step.COMMIT_READ.reached();
      return forWriters(newest.answer(), change);
    }
  }

  private Optional<State> forWriters(Optional<State> newest, Change change) {
    newest.ifPresent(State::forWriters);
    return change.needsProducers() ? log.knowing(newest) : newest;
  }

  /**
   * The newest state, after a put that was not the last one.
   *
   * @param unseen a version whose put only that state can tell the end of, or null
   */
  private Optional<State> newest(Change change, Version unseen) {
    Step.COMMIT_READ.reached();
    try {
      return forWriters(log.latest(), change);
    } catch (PartlogException e) {
      throw unseen == null ? e : attempt.unknown(unseen.version(), e);
    }
  }

  /** Whether {@code newest} is the version of this commit, or holds the change; it is durable then. */
  private boolean isDone(Change change, State newest) throws IOException {
    boolean isOurs = newest.isOf(attempt.txn);
    Optional<String> applied = isOurs ? Optional.empty() : change.appliedIn(newest);
    if (!isOurs && applied.isEmpty()) {
      return false;
    }
    Throwable failure = attempt.sync();
    if (failure == null) {
      return true;
    }
    throw isOurs
        ? attempt.unknown(newest.version(), failure)
        : attempt.failed(failure,
            applied.get() + " is already committed, but the topic's folder cannot be synced, so it may be lost: " + failure);
  }

  /** A power loss must not take the version that the next version extends, and leave the next version. */
  private void requireDurable(State extended) {
    if (log.isDurable(extended)) {
      return;
    }
    Throwable failure = attempt.sync();
    if (failure != null) {
      throw attempt.failed(failure, "version " + extended.version() + ", which it would extend, cannot be made durable: " + failure);
    }
    log.noteDurable(extended.topicId(), extended.version());
  }
}
