package io.sparklog.log;

import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.NoAnswerException;
import java.io.IOException;
import java.io.SyncFailedException;
import java.nio.file.NoSuchFileException;
import java.time.Clock;
import java.util.Optional;
import java.util.random.RandomGenerator;

/**
 * Commits one change of one topic: FORMAT.md section 7, the part of the driver, step by step. It need not know the change.
 *
 * <p>A commit is done once its version file is there. It is not done if that file is another writer's, or is absent and each put of it is
 * over. It is unknown if none of these can be determined. Once a put was tried, nothing that the version names may be deleted.
 */
public final class Committer {
  private static final int PUTS_MAX = 5;

  /** How often a put may be lost to a version that no reader finds afterwards. */
  private static final int STANDSTILLS_MAX = 5;

  private static final long BACKOFF_MS_MAX = 200;

  private final TopicLog log;
  private final LogStore store;
  private final String txn;
  private final Clock clock;
  private final RandomGenerator random;
  private boolean putTried;
  private boolean interrupted;

  /** How the puts of a version ended: it is there, another writer's is, or none; if none is, it may be open, as it may still come. */
  private enum Put {
    THERE, LOST, ABSENT, OPEN
  }

  /** Why the last version put is {@link Put#ABSENT}, or {@link Put#OPEN}. */
  private Throwable failure;

  /** @param txn the random identity of this attempt, by which it knows its own version file */
  public Committer(TopicLog log, String txn, Clock clock, RandomGenerator random) {
    this.log = log;
    this.store = log.store();
    this.txn = txn;
    this.clock = clock;
    this.random = random;
  }

