package io.sparklog.log;

import io.sparklog.segment.Names;
import io.sparklog.spec.FullDisk;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import java.io.SyncFailedException;
import java.util.random.RandomGenerator;

/** One attempt to commit to a topic: its identity, its patience with a store that fails, and its errors. */
final class Attempt {
  /** How often a call of the store is made, if it fails. */
  static final int TRIES_MAX = 5;

  private static final long BACKOFF_MS_MAX = 200;

  /** How often a put without an answer is looked for, in the time that the store may take for it. */
  private static final int LATE_LOOKS = 20;

  final TopicLog log;
  final LogStore store;
  final String txn;
  private final RandomGenerator random;
  private boolean putTried;
  private long lateMs;
  private boolean interrupted;

  /** @param txn the random identity by which it knows its own version file */
  Attempt(TopicLog log, String txn, RandomGenerator random) {
    this.log = log;
    this.store = log.store();
    this.txn = txn;
    this.random = random;
  }

  /** A version file is put now, and may be written from here on. */
  void triesPut() {
    putTried = true;
  }

  /** Whether a version file may have been written. */
  boolean putTried() {
    return putTried;
  }

  /**
   * Puts off an interrupt until the outcome is known. An interrupt (a query that is stopped) closes channels in mid-commit, and would turn
   * a known outcome into "unknown".
   */
  void putOffInterrupt() {
    interrupted |= Thread.interrupted();
  }

  /** The attempt is over: an interrupt that was put off takes effect. */
  void over() {
    if (interrupted) {
      interrupted = false;
      Thread.currentThread().interrupt();
    }
  }

  /** Waits for a random time, up to 200 ms and mostly much shorter, before a call is made again. */
  void backOff() {
    pause(random.nextLong(1, BACKOFF_MS_MAX) >>> random.nextInt(8));
  }

  private void pause(long ms) {
    try {
      log.pace().pause().of(ms);
    } catch (InterruptedException e) {
      interrupted = true;
    }
  }

  /**
   * Waits before the next look for a put that had no answer.
   *
   * @return false if another look is useless: the store's limit for late requests has passed; or the caller was interrupted, and cannot
   *     wait
   */
  boolean awaitLate() {
    putOffInterrupt();
    long leftMs = store.lateLimit().toMillis() - lateMs;
    if (interrupted || leftMs <= 0) {
      return false;
    }
    long ms = Math.min(leftMs, Math.max(1, store.lateLimit().toMillis() / LATE_LOOKS));
    pause(ms);
    lateMs += ms;
    return !interrupted;
  }

  /** Syncs the topic's folder. @return why it may not be durable, or null */
  Throwable sync() {
    Throwable last = null;
    for (int syncs = 0; syncs < TRIES_MAX && !(last instanceof SyncFailedException); syncs++) {
      try {
        store.flush(Names.topicFolder(log.topic()));
        return null;
      } catch (Throwable e) {
        last = e;
      }
      putOffInterrupt();
      backOff();
    }
    return last;
  }

  PartlogException failed(Throwable e, String cause) {
    return PartlogException.caused(e, "COMMIT_FAILED", "txn", txn, "topic", log.topic(), "root", store.root(), "cause",
        FullDisk.told(cause, e, store.root()));
  }

  PartlogException unknown(long version, Throwable cause) {
    return PartlogException.caused(cause, "COMMIT_UNKNOWN", "txn", txn, "version", version, "topic", log.topic(), "root", store.root(),
        "file", Names.versionFile(version), "cause", String.valueOf(cause));
  }
}
