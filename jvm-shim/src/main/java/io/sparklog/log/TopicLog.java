package io.sparklog.log;

import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.UnfitFileException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.function.Supplier;

/** The commit log of one topic, for reading: finds the newest state. FORMAT.md section 9. */
public final class TopicLog {
  /** The moment in which one question of a state is left out where each look is a request. */
  private static final long SEEN_MS = 5_000;

  private final LogStore store;
  private final String topic;
  private final VersionFiles files;
  private final TopicLoad load;
  private final TopicLoad loadKnowing;
  private final Pace pace;
  private volatile State known;
  /** When {@link #known} was last seen to be there, in ms since 1970. This clock counts the time in which a machine is suspended. */
  private volatile long seenMs;
  private volatile Durable durable = new Durable(null, -1);
  /** Held while {@link #durable} changes. Not this object, which is held while files are read. */
  private final Object durableLock = new Object();
  private UpkeepHints hints = new UpkeepHints(null);
  private final UpkeepQueue owed = new UpkeepQueue();

  /** The versions of a topic up to this one are durable. */
  private record Durable(String topicId, long version) {
    private boolean isBefore(String otherId, long otherVersion) {
      return !otherId.equals(topicId) || version < otherVersion;
    }
  }

  public TopicLog(LogStore store, String topic) {
    this(store, topic, Pace.PRODUCTION);
  }

  TopicLog(LogStore store, String topic, Pace pace) {
    this.store = store;
    this.topic = topic;
    this.files = new VersionFiles(store, topic, Math.max(1, pace.checkpointVersions() / 4));
    this.load = new TopicLoad(store, topic, files, false);
    this.loadKnowing = new TopicLoad(store, topic, files, true);
    this.pace = pace;
  }

  public LogStore store() {
    return store;
  }

  public String topic() {
    return topic;
  }