  /** Whether a version file may have been written: then nothing that it names may be deleted. */
  public boolean putTried() {
    return putTried;
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
      if (!putTried) { // Otherwise a version may name what the change has made.
        change.refused();
      }
      throw e;
    }
    change.settled();
    return version;
  }

  private Optional<Version> tryUntilTold(Change change) {
    // An interrupt (a query that is stopped) closes channels in mid-commit, and would turn what can be told into "unknown": it waits until
    // the outcome is known.
    interrupted = Thread.interrupted();
    try {
      change.prepare();
      Version unseen = null;
      long lost = -1;
      int standstills = 0;
      while (true) {
        Step.COMMIT_READ.reached();
        Optional<State> newest = newest(unseen);
        if (newest.isPresent() && isDone(change, newest.get())) {
          return Optional.empty();
        }
        if (unseen != null && unseen.query() == null && !change.isIdempotent()) {
          throw unknown(unseen.version(), new IOException("earlier versions were deleted while it was put"));
        }
        Optional<NextVersion> next = change.next(newest);
        if (next.isEmpty()) {
          return Optional.empty();
        }
        if (newest.isEmpty()) {
          store.createFolder(Names.topicFolder(log.topic()));
        }
        newest.ifPresent(this::requireDurable);
        newest.ifPresent(state -> raiseBoundary(next.get(), state));
        Version version = next.get().version(txn, Math.max(0, clock.millis()));
        Put put = put(version, newest, change.steps());
        if (put != Put.LOST) {
          Optional<Put> seen = look(version, newest, put);
          if (seen.isEmpty()) {
            // The newest state tells whether it was there before it was deleted, if it has a query.
            unseen = version;
            continue;
          }
          if (seen.get() == Put.THERE) {
            log.noteDurable(version.topicId(), version.version());
            return Optional.of(version);
          }
          throw seen.get() == Put.OPEN ? unknown(version.version(), failure) : failed(failure, String.valueOf(failure));
        }
        standstills = version.version() == lost ? standstills + 1 : 0;
        lost = version.version();
        if (standstills == STANDSTILLS_MAX) {
          throw failed(null, "version " + lost + " already exists, but reading the topic does not find it");
        }
        backOff();
      }
    } catch (IOException e) {
      throw failed(e, e.toString());
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Any version may carry what this process has cleaned up, so that it needs none of its own. FORMAT.md section 14. */
  private void raiseBoundary(NextVersion next, State extended) {
    long cleaned = log.hints(extended).cleanedTo();
    if (cleaned <= extended.version() && !extended.isDeleted()) {
      next.raiseBoundary(cleaned);
    }
  }

  /** The newest state. @param unseen a version whose put only that state can tell the end of, or null */
  private Optional<State> newest(Version unseen) {
    try {
      return log.latest();
    } catch (PartlogException e) {
      throw unseen == null ? e : unknown(unseen.version(), e);
    }
  }

  /** Whether {@code newest} is the version of this commit, or holds the change; it is durable then. */
  private boolean isDone(Change change, State newest) throws IOException {
    boolean isOurs = newest.isOf(txn);
    Optional<String> applied = isOurs ? Optional.empty() : change.appliedIn(newest);
    if (!isOurs && applied.isEmpty()) {
      return false;
    }
    Throwable failure = sync();
    if (failure == null) {
      return true;
    }
    throw isOurs
        ? unknown(newest.version(), failure)
        : failed(failure, applied.get() + " is already committed, but the topic's folder cannot be synced, so it may be lost: " + failure);
  }

  /** A power loss may not take what the next version extends, and leave that. */
  private void requireDurable(State extended) {
    if (log.isDurable(extended)) {
      return;
    }
    Throwable failure = sync();
    if (failure != null) {
      throw failed(failure, "version " + extended.version() + ", which it would extend, cannot be made durable: " + failure);
    }
    log.noteDurable(extended.topicId(), extended.version());
  }

  /** Syncs the topic's folder. @return why it may not be durable, or null */
  private Throwable sync() {
    Throwable last = null;
    for (int syncs = 0; syncs < PUTS_MAX && !(last instanceof SyncFailedException); syncs++) {
      try {
        store.flush(Names.topicFolder(log.topic()));
        return null;
      } catch (Throwable e) {
        last = e;
      }
      interrupted |= Thread.interrupted();
      backOff();
    }
    return last;
  }

  /**
   * How a put that was not lost ended, after a look at what it extends: version files are deleted from the lowest on, so none was if that
   * is still there.
   *
   * @param put what the version file itself said; if it is absent, it may have been there and been deleted since
   * @return empty if only the newest state tells, if at all
   */
  private Optional<Put> look(Version version, Optional<State> extended, Put put) {
    Throwable last = null;
    for (int looks = 0; looks < PUTS_MAX; looks++) {
      try {
        Step.COMMIT_LOOK.reached();
        if (extended.isPresent()) {
          return log.isUnchanged(extended.get()) ? Optional.of(put) : Optional.empty();
        }
        Optional<State> newest = log.latest();
        if (newest.isEmpty() && put != Put.THERE) {
          return Optional.of(put);
        }
        // A topic that has the identity which this version gave it was begun by it.
        return newest.filter(state -> state.topicId().equals(version.topicId())).map(state -> Put.THERE);
      } catch (Throwable e) {
        last = e;
      }
      interrupted |= Thread.interrupted();
      backOff();
    }
    throw unknown(version.version(), last);
  }

  /** Puts the version, up to five times, and sets {@link #failure} if it is not there in the end. */
  private Put put(Version version, Optional<State> extended, Step.Put steps) {
    String name = Names.topicFile(log.topic(), Names.versionFile(version.version()));
    String temporary = Names.topicFile(log.topic(), Names.temporary(txn, Names.versionFile(version.version())));
    byte[] bytes = bytes(version, extended);
    NoAnswerException unanswered = null;
    for (int puts = 0; puts < PUTS_MAX; puts++) {
      putTried = true;
      try {
        store.putIfAbsent(name, temporary, bytes, steps);
        return Put.THERE;
      } catch (Throwable e) { // An Error, too, may come after the link.
        failure = e;
        unanswered = e instanceof NoAnswerException none ? none : unanswered;
      }
      interrupted |= Thread.interrupted();
      // The put may have taken effect and only its answer been lost, so what is there now decides.
      Put found = readBack(version.version());
      if (found != Put.ABSENT) {
        return found;
      }
      // The kernel reports a folder's lost write once: after a failed sync the next put could succeed without it.
      if (failure instanceof SyncFailedException) {
        break;
      }
      backOff();
    }
    if (unanswered == null) {
      return Put.ABSENT; // Each put is over, so it stays absent.
    }
    failure = unanswered;
    return Put.OPEN;
  }

  /** The version file, checked to be one that readers accept: any other would be the end of the topic. */
  private byte[] bytes(Version version, Optional<State> extended) {
    int segments = Math.max(version.added().size(), version.removed().size());
    byte[] bytes = segments > Version.SEGMENTS_MAX ? null : version.toBytes();
    if (bytes == null || bytes.length > Version.BYTES_MAX) {
      throw PartlogException.of("COMMIT_TOO_LARGE", "txn", txn, "topic", log.topic(), "root", store.root(), "segments", segments);
    }
    try {
      extended.map(Replay::new).orElseGet(Replay::new).apply(log.files().parse(bytes, version.version()), bytes);
    } catch (PartlogException e) {
      throw failed(e, e.parameters().get("reason"));
    } catch (Damaged e) {
      throw failed(e, e.getMessage());
    }
    return bytes;
  }

  /** How the put that failed ended, by what is in the version file now. */
  private Put readBack(long version) {
    Throwable last = failure;
    // The kernel reports a folder's lost write once: a second sync could succeed without it.
    boolean syncFailed = failure instanceof SyncFailedException;
    for (int reads = 0; reads < PUTS_MAX; reads++) {
      try {
        if (!isOurs(version)) {
          return Put.LOST;
        }
        if (!syncFailed) {
          store.flush(Names.topicFolder(log.topic()));
          return Put.THERE;
        }
      } catch (NoSuchFileException absent) {
        return Put.ABSENT;
      } catch (Throwable e) {
        last = e;
        syncFailed |= e instanceof SyncFailedException;
      }
      if (syncFailed) {
        break;
      }
      interrupted |= Thread.interrupted();
      backOff();
    }
    throw unknown(version, last);
  }

  /**
   * Whether the version file is of this commit.
   *
   * @throws PartlogException if it cannot be read
   * @throws NoSuchFileException if it is absent
   */
  private boolean isOurs(long version) throws IOException {
    try {
      return log.files().parse(log.files().read(version), version).txn().equals(txn);
    } catch (PartlogException e) {
      if (e.id().equals("FORMAT_TOO_NEW")) {
        return false;
      }
      throw e;
    }
  }

  private PartlogException failed(Throwable e, String cause) {
    return PartlogException.caused(e, "COMMIT_FAILED", "txn", txn, "topic", log.topic(), "root", store.root(), "cause", cause);
  }

  private PartlogException unknown(long version, Throwable cause) {
    return PartlogException.caused(cause, "COMMIT_UNKNOWN", "txn", txn, "version", version, "topic", log.topic(), "root", store.root(),
        "file", Names.versionFile(version), "cause", String.valueOf(cause));
  }

  private void backOff() {
    try {
      log.pace().pause().of(random.nextLong(1, BACKOFF_MS_MAX) >>> random.nextInt(8));
    } catch (InterruptedException e) {
      interrupted = true;
    }
  }
}
