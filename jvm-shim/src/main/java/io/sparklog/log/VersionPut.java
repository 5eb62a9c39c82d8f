package io.sparklog.log;

import io.sparklog.json.Damaged;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.NoAnswerException;
import java.io.IOException;
import java.io.SyncFailedException;
import java.nio.file.NoSuchFileException;
import java.util.Optional;

/** The put of one version file, and how it ended: FORMAT.md section 7, steps 3 and 4 of the driver, and decision 10. */
final class VersionPut {
  /** How the puts ended: the version is there, another writer's is, or none; if none is, it may be open, as it may still come. */
  enum Outcome {
    THERE, LOST, ABSENT, OPEN
  }

  private final Attempt attempt;
  private final TopicLog log;
  private final LogStore store;
  private final Version version;
  private final Optional<State> extended;
  private final Replay next;

  /** Why the version is {@link Outcome#ABSENT}, or {@link Outcome#OPEN}. */
  private Throwable failure;

  /** @param extended the state that the version extends; empty if it is the first of the topic */
  VersionPut(Attempt attempt, Version version, Optional<State> extended) {
    this.attempt = attempt;
    this.log = attempt.log;
    this.store = attempt.store;
    this.version = version;
    this.extended = extended;
    this.next = extended.map(Replay::new).orElseGet(() -> new Replay(true));
  }

  /** The error of a version that is {@link Outcome#ABSENT} or {@link Outcome#OPEN}. */
  PartlogException notDone(Outcome outcome) {
    return outcome == Outcome.OPEN ? attempt.unknown(version.version(), failure) : attempt.failed(failure, String.valueOf(failure));
  }

  /**
   * Puts the version, up to five times. Waits for a put without an answer until the store's limit. Sets {@link #failure} if the version is
   * not there in the end.
   */
  Outcome put(Step.Put steps) {
    String name = Names.topicFile(log.topic(), Names.versionFile(version.version()));
    String temporary = Names.topicFile(log.topic(), Names.temporary(attempt.txn, Names.versionFile(version.version())));
    byte[] bytes = bytes();
    NoAnswerException unanswered = null;
    for (int puts = 0; puts < Attempt.TRIES_MAX; puts++) {
      attempt.triesPut();
      try {
        store.putIfAbsent(name, temporary, bytes, steps);
        return Outcome.THERE;
      } catch (Throwable e) { // An Error, too, may come after the link.
        failure = e;
        unanswered = e instanceof NoAnswerException none ? none : unanswered;
      }
      attempt.putOffInterrupt();
      // The put may have taken effect and only its answer was lost, so the present file decides.
      Outcome found = readBack();
      if (found != Outcome.ABSENT) {
        return found;
      }
      // The kernel reports a folder's lost write once: after a failed sync the next put could succeed without it.
      if (failure instanceof SyncFailedException) {
        break;
      }
      attempt.backOff();
    }
    if (unanswered == null) {
      return Outcome.ABSENT; // Each put is over, so it stays absent.
    }
    boolean mayCome = !(failure instanceof SyncFailedException);
    failure = unanswered;
    while (mayCome && attempt.awaitLate()) {
      Outcome late = readBack();
      if (late != Outcome.ABSENT) {
        return late;
      }
    }
    return Outcome.OPEN;
  }

  /**
   * Decides the outcome of a put that was not lost. Version files are deleted lowest first: if the version that it extends still exists, no
   * later file was deleted.
   *
   * @param put the outcome by the version file itself; if the file is absent, it may have been there and been deleted since
   * @return empty if only the newest state tells, if at all
   */
  Optional<Outcome> look(Outcome put) {
    Throwable last = null;
    for (int looks = 0; looks < Attempt.TRIES_MAX; looks++) {
      try {
        Step.COMMIT_LOOK.reached();
        if (extended.isPresent()) {
          return log.files().isUnchanged(extended.get()) ? Optional.of(put) : Optional.empty();
        }
        if (put == Outcome.THERE && log.isBegunBy(next)) {
          return Optional.of(put);
        }
        Optional<State> newest = log.latest();
        if (newest.isEmpty() && put != Outcome.THERE) {
          return Optional.of(put);
        }
        // A topic that has the identity which this version gave it was begun by it.
        return newest.filter(state -> state.topicId().equals(version.head().topicId())).map(state -> Outcome.THERE);
      } catch (Throwable e) {
        last = e;
      }
      attempt.putOffInterrupt();
      attempt.backOff();
    }
    throw attempt.unknown(version.version(), last);
  }

  /** The outcome of the failed put, by the present content of the version file. */
  private Outcome readBack() {
    Throwable last = failure;
    // The kernel reports a folder's lost write once: a second sync could succeed without it.
    boolean syncFailed = failure instanceof SyncFailedException;
    for (int reads = 0; reads < Attempt.TRIES_MAX; reads++) {
      try {
        if (!isOurs()) {
          return Outcome.LOST;
        }
        if (!syncFailed) {
          store.flush(Names.topicFolder(log.topic()));
          return Outcome.THERE;
        }
      } catch (NoSuchFileException absent) {
        return Outcome.ABSENT;
      } catch (Throwable e) {
        last = e;
        syncFailed |= e instanceof SyncFailedException;
      }
      if (syncFailed) {
        break;
      }
      attempt.putOffInterrupt();
      attempt.backOff();
    }
    throw attempt.unknown(version.version(), last);
  }

  /**
   * Whether the version file is of this commit.
   *
   * @throws PartlogException if it cannot be read
   * @throws NoSuchFileException if it is absent
   */
  private boolean isOurs() throws IOException {
    try {
      return log.files().parse(log.files().read(version.version()), version.version()).txn().equals(attempt.txn);
    } catch (PartlogException e) {
      if (e.id().equals("FORMAT_TOO_NEW")) {
        return false;
      }
      throw e;
    }
  }

  /** The version is there, after {@code extended}, which was there when it was looked at. */
  void extend(State extended) {
    log.extend(extended, next);
  }

  /** The version file, checked as a reader checks it: a version that readers refuse would be the end of the topic. */
  private byte[] bytes() {
    int segments = Math.max(version.added().size(), version.removed().size());
    byte[] bytes = segments > Version.SEGMENTS_MAX ? null : version.toBytes();
    if (bytes == null || bytes.length > Version.BYTES_MAX) {
      throw PartlogException.of("COMMIT_TOO_LARGE", "txn", attempt.txn, "topic", log.topic(), "root", store.root(), "segments", segments);
    }
    try {
      next.apply(log.files().parse(bytes, version.version()), bytes);
    } catch (PartlogException e) {
      throw attempt.failed(e, e.parameters().get("reason"));
    } catch (Damaged e) {
      throw attempt.failed(e, e.getMessage());
    }
    return bytes;
  }
}
