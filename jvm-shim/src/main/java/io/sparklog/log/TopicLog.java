package io.sparklog.log;

import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.UnfitFileException;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;

/** The commit log of one topic, for reading: finds the newest state. FORMAT.md section 9. */
public final class TopicLog {
  private final LogStore store;
  private final String topic;
  private final Pace pace;
  private State known;
  private TopicNotes notes = new TopicNotes(null);

  public TopicLog(LogStore store, String topic) {
    this(store, topic, Pace.PRODUCTION);
  }

  TopicLog(LogStore store, String topic, Pace pace) {
    this.store = store;
    this.topic = topic;
    this.pace = pace;
  }

  public LogStore store() {
    return store;
  }

  public String topic() {
    return topic;
  }

  public Pace pace() {
    return pace;
  }

  /**
   * The newest state of the topic; empty if it does not exist, or was deleted. Costs two looks at names, and reads nothing, if nothing was
   * committed since the last call.
   *
   * @throws PartlogException VERSION_CORRUPT, VERSION_MISSING, FORMAT_TOO_NEW, IO
   */
  public Optional<State> newest() {
    return latest().filter(state -> !state.isDeleted());
  }

  /** Whether the last look found a deleted topic. Looks at nothing. */
  synchronized boolean wasDeleted() {
    return known != null && known.isDeleted();
  }

  /** As {@link #newest}, but a deleted topic has a state too: what the next version must follow. */
  public synchronized Optional<State> latest() {
    try {
      if (known != null) {
        Replay builder = new Replay(known);
        // In this order: version files are deleted from the lowest on, so none was missed if the first one is still there afterwards.
        if (replay(builder) && isUnchanged(known)) {
          known = builder.nextVersion() == known.version() + 1 ? known : builder.build();
          return Optional.of(known);
        }
      }
      known = load();
      return Optional.ofNullable(known);
    } catch (IOException e) {
      throw PartlogException.io(e, store.location(Names.topicFolder(topic)));
    }
  }

  /**
   * Writes the checkpoint of {@code state}, and notes it, so that the next commit does not write one again.
   *
   * @param txn a random identity, for the name of a temporary file
   */
  public void writeCheckpoint(State state, String txn) throws IOException {
    Checkpoint.write(store, state, txn);
    noteCheckpoint(state, state.version());
  }

  /** A checkpoint of {@code version} is there, by whomever. */
  public synchronized void noteCheckpoint(State state, long version) {
    if (known != null && known.topicId().equals(state.topicId()) && known.checkpointVersion() < version) {
      known = known.withCheckpoint(version);
    }
  }

  /** What this process remembers of the topic that {@code state} is of. */
  public synchronized TopicNotes notes(State state) {
    if (!notes.areOf(state.topicId())) {
      notes = new TopicNotes(state.topicId());
    }
    return notes;
  }

  /**
   * The version {@code number}; empty if its file is gone.
   *
   * @throws PartlogException VERSION_CORRUPT, FORMAT_TOO_NEW
   */
  public Optional<Version> version(long number) throws IOException {
    byte[] bytes = readIfPresent(number);
    return bytes == null ? Optional.empty() : Optional.of(parse(bytes, number));
  }

  /**
   * Whether readers can begin at the checkpoint {@code name}: it is read whole, and is of the version that is there.
   *
   * @throws PartlogException FORMAT_TOO_NEW
   */
  public boolean isWhole(String name) throws IOException {
    Replay checkpoint = readable(name, new ArrayList<>());
    byte[] version = checkpoint == null ? null : readIfPresent(checkpoint.nextVersion() - 1);
    return version != null && checkpoint.isAt(version);
  }

  /** The bytes of a version file. @throws NoSuchFileException if it does not exist */
  byte[] read(long version) throws IOException {
    return store.read(Names.topicFile(topic, Names.versionFile(version)), Version.BYTES_MAX);
  }

