package io.sparklog.upkeep;

import io.sparklog.log.Removals;
import io.sparklog.log.State;
import io.sparklog.log.Step;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.time.Clock;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;

/** Deletes the data files that versions have removed. FORMAT.md section 12. */
public final class ReplacedFiles {
  /** At most this many versions are read for a commit, and as many emptied, so that it is never delayed by much. */
  private static final int VERSIONS_MAX = 1000;

  /**
   * The most files that this process remembers: about 25 MB. The files of later versions wait for their turn, and may then go a little
   * early.
   */
  private static final int FILES_MAX = 100_000;

  private final TopicLog log;
  private final LogStore store;
  private final State state;
  private final long nowMs;
  private boolean durable;

  /** The data files that the live segments name; null until they are asked for. */
  private Set<String> live;

  /** @param state the newest state: files that it names stay */
  public ReplacedFiles(TopicLog log, State state, Clock clock) {
    this.log = log;
    this.store = log.store();
    this.state = state;
    this.nowMs = clock.millis();
  }

  /**
   * Deletes the files that the versions from the boundary on have removed, after they have waited for long enough. A process that has just
   * started reads them: the processes that put them may have ended.
   *
   * @param own the versions that it has just put, in order, which need not be read again
   */
  void deleteDue(List<Version> own) throws IOException {
    Removals removals = log.hints(state).removals();
    removals.beginAt(state.boundary());
    readOn(removals, own);
    List<String> files = removals.oldest();
    for (int versions = 0; versions < VERSIONS_MAX && !files.isEmpty() && isDue(removals.of(files.get(0))); versions++) {
      delete(files);
      removals.settle(files);
      files = removals.oldest();
    }
  }

  private void readOn(Removals removals, List<Version> own) throws IOException {
    long last = Math.min(state.version(), removals.readTo() + VERSIONS_MAX - 1);
    while (removals.readTo() <= last && removals.size() < FILES_MAX) {
      long number = removals.readTo();
      Optional<Version> put = own.stream().filter(each -> each.version() >= number && each.version() <= last).findFirst();
      long read = put.map(Version::version).orElse(last + 1) - 1;
      log.versions(number, read, version -> version.isPresent() && add(removals, version.get().get()));
      if (removals.readTo() <= read) {
        return; // Another program came further, or there are enough.
      }
      if (put.isPresent() && removals.size() < FILES_MAX) {
        add(removals, put.get());
      }
    }
  }

  /** @return whether more may be added */
  private boolean add(Removals removals, Version version) throws IOException {
    if (version.head().deleted()) {
      makeDurable();
      DataFolders.deletePlannedBelow(store, state.topic(), version.version() + 1);
    }
    removals.add(version);
    return removals.size() < FILES_MAX;
  }

  /** As {@link #deleteDue}. @return the first version whose removed files are not all deleted, or not known to be deleted */
  long settle() throws IOException {
    deleteDue(List.of());
    return log.hints(state).removals().settledTo();
  }

  /** All that the versions from the boundary on have removed, whether it is deleted or not. */
  public Removals removals() throws IOException {
    Removals removals = new Removals();
    removals.beginAt(state.boundary());
    log.versions(removals.readTo(), state.version(), version -> {
      version.flatMap(ReplacedFiles::readable).ifPresentOrElse(removals::add, removals::skip);
      return true;
    });
    return removals;
  }

  /** Empty if the file of the version is damaged: then its removed files are unknown. */
  private static Optional<Version> readable(Supplier<Version> version) {
    try {
      return Optional.of(version.get());
    } catch (PartlogException e) {
      if (e.id().equals("VERSION_CORRUPT")) {
        return Optional.empty();
      }
      throw e;
    }
  }

  /** In either direction: a clock that was wrong, and was set right, must not stop this for years. */
  public boolean isDue(Removals.Removal removal) {
    return state.isDeleted()
        || Math.abs(nowMs - removal.timeMs()) >= state.config().fileDeleteDelayMs() && state.config().isOld(removal.timeMs(), nowMs);
  }

  /** The process that put a version that removed files may have died before it was durable: a power loss must not make them live again. */
  private void makeDurable() throws IOException {
    if (!durable) {
      store.flush(Names.topicFolder(state.topic()));
      durable = true;
    }
  }

  /** Deletes the {@code files} that no live segment names, and the folders that are empty then. */
  public void delete(Collection<String> files) throws IOException {
    Set<String> folders = new LinkedHashSet<>();
    List<String> dead = files.stream().filter(file -> !live().contains(file)).toList();
    if (!dead.isEmpty()) {
      makeDurable();
      store.deleteAll(dead.stream().map(file -> Names.topicFile(state.topic(), file)).toList(), Step.DELETE_FILE::reached);
      dead.forEach(file -> folders.add(file.substring(0, file.lastIndexOf('/'))));
    }
    for (String folder : folders) {
      store.deleteFolderIfEmpty(Names.topicFile(state.topic(), folder));
    }
  }

  /** The data files that live segments name, relative to the topic's folder. */
  public Set<String> live() {
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
