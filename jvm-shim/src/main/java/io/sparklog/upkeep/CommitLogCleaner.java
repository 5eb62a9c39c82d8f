package io.sparklog.upkeep;

import io.sparklog.log.Change;
import io.sparklog.log.Committer;
import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.Step;
import io.sparklog.log.TopicLog;
import io.sparklog.log.UpkeepHints;
import io.sparklog.log.Version;
import io.sparklog.segment.Names;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.time.Clock;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Function;

/** Keeps the commit log of a topic short: checkpoints, the boundary, and the files below it. FORMAT.md sections 6 and 12. */
public final class CommitLogCleaner {
  /** At most this many files are deleted at once, so that a commit is never delayed by much. */
  private static final int FILES_MAX = 1000;

  private final TopicLog log;
  private final LogStore store;
  private final String folder;
  private final Clock clock;

  public CommitLogCleaner(TopicLog log, Clock clock) {
    this.log = log;
    this.store = log.store();
    this.folder = Names.topicFolder(log.topic());
    this.clock = clock;
  }

  /**
   * Writes a checkpoint of {@code state}, if one is due that no other program has written.
   *
   * @param txn a random identity, for the name of a temporary file
   */
  boolean checkpoint(State state, String txn) throws IOException {
    int versions = log.pace().checkpointVersions();
    if (!state.isCheckpointDue(versions)) {
      return false;
    }
    List<String> checkpoints = names(Names::checkpointVersion);
    if (!checkpoints.isEmpty()) {
      long newest = versionOf(checkpoints.get(checkpoints.size() - 1));
      if (newest >= state.version() || !state.isDeleted() && state.version() - newest < versions) {
        log.noteCheckpoint(state, newest);
        return false;
      }
    }
    log.writeCheckpoint(state, txn);
    return true;
  }

  /**
   * Deletes files that are not needed before a checkpoint that is not the newest one. Version files go later, when a version has carried
   * the boundary.
   */
  public void clean(State state) throws IOException {
    List<String> checkpoints = names(Names::checkpointVersion);
    long kept = state.isDeleted() ? state.version() : keptFrom(state, checkpoints);
    if (kept < 0) {
      return;
    }
    long settled = new ReplacedFiles(log, state, clock).settle();
    log.hints(state).cleaned(state, Math.min(settled, kept));
    if (checkpoints.isEmpty() || versionOf(checkpoints.get(checkpoints.size() - 1)) < kept) {
      return; // That of a deleted topic is not there yet.
    }
    requireDurable();
    List<String> old = checkpoints.stream()
        .filter(checkpoint -> versionOf(checkpoint) < kept)
        .map(checkpoint -> folder + "/" + checkpoint)
        .toList();
    store.deleteAll(old, Step.CLEAN_CHECKPOINT::reached);
  }

  /** The version of the newest checkpoint that the boundary may rise to; −1 without such a checkpoint. */
  private long keptFrom(State state, List<String> checkpoints) throws IOException {
    if (checkpoints.isEmpty()) {
      return -1;
    }
    long newest = Math.min(state.version(), versionOf(checkpoints.get(checkpoints.size() - 1)));
    long most = Math.min(newest - log.pace().checkpointVersions(), lastOld(state, checkpoints));
    for (int i = checkpoints.size() - 1; i >= 0; i--) {
      long version = versionOf(checkpoints.get(i));
      // A checkpoint below the boundary is no longer of use.
      if (version <= most && version >= state.boundary() && log.isWhole(checkpoints.get(i))) {
        return version;
      }
    }
    return -1;
  }

  /** The greatest version of a checkpoint such that all checkpoints from the boundary up to it are of old versions; −1 without any. */
  private long lastOld(State state, List<String> checkpoints) throws IOException {
    if (state.config().versionsKeepMs() == 0) {
      return Long.MAX_VALUE;
    }
    long last = -1;
    for (String checkpoint : checkpoints) {
      long number = versionOf(checkpoint);
      Optional<Version> version = number < state.boundary() ? Optional.empty() : log.version(number);
      if (version.isPresent() && !state.config().isOld(version.get().head().time(), clock.millis())) {
        break;
      }
      last = version.isPresent() ? number : last;
    }
    return last;
  }

  /** Whether the boundary is so far behind that a version should be put for it alone: no other commit has carried it. */
  boolean isBoundaryBehind(State state) {
    return log.hints(state).cleanedTo(state) > state.boundary() && !state.isDeleted()
        && 2 * (state.version() - state.boundary()) > 5L * log.pace().checkpointVersions();
  }

  /** Puts a version that does nothing but carry the boundary. */
  Optional<Version> carryBoundary(Committer committer) {
    return committer.commit(new Change.Administrative() {
      @Override
      public Optional<NextVersion> next(Optional<State> newest) {
        return newest.filter(state -> isBoundaryBehind(state)).map(state -> new NextVersion(state, "vacuum"));
      }
    });
  }

  /** Deletes version files below the boundary, the lowest first. */
  public void deleteVersions(State state) throws IOException {
    UpkeepHints hints = log.hints(state);
    long boundary = state.boundary();
    if (hints.filesFrom() >= boundary) {
      return;
    }
    List<String> checkpoints = names(Names::checkpointVersion);
    if (checkpoints.isEmpty() || versionOf(checkpoints.get(checkpoints.size() - 1)) < boundary) {
      return; // Readers could not begin anywhere.
    }
    List<String> below = names(CommitLogCleaner::numberOf).stream().filter(name -> numberOf(name).getAsLong() < boundary).toList();
    requireDurable();
    for (String name : below.subList(0, Math.min(FILES_MAX, below.size()))) {
      Step.CLEAN_VERSION.reached();
      store.delete(folder + "/" + name);
    }
    if (below.size() <= FILES_MAX) {
      hints.filesFrom(boundary);
    }
  }

  /** The process that put the checkpoint which takes their place may have died before it was durable. */
  private void requireDurable() throws IOException {
    store.flush(folder);
  }

  /** The version of a version file or of a deletion marker. */
  private static OptionalLong numberOf(String name) {
    OptionalLong version = Names.versionOf(name);
    return version.isPresent() ? version : Names.deletedVersion(name);
  }

  private static long versionOf(String checkpoint) {
    return Names.checkpointVersion(checkpoint).getAsLong();
  }

  /** The names in the topic's folder that have a version, from the lowest on. */
  private List<String> names(Function<String, OptionalLong> version) throws IOException {
    return store.list(folder)
        .stream()
        .filter(name -> version.apply(name).isPresent())
        .sorted(Comparator.comparingLong((String name) -> version.apply(name).getAsLong()).thenComparing(Comparator.naturalOrder()))
        .toList();
  }
}