  /** What {@link #read} gave. @throws PartlogException VERSION_CORRUPT or FORMAT_TOO_NEW */
  Version parse(byte[] bytes, long version) {
    try {
      return Version.parse(bytes, location(version), topic, version);
    } catch (Damaged e) {
      throw corrupt(e, version, e.getMessage());
    }
  }

  /**
   * The version that applied the epoch of {@code query}, whatever its input; empty if it is not found. Reads the version files from that of
   * {@code state} down to its boundary until then, or until one of an earlier epoch: at most a few hundred, if writers clean up.
   *
   * @throws PartlogException VERSION_CORRUPT, FORMAT_TOO_NEW
   */
  public Optional<Version> versionOf(Query query, State state) throws IOException {
    return versionOf(query, state, state.boundary());
  }

  /** As {@link #versionOf(Query, State)}, among the versions from {@code lowest} on. */
  public Optional<Version> versionOf(Query query, State state, long lowest) throws IOException {
    for (long number = state.version(); number >= lowest; number--) {
      Version version;
      try {
        version = parse(read(number), number);
      } catch (NoSuchFileException deleted) {
        break;
      } catch (UnfitFileException e) {
        throw corrupt(e, number, e.getReason());
      }
      if (!version.topicId().equals(state.topicId())) {
        break;
      }
      Query applied = version.query();
      if (applied != null && applied.id().equals(query.id()) && applied.epoch() <= query.epoch()) {
        return applied.isNumbered(query) ? Optional.of(version) : Optional.empty();
      }
    }
    return Optional.empty();
  }

  private PartlogException corrupt(Exception cause, long version, String reason) {
    return PartlogException.caused(cause, "VERSION_CORRUPT", "file", location(version), "reason", reason);
  }

  private String location(long version) {
    return store.location(Names.topicFile(topic, Names.versionFile(version)));
  }

  /** Whether the file of the state's version is still the one that was read. A topic that was created again has others. */
  boolean isUnchanged(State state) throws IOException {
    return state.tag() != null && state.tag().equals(tag(state.version()));
  }

  /** The tag of a version file; null if it is absent. */
  private String tag(long version) throws IOException {
    return store.tag(Names.topicFile(topic, Names.versionFile(version))).orElse(null);
  }

  /**
   * What was read need not belong together, as version files are deleted while others read. It is an error only if the next attempt meets
   * the same.
   */
  private static final class Moved extends Exception {
    private final String checkpoint;
    private final long version;
    private final transient PartlogException error;

    /**
     * @param start where the attempt began
     * @param version where it ended
     * @param error what is wrong if nothing was deleted meanwhile
     */
    private Moved(Start start, long version, PartlogException error) {
      super(error);
      this.checkpoint = start.checkpoint;
      this.version = version;
      this.error = error;
    }

    private boolean isAgain(Moved before) {
      return before != null && checkpoint.equals(before.checkpoint) && version == before.version && error.id().equals(before.error.id());
    }
  }

  /** Applies the versions that follow, until none is there. @return false if the next one does not follow the one before it */
  private boolean replay(Replay builder) throws IOException {
    while (true) {
      long next = builder.nextVersion();
      // Before it is read: if another file takes its place in between, the tag is not that file's.
      String tag = tag(next);
      byte[] bytes = tag == null ? null : readIfPresent(next);
      if (bytes == null) {
        return true;
      }
      Version version = parse(bytes, next);
      if (!builder.precedes(version)) {
        return false;
      }
      try {
        builder.apply(version, bytes);
      } catch (Damaged e) {
        throw corrupt(e, next, e.getMessage());
      }
      builder.tag(tag);
    }
  }

  private byte[] readIfPresent(long version) throws IOException {
    try {
      return read(version);
    } catch (NoSuchFileException absent) {
      return null;
    } catch (UnfitFileException e) {
      throw corrupt(e, version, e.getReason());
    }
  }

  private State load() throws IOException {
    Moved before = null;
    while (true) {
      try {
        return attempt();
      } catch (Moved now) {
        if (now.isAgain(before)) {
          throw now.error;
        }
        before = now;
      }
    }
  }

