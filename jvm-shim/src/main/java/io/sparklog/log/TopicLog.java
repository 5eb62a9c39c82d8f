package io.sparklog.log;

import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.UnfitFileException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/** The commit log of one topic, for reading: finds the newest state. FORMAT.md section 9. */
public final class TopicLog {
  private static final int PARTITIONS_SHOWN = 20;

  private final LogStore store;
  private final String topic;
  private State known;

  public TopicLog(LogStore store, String topic) {
    this.store = store;
    this.topic = topic;
  }

  public LogStore store() {
    return store;
  }

  public String topic() {
    return topic;
  }

  /**
   * The newest state; empty if there is no such topic. Costs two looks at names, and reads nothing, if nothing was committed since the last
   * call.
   *
   * @throws PartlogException VERSION_CORRUPT, VERSION_MISSING, FORMAT_TOO_NEW, IO
   */
  public synchronized Optional<State> newest() {
    try {
      if (known != null) {
        State.Builder builder = new State.Builder(known);
        // In this order: version files are deleted from the lowest on, so none was missed if the first one is still there afterwards.
        if (replay(builder, -1) && isUnchanged(known)) {
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
   * Checks that the Kafka view of a topic that is about to be created would replace nothing.
   *
   * @throws PartlogException FOREIGN_SEGMENTS
   */
  public void requireNoForeignSegments(int partitions) throws IOException {
    List<String> files = new ArrayList<>();
    List<Integer> in = new ArrayList<>();
    for (int partition = 0; partition < partitions; partition++) {
      String folder = Names.viewFolder(topic, partition);
      List<String> found = store.list(folder).stream().filter(name -> Names.viewBase(name).isPresent()).sorted().toList();
      if (!found.isEmpty()) {
        found.forEach(name -> files.add(store.location(folder + "/" + name)));
        in.add(partition);
      }
    }
    // If another writer has created the topic in the meantime, the files are its own.
    if (!files.isEmpty() && newest().isEmpty()) {
      throw PartlogException.of("FOREIGN_SEGMENTS", "topic", topic, "root", store.root(), "count", files.size(), "partitions", shown(in),
          "file", files.get(0));
    }
  }

  /** {@code 0, 1, 4}; of many, the first ones and how many more there are. */
  private static String shown(List<Integer> partitions) {
    String first = partitions.stream().limit(PARTITIONS_SHOWN).map(String::valueOf).collect(Collectors.joining(", "));
    return partitions.size() <= PARTITIONS_SHOWN ? first : first + " and " + (partitions.size() - PARTITIONS_SHOWN) + " more";
  }

  /** Notes that the checkpoint of {@code state} was written, so that the next commit does not write one again. */
  synchronized void noteCheckpoint(State state) {
    if (known != null && known.topicId().equals(state.topicId()) && known.checkpointVersion() < state.version()) {
      known = known.withCheckpoint(state.version());
    }
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
   * {@code state} down to its boundary until then: at most a few hundred, if writers clean up.
   *
   * @throws PartlogException VERSION_CORRUPT, FORMAT_TOO_NEW
   */
  public Optional<Version> versionOf(Query query, State state) throws IOException {
    return versionOf(query, state, state.boundary());
  }

  Optional<Version> versionOf(Query query, State state, long lowest) throws IOException {
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
      if (version.query() != null && version.query().isNumbered(query)) {
        return Optional.of(version);
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

  /** Applies the versions that follow, at least up to {@code last}; false if the next one does not follow the newest known version. */
  private boolean replay(State.Builder builder, long last) throws IOException {
    while (true) {
      long next = builder.nextVersion();
      byte[] bytes;
      // Before it is read: if another file takes its place in between, the tag is not that file's.
      String tag = tag(next);
      try {
        bytes = tag == null ? null : read(next);
      } catch (NoSuchFileException missing) {
        bytes = null;
      } catch (UnfitFileException e) {
        throw corrupt(e, next, e.getReason());
      }
      if (bytes == null) {
        if (next <= last) {
          throw PartlogException.of("VERSION_MISSING", "version", next, "topic", topic, "root", store.root(), "newest", last);
        }
        return true;
      }
      Version version = parse(bytes, next);
      if (last < 0 && !builder.precedes(version)) {
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

  private State load() throws IOException {
    List<String> names = store.list(Names.topicFolder(topic));
    // The name of a checkpoint, even of a damaged one, tells that its version was committed.
    long last = names.stream()
        .flatMapToLong(name -> LongStream.concat(Names.versionOf(name).stream(), Names.checkpointVersion(name).stream()))
        .max()
        .orElse(-1);
    List<String> checkpoints = names.stream()
        .filter(name -> Names.checkpointVersion(name).isPresent())
        .sorted(Comparator.reverseOrder())
        .toList();
    if (last < 0) {
      return null;
    }
    State.Builder builder = null;
    for (String name : checkpoints) {
      String tag = tag(Names.checkpointVersion(name).getAsLong());
      builder = readable(name);
      if (builder != null) {
        builder.tag(tag);
        break;
      }
    }
    if (builder == null) {
      builder = new State.Builder();
    }
    replay(builder, last);
    return builder.build();
  }

  /** The state in a checkpoint; null if it is damaged, for it only saves time. @throws PartlogException FORMAT_TOO_NEW */
  private State.Builder readable(String name) {
    try {
      return Checkpoint.read(store, topic, name);
    } catch (Damaged | IOException e) {
      return null;
    }
  }
}
