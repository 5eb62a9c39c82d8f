package io.sparklog.upkeep;

import io.sparklog.log.Names;
import io.sparklog.log.Segment;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.log.TopicNotes;
import io.sparklog.log.Version;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Step;
import java.io.IOException;
import java.time.Clock;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Deletes the data files that versions have removed, by a walk from version to version. FORMAT.md section 14. */
final class Sweep {
  /** A walk is at most this long, so that it never delays a commit by much. */
  private static final int VERSIONS_MAX = 1000;

  private final TopicLog log;
  private final LogStore store;
  private final State state;
  private final long nowMs;

  /** The data files that the live segments name; null until they are asked for. */
  private Set<String> live;

  /** @param state the newest one: what it names stays */
  Sweep(TopicLog log, State state, Clock clock) {
    this.log = log;
    this.store = log.store();
    this.state = state;
    this.nowMs = clock.millis();
  }

  /**
   * Goes on where this process ended, or begins with what it has put itself: the rest is found with a checkpoint.
   *
   * @param own the versions that it has just put, in order
   */
  void goOn(List<Version> own) throws IOException {
    TopicNotes notes = log.notes(state);
    long from = notes.sweptFrom();
    long to = notes.sweptTo();
    if (from < 0 || to < state.boundary()) {
      from = Math.max(state.boundary(), own.isEmpty() ? state.version() : own.get(0).version());
      to = from;
      notes.swept(from, to, -1);
    }
    // What a write has put removes nothing, and need not be read again.
    for (Version version : own) {
      if (version.version() == to && version.removed().isEmpty() && !version.deleted()) {
        to++;
      }
    }
    if (to > notes.sweptTo()) {
      notes.swept(from, to, -1);
    }
    if (notes.waitingMs() < 0 || isDue(notes.waitingMs())) {
      walk(from, to, state.version() + 1);
    }
  }

  /**
   * Deletes all that the versions from the boundary to before {@code end} removed.
   *
   * @return the first version of which that is not done
   */
  long fromBoundary(long end) throws IOException {
    TopicNotes notes = log.notes(state);
    long boundary = state.boundary();
    boolean goesOn = notes.sweptFrom() >= 0 && notes.sweptFrom() <= boundary && boundary <= notes.sweptTo();
    long to = goesOn ? notes.sweptTo() : boundary;
    return to >= end ? end : walk(goesOn ? notes.sweptFrom() : boundary, to, end);
  }

  /** Walks on from {@code to}, where all from {@code from} on is done, and notes how far it came. */
  private long walk(long from, long to, long end) throws IOException {
    long at = to;
    long waitingMs = -1;
    try {
      long last = Math.min(end, to + VERSIONS_MAX);
      while (at < last) {
        Optional<Version> version = log.version(at);
        if (version.isEmpty()) {
          return at; // Another program came further.
        }
        if (!isDue(version.get())) {
          waitingMs = version.get().time();
          return at;
        }
        delete(version.get());
        at++;
      }
      return at;
    } finally {
      note(from, at, waitingMs);
    }
  }

  /** What was done before counts too, where the two meet. */
  private void note(long from, long to, long waitingMs) {
    TopicNotes notes = log.notes(state);
    if (notes.sweptFrom() < 0 || from <= notes.sweptTo() && notes.sweptFrom() <= to) {
      boolean further = to >= notes.sweptTo();
      notes.swept(notes.sweptFrom() < 0 ? from : Math.min(from, notes.sweptFrom()), further ? to : notes.sweptTo(),
          further ? waitingMs : notes.waitingMs());
    }
  }

  /** A deleted topic needs nobody to wait. */
  private boolean isDue(Version version) {
    return version.deleted() || version.removed().isEmpty() || isDue(version.time());
  }

  /** In either direction: a clock that was wrong, and was set right, must not stop this for years. */
  private boolean isDue(long timeMs) {
    return Math.abs(nowMs - timeMs) >= state.config().fileDeleteDelayMs();
  }

  private void delete(Version version) throws IOException {
    Set<String> files = new LinkedHashSet<>();
    version.removed().forEach(removed -> files.add(removed.file()));
    if (version.deleted()) {
      makeDurable();
      DataFolders.deletePlannedBelow(store, state.topic(), version.version() + 1);
    }
    if (!files.isEmpty()) {
      delete(files);
    }
  }

  /** Who put a version that removed files may have died before it was durable: a power loss must not make them live again. */
  private void makeDurable() throws IOException {
    store.flush(Names.topicFolder(state.topic()));
  }

  /** Deletes those of {@code files} that no live segment names, and the folders that are empty then. */
  void delete(Set<String> files) throws IOException {
    Set<String> folders = new LinkedHashSet<>();
    for (String file : files) {
      if (!live().contains(file)) {
        if (folders.isEmpty()) {
          makeDurable();
        }
        Step.DELETE_FILE.reached();
        store.delete(Names.topicFile(state.topic(), file));
        folders.add(file.substring(0, file.lastIndexOf('/')));
      }
    }
    for (String folder : folders) {
      store.deleteFolderIfEmpty(Names.topicFile(state.topic(), folder));
    }
  }

  /** The data files that live segments name, relative to the topic's folder. */
  Set<String> live() {
    if (live == null) {
      live = new HashSet<>();
      for (int partition = 0; !state.isDeleted() && partition < state.partitions(); partition++) {
        for (Segment segment : state.segments(partition)) {
          live.add(segment.file());
        }
      }
    }
    return live;
  }
}