  VersionFiles files() {
    return files;
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

  /** TOPIC_EXISTS: something was to create it. */
  public PartlogException exists() {
    return PartlogException.of("TOPIC_EXISTS", "topic", topic, "root", store.root());
  }

  /** Whether the last look found a topic, also a deleted one. Looks at nothing, and does not wait for a look that is under way. */
  boolean wasFound() {
    return known != null;
  }

  /** Whether the last look found a deleted topic. Like {@link #wasFound}. */
  boolean wasDeleted() {
    State found = known;
    return found != null && found.isDeleted();
  }

  /** Like {@link #newest}, but a deleted topic has a state too: the state that the next version must follow. */
  public synchronized Optional<State> latest() {
    try {
      known = load.newest(known);
      seenMs = pace.clock().millis();
      return Optional.ofNullable(known);
    } catch (IOException e) {
      throw PartlogException.io(e, store.location(Names.topicFolder(topic)));
    }
  }

  /**
   * The state {@code found}, or a later one, that knows the producers of the topic; later states know them too. Readers do without: their
   * number, and damage of them, does not concern readers.
   *
   * @throws PartlogException as {@link #newest}
   */
  public synchronized Optional<State> knowing(Optional<State> found) {
    if (found.isEmpty() || found.get().knowsProducers()) {
      return found;
    }
    try {
      boolean isNewest = known == found.get();
      State knowing = found.get().hasProducers() ? loadKnowing.newest(null) : found.get().withoutProducers();
      known = isNewest ? knowing : known;
      return Optional.ofNullable(knowing);
    } catch (IOException e) {
      throw PartlogException.io(e, store.location(Names.topicFolder(topic)));
    }
  }

  /**
   * Like {@link #latest}, for the plan of a write. Where each look is a request, a version that was seen a moment ago need not be seen
   * again: the commit looks at it, see {@link #toExtend}.
   */
  public synchronized Optional<State> toPlan() {
    try {
      return wasSeen() && files.readIfPresent(known.version() + 1) == null ? Optional.of(known) : latest();
    } catch (IOException e) {
      throw PartlogException.io(e, store.location(Names.topicFolder(topic)));
    }
  }

  /**
   * Like {@link #latest}, for a commit whose plan has asked for the newest state. Where each look is a request, a later version need not be
   * looked for again within a moment: the put would be lost to it. The version that is extended must be there, also after a deletion by
   * hand.
   */
  synchronized Optional<State> toExtend() {
    try {
      return wasSeen() && files.isUnchanged(known) ? Optional.of(known) : latest();
    } catch (IOException e) {
      throw PartlogException.io(e, store.location(Names.topicFolder(topic)));
    }
  }

  /**
   * Like {@link #newest}, for a caller that may use a state of a moment ago. Where each question is a request to the store, such a state
   * costs no request, and the caller does not wait for a request of another thread.
   */
  public Optional<State> recent() {
    return seen().or(this::newest);
  }

  /** The state that was seen within {@link #SEEN_MS}, where each question is a request to the store; else empty. Reads no file. */
  public Optional<State> seen() {
    boolean wasSeen = wasSeen(); // First: a state that another thread puts in later is newer.
    State found = known;
    return wasSeen && !found.isDeleted() ? Optional.of(found) : Optional.empty();
  }

  private boolean wasSeen() {
    return store.isRemote() && known != null && Math.abs(pace.clock().millis() - seenMs) < SEEN_MS;
  }

  /**
   * Like {@link #latest}, for the upkeep after a commit. Each part of the upkeep is right by any state that has the version {@code own}.
   * Where each look is a request, a state that is known will do.
   */
  public synchronized Optional<State> after(long own) {
    return store.isRemote() && known != null && known.version() >= own ? Optional.of(known) : latest();
  }

  /**
   * This process has put the version of {@code next}, which extends {@code extended}, and has seen that this was there afterwards. Where
   * looks are spared, it need not be read.
   */
  synchronized void extend(State extended, Replay next) {
    if (store.isRemote() && known == extended) {
      known = next.build();
      seenMs = pace.clock().millis();
    }
  }

  /**
   * Whether the topic has the version of {@code next} alone, which this process has put. Only where each look is a request: there
   * one listing tells.
   */
  synchronized boolean isBegunBy(Replay next) throws IOException {
    State begun = store.isRemote() ? load.begunBy(next) : null;
    if (begun == null) {
      return false;
    }
    known = begun;
    seenMs = pace.clock().millis();
    return true;
  }

  /**
   * Writes the checkpoint of {@code state}, and notes it, so that the next commit does not write one again.
   *
   * @param txn a random identity, for the name of a temporary file
   */
  public void writeCheckpoint(State state, String txn) throws IOException {
    State knowing = knowing(Optional.of(state)).orElseThrow();
    requireDurable(knowing);
    Checkpoint.write(store, knowing, txn);
    noteCheckpoint(knowing, knowing.version());
  }

  /**
   * Syncs the topic's folder, unless this process knows that the version of {@code state} is durable. The process that put it may sleep
   * before its sync, or have died. Only then may something be put that rests on it: a power loss could take the version and leave that.
   */
  public void requireDurable(State state) throws IOException {
    if (!isDurable(state)) {
      store.flush(Names.topicFolder(topic));
      noteDurable(state.topicId(), state.version());
    }
  }

  boolean isDurable(State state) {
    Durable now = durable;
    return state.topicId().equals(now.topicId) && state.version() <= now.version;
  }

  /** The topic's folder was synced when the version was there. */
  void noteDurable(String topicId, long version) {
    synchronized (durableLock) {
      if (durable.isBefore(topicId, version)) {
        durable = new Durable(topicId, version);
      }
    }
  }

  /** A checkpoint of {@code version} is there; this process or another put it. */
  public synchronized void noteCheckpoint(State state, long version) {
    if (known != null && known.topicId().equals(state.topicId()) && known.checkpointVersion() < version) {
      known = known.withCheckpoint(version);
    }
  }

  /** The hints of this process for the upkeep of the topic that {@code state} is of. */
  public synchronized UpkeepHints hints(State state) {
    if (!hints.areOf(state.topicId())) {
      hints = new UpkeepHints(state.topicId());
    }
    return hints;
  }

  /** The upkeep of the topic that this process owes. */
  public UpkeepQueue owed() {
    return owed;
  }

  /**
   * The version {@code number}; empty if its file is gone.
   *
   * @throws PartlogException VERSION_CORRUPT, FORMAT_TOO_NEW
   */
  public Optional<Version> version(long number) throws IOException {
    byte[] bytes = files.readIfPresent(number);
    return bytes == null ? Optional.empty() : Optional.of(files.parse(bytes, number));
  }

  /**
   * The state at version {@code number}; empty if it is below the boundary of {@code newest}, or files that lead to it are gone.
   *
   * @throws PartlogException VERSION_CORRUPT, FORMAT_TOO_NEW
   */
  public Optional<State> at(State newest, long number) throws IOException {
    return number < newest.boundary() ? Optional.empty() : Optional.ofNullable(load.at(number));
  }

  /** Takes a version. */
  @FunctionalInterface
  public interface VersionTaker {
    /**
     * @param version gives the version, or throws VERSION_CORRUPT or FORMAT_TOO_NEW; empty if the file of the version is gone
     * @return false if no further version is needed
     */
    boolean take(Optional<Supplier<Version>> version) throws IOException;
  }

  /** Takes the versions from {@code first} to {@code last}, in order. Several of them are read at once where that takes requests. */
  public void versions(long first, long last, VersionTaker taker) throws IOException {
    files.each(first, last, (number, bytes) -> taker.take(Optional.ofNullable(bytes).map(read -> () -> files.parse(read, number))));
  }

  /**
   * Whether readers can begin at the checkpoint {@code name}: it is read whole, and is of the version that is there.
   *
   * @throws PartlogException FORMAT_TOO_NEW, VERSION_CORRUPT
   */
  public boolean isWhole(String name) throws IOException {
    return loadKnowing.isWhole(name);
  }

  /**
   * The newest version that {@code wanted} accepts, of the topic of {@code state} and up to that; empty if none does. It is shown these
   * versions, the newest first, until it accepts one or the next file is gone.
   *
   * @throws PartlogException VERSION_CORRUPT, FORMAT_TOO_NEW
   */
  public Optional<Version> newest(State state, Predicate<Version> wanted) throws IOException {
    String hash = state.hash();
    for (long number = state.version(); number >= 0; number--) {
      byte[] bytes = files.readIfPresent(number);
      if (bytes == null || !Version.sha256(bytes).equals(hash)) {
        requireAbsent(number, bytes);
        return Optional.empty();
      }
      Version version = files.parse(bytes, number);
      if (!version.head().topicId().equals(state.topicId())) {
        return Optional.empty();
      }
      if (wanted.test(version)) {
        return Optional.of(version);
      }
      hash = version.previous();
    }
    return Optional.empty();
  }

  /** Such a file is of a writer that slept, or above the boundary damaged. @throws PartlogException VERSION_CORRUPT */
  private void requireAbsent(long number, byte[] bytes) {
    if (bytes != null && latest().filter(newest -> newest.boundary() <= number).isPresent()) {
      throw files.corrupt(null, number, "it is not the version that " + (number + 1) + " follows");
    }
  }

  /**
   * The version that applied the epoch of {@code query}, also with another input; empty if it is not found. Reads the version files from
   * the version of {@code state} down to the boundary. Stops at the found version, or at a version of an earlier epoch. These are at most a
   * few hundred files, if writers clean up.
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
        version = files.parse(files.read(number), number);
      } catch (NoSuchFileException deleted) {
        break;
      } catch (UnfitFileException e) {
        throw files.corrupt(e, number, e.getReason());
      }
      if (!version.head().topicId().equals(state.topicId())) {
        break;
      }
      Query applied = version.query();
      if (applied != null && applied.id().equals(query.id()) && applied.epoch() <= query.epoch()) {
        return applied.isNumbered(query) ? Optional.of(version) : Optional.empty();
      }
    }
    return Optional.empty();
  }
}
