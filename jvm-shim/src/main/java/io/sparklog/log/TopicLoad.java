package io.sparklog.log;

import io.sparklog.json.Damaged;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.ReadStore;
import io.sparklog.storage.UnfitFileException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Finds the newest state of a topic without any earlier knowledge: from a listing of its folder, a checkpoint, and the versions after it.
 * FORMAT.md section 9.
 */
final class TopicLoad {
  private final ReadStore store;
  private final String topic;
  private final VersionFiles files;
  private final boolean producers;

  /** @param producers whether its states know the producers of the topic */
  TopicLoad(ReadStore store, String topic, VersionFiles files, boolean producers) {
    this.producers = producers;
    this.store = store;
    this.topic = topic;
    this.files = files;
  }

  /**
   * The files that were read need not belong together, as version files are deleted while others read. It is an error only if the next
   * attempt meets the same.
   */
  private static final class Moved extends Exception {
    private final String checkpoint;
    private final long version;
    private final transient PartlogException error;

    /**
     * @param start where the attempt began
     * @param version where it ended
     * @param error the error to throw if nothing was deleted during the attempt
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

  /** The newest state; null if the topic has never existed. */
  State newest() throws IOException {
    Moved before = null;
    long lastBefore = -1;
    while (true) {
      Map<String, ReadStore.Listed> listed = new TreeMap<>();
      List<String> names = files.list(listed);
      // The name of a checkpoint, even of a damaged one, tells that its version was committed.
      long last = Names.newest(names);
      if (last < 0) {
        return null;
      }
      try {
        State found = !files.isSparing() ? null : checkpoints(names).isEmpty() ? fromZero(listed, last) : trusting(names, listed, last);
        return found == null ? attempt(names, listed, last) : found;
      } catch (Moved now) {
        // If versions were committed during the attempt, files were deleted too, and a slow listing may miss what took their place.
        if (last == lastBefore && now.isAgain(before)) {
          throw now.error;
        }
        before = now;
        lastBefore = last;
      }
    }
  }

  /**
   * As {@link #attempt}, with fewer requests: it reads the file of the checkpoint's version in the end, when the version after the newest
   * was not there. Its bytes prove both: that it is the version which the checkpoint is of, and that it was still there.
   *
   * @return null if all is not as it should be: another attempt tells why
   */
  private State trusting(List<String> names, Map<String, ReadStore.Listed> listed, long last) throws IOException {
    List<String> checkpoints = checkpoints(names);
    Replay builder = readable(checkpoints.get(0), listed.get(checkpoints.get(0)), new ArrayList<>());
    long version = builder == null ? -1 : builder.nextVersion() - 1;
    String tag = builder == null ? null : files.tag(version, listed);
    if (tag == null) {
      return null;
    }
    builder.tag(tag, version);
    Replay checkpoint = new Replay(builder.build());
    try {
      if (!files.replay(builder, last, listed) || builder.nextVersion() <= last) {
        return null;
      }
      byte[] bytes = files.readIfPresent(version);
      boolean isRight = bytes != null && checkpoint.isAt(bytes) && checkpoint.agreesWith(files.parse(bytes, version));
      return isRight ? builder.build() : null;
    } catch (PartlogException wrong) {
      return null;
    }
  }

  /**
   * As {@link #attempt}, of a topic without a checkpoint: the last listing takes the place of all looks. FORMAT.md section K.1.
   *
   * @return null if all is not as it should be: another attempt tells why
   */
  private State fromZero(Map<String, ReadStore.Listed> first, long last) throws IOException {
    Map<String, ReadStore.Listed> listed = first;
    String tag = files.tag(0, listed);
    if (tag == null || !store.listsInOrder()) {
      return null;
    }
    Replay builder = new Replay(producers);
    builder.tag(tag, 0);
    try {
      for (long until = last; until >= builder.nextVersion(); until = Names.newest(listed.keySet())) {
        if (!files.replayListed(builder, until, listed)) {
          return null;
        }
        listed = new TreeMap<>();
        if (!checkpoints(files.list(listed)).isEmpty() || !tag.equals(files.tag(0, listed))) {
          return null;
        }
      }
      return builder.build();
    } catch (PartlogException wrong) {
      return null;
    }
  }

  /**
   * The state of {@code next}, a version 0 that this process has put when no version was there. Null if the listing has more than that
   * version. FORMAT.md section K.1.
   */
  State begunBy(Replay next) throws IOException {
    if (!store.listsInOrder()) {
      return null;
    }
    Map<String, ReadStore.Listed> listed = new TreeMap<>();
    List<String> names = files.list(listed);
    String tag = files.tag(0, listed);
    if (tag == null || Names.newest(names) > 0 || !checkpoints(names).isEmpty()) {
      return null;
    }
    next.tag(tag, 0);
    return next.build();
  }