  private State attempt() throws IOException, Moved {
    List<String> names = store.list(Names.topicFolder(topic));
    // The name of a checkpoint, even of a damaged one, tells that its version was committed.
    long last = names.stream()
        .flatMapToLong(name -> LongStream.concat(Names.versionOf(name).stream(), Names.checkpointVersion(name).stream()))
        .max()
        .orElse(-1);
    if (last < 0) {
      return null;
    }
    List<String> checkpoints = checkpoints(names);
    Start start = start(checkpoints, last);
    Replay builder = start.builder;
    boolean follow = replay(builder);
    long next = builder.nextVersion();
    if (!follow) {
      throw new Moved(start, next,
          corrupt(null, next, "it does not follow version " + (next - 1) + " (its field previous or topicId differs)"));
    }
    if (next <= last) {
      throw new Moved(start, next, missing(start, next, last));
    }
    // At the end and not before: version files are deleted from the lowest on, so while the first is there, so are those after it.
    boolean isThere = start.version < 0
        ? checkpoints.containsAll(checkpoints(store.list(Names.topicFolder(topic))))
        : start.tag.equals(tag(start.version));
    if (!isThere) {
      throw new Moved(start, next, missing(start, Math.max(start.version, 0), last));
    }
    return builder.build();
  }

  /**
   * Where replaying begins. Before version 0, {@code checkpoint} is all that cannot be read, and {@code version} −1.
   *
   * @param failure why a newer checkpoint could not be read, though it may be whole; null if there is no such checkpoint
   */
  private record Start(String checkpoint, long version, String tag, Replay builder, IOException failure) {}

  private Start start(List<String> checkpoints, long last) throws IOException, Moved {
    List<IOException> failures = new ArrayList<>();
    for (String checkpoint : checkpoints) {
      Replay builder = readable(checkpoint, failures);
      if (builder != null) {
        long version = builder.nextVersion() - 1;
        String tag = tag(version);
        Start start = new Start(checkpoint, version, tag, builder, first(failures));
        byte[] bytes = tag == null ? null : readIfPresent(version);
        if (bytes == null) {
          throw new Moved(start, version, missing(start, version, last));
        }
        if (!builder.isAt(bytes)) {
          throw new Moved(start, version, corrupt(null, version, "it is not the version that " + checkpoint + " is of"));
        }
        builder.tag(tag);
        return start;
      }
    }
    // Those that were tried: if another one comes meanwhile, the next attempt is not the same again.
    return new Start(String.join(" ", checkpoints), -1, null, new Replay(), first(failures));
  }

  private static IOException first(List<IOException> failures) {
    return failures.isEmpty() ? null : failures.get(0);
  }

  /** The checkpoints among {@code names}, the newest first. */
  private static List<String> checkpoints(List<String> names) {
    return names.stream().filter(name -> Names.checkpointVersion(name).isPresent()).sorted(Comparator.reverseOrder()).toList();
  }

  /** Nothing is missing if a checkpoint above it could not be read: the store failed. */
  private PartlogException missing(Start start, long version, long newest) {
    if (start.failure != null) {
      return PartlogException.io(start.failure, store.location(Names.topicFolder(topic)));
    }
    return PartlogException.of("VERSION_MISSING", "version", version, "topic", topic, "root", store.root(), "newest", newest);
  }

  /**
   * The state in a checkpoint; null if it is damaged, gone or cannot be read, for others may do.
   *
   * @param failures gets the reason if it cannot be read, but may be whole
   * @throws PartlogException FORMAT_TOO_NEW
   */
  private Replay readable(String name, List<IOException> failures) throws ClosedByInterruptException {
    try {
      return Checkpoint.read(store, topic, name);
    } catch (ClosedByInterruptException interrupt) {
      throw interrupt;
    } catch (Damaged | NoSuchFileException | UnfitFileException damagedOrGone) {
      return null;
    } catch (IOException e) {
      failures.add(e);
      return null;
    }
  }
}