  /**
   * @param listed the files in the listing
   * @param last the greatest version in {@code names}, the names of the topic's folder
   */
  private State attempt(List<String> names, Map<String, ReadStore.Listed> listed, long last) throws IOException, Moved {
    List<String> checkpoints = checkpoints(names);
    Start start = start(checkpoints, listed, last);
    Replay builder = start.builder;
    boolean follow = files.replay(builder, last, listed);
    long next = builder.nextVersion();
    if (!follow) {
      throw new Moved(start, next,
          files.corrupt(null, next, "it does not follow version " + (next - 1) + " (its field previous or topicId differs)"));
    }
    if (next <= last) {
      throw new Moved(start, next, missing(start, next, last));
    }
    // At the end and not before: version files are deleted from the lowest on, so while the first is there, so are those after it.
    if (!isStillThere(start, checkpoints)) {
      throw new Moved(start, next, missing(start, start.first(), last));
    }
    return builder.build();
  }

  /**
   * Whether the first version file is still the file that was read. Without a checkpoint, a writer that slept through the clean-up may have
   * put this file. But then a checkpoint exists that is not among {@code checkpoints}, which were tried.
   */
  private boolean isStillThere(Start start, List<String> checkpoints) throws IOException {
    if (start.version >= 0) {
      return start.tag.equals(files.tag(start.version));
    }
    Map<String, ReadStore.Listed> listed = new TreeMap<>();
    return checkpoints.containsAll(checkpoints(files.list(listed))) && start.tag.equals(files.tag(0, listed));
  }

  /**
   * Where replaying begins. Before version 0, {@code checkpoint} has all that could not be read, and {@code version} is −1.
   *
   * @param tag of the first version file, taken before it was read
   * @param failure why a newer checkpoint could not be read, though it may be whole; null without such a checkpoint
   */
  private record Start(String checkpoint, long version, String tag, Replay builder, IOException failure) {
    /** The first version whose file is needed. */
    private long first() {
      return Math.max(version, 0);
    }
  }

  private Start start(List<String> checkpoints, Map<String, ReadStore.Listed> listed, long last) throws IOException, Moved {
    List<IOException> failures = new ArrayList<>();
    StringBuilder tried = new StringBuilder();
    for (String checkpoint : checkpoints) {
      Replay builder = readable(checkpoint, listed.get(checkpoint), failures);
      if (builder != null) {
        long version = builder.nextVersion() - 1;
        String tag = files.tag(version, listed);
        Start start = new Start(checkpoint, version, tag, builder, first(failures));
        byte[] bytes = tag == null ? null : files.readIfPresent(version);
        if (bytes == null) {
          throw new Moved(start, version, missing(start, version, last));
        }
        if (!builder.isAt(bytes)) {
          throw new Moved(start, version, files.corrupt(null, version, "it is not the version that " + checkpoint + " is of"));
        }
        if (builder.agreesWith(files.parse(bytes, version))) {
          builder.tag(tag, version);
          return start;
        }
      }
      tried.append(checkpoint).append(store.exists(Names.topicFile(topic, checkpoint)) ? " " : " gone ");
    }
    // Those that were tried: if another one comes before the next attempt, or one goes, the next attempt is not the same again.
    Start start = new Start(tried.toString(), -1, files.tag(0, listed), new Replay(producers), first(failures));
    if (start.tag == null) {
      throw new Moved(start, 0, missing(start, 0, last));
    }
    start.builder.tag(start.tag, 0);
    return start;
  }

  /** The state at {@code version}, which a checkpoint up to that version or version 0 leads to; null where their files are gone. */
  State at(long version) throws IOException {
    Map<String, ReadStore.Listed> listed = new TreeMap<>();
    List<String> older = checkpoints(files.list(listed)).stream()
        .filter(name -> Names.checkpointVersion(name).orElseThrow() <= version)
        .toList();
    try {
      Start start = start(older, listed, version);
      return files.replayListed(start.builder, version, listed) ? start.builder.build() : null;
    } catch (Moved gone) {
      return null;
    }
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
   * @param listed its file in a listing; null if it was not listed
   * @param failures gets the reason if it cannot be read, but may be whole
   * @throws IOException only if an interrupt ended it
   * @throws PartlogException FORMAT_TOO_NEW
   */
  Replay readable(String name, ReadStore.Listed listed, List<IOException> failures) throws IOException {
    try {
      return Checkpoint.read(store, topic, name, listed, producers);
    } catch (Damaged | NoSuchFileException | UnfitFileException damagedOrGone) {
      return null;
    } catch (IOException e) {
      if (PartlogException.isInterrupt(e)) {
        throw e;
      }
      failures.add(e);
      return null;
    }
  }
}
