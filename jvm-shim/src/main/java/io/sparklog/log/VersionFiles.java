package io.sparklog.log;

import io.sparklog.json.Damaged;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.ReadStore;
import io.sparklog.storage.Requests;
import io.sparklog.storage.UnfitFileException;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;

/** The version files of one topic, for reading. FORMAT.md section 5. */
final class VersionFiles {
  /** So many versions are read one after another, before more are guessed to follow. */
  private static final int GUESSES_MIN = 4;

  private final ReadStore store;
  private final String topic;
  private final int untagged;

  /** {@link ReadStore#sparesLooks}. */
  private final boolean sparing;
  private final Requests requests;

  /** @param untagged how many versions are read without any look, where looks are spared */
  VersionFiles(ReadStore store, String topic, int untagged) {
    this.store = store;
    this.topic = topic;
    this.untagged = untagged;
    this.sparing = store.sparesLooks();
    this.requests = store.requests();
  }

  /**
   * The names in the topic's folder. Without a version or a checkpoint among them, the topic does not exist. A listing may miss names that
   * come or go meanwhile; even all names, if it takes so long that writers replace all of them. So a listing without a version is made
   * again.
   */
  List<String> list() throws IOException {
    List<String> names = store.list(Names.topicFolder(topic));
    return Names.newest(names) < 0 ? store.list(Names.topicFolder(topic)) : names;
  }

  boolean isSparing() {
    return sparing;
  }

  /** Like {@link #list()}. @param listed gets the lengths and tags that the listing has, if looks are spared */
  List<String> list(Map<String, ReadStore.Listed> listed) throws IOException {
    if (!sparing) {
      return list();
    }
    boolean isWhole = false;
    for (int lists = 0; lists < 2 && !isWhole; lists++) {
      listed.putAll(store.listed(Names.topicFolder(topic)));
      isWhole = Names.newest(listed.keySet()) >= 0 || listed.isEmpty() && store.listsInOrder();
    }
    return List.copyOf(listed.keySet());
  }

  /** The tag of a version file, before it is read; null if it is absent. @param listed by {@link #list(Map)} */
  String tag(long version, Map<String, ReadStore.Listed> listed) throws IOException {
    if (!sparing) {
      return tag(version);
    }
    ReadStore.Listed file = listed.get(Names.versionFile(version));
    return file == null ? null : file.tag();
  }

  /** The bytes of a version file. @throws NoSuchFileException if it does not exist */
  byte[] read(long version) throws IOException {
    return store.read(name(version), Version.BYTES_MAX);
  }

  /** The version in the bytes that {@link #read} gave. @throws PartlogException VERSION_CORRUPT or FORMAT_TOO_NEW */
  Version parse(byte[] bytes, long version) {
    try {
      return Version.parse(bytes, location(version), topic, version);
    } catch (Damaged e) {
      requireWhole(bytes, version);
      throw corrupt(e, version, e.getMessage());
    }
  }

  /** A store may take a connection that is cut, again and again, for the end of the file. */
  private void requireWhole(byte[] bytes, long version) {
    long there;
    try {
      there = store.bytes(name(version));
    } catch (NoSuchFileException gone) {
      return;
    } catch (IOException e) {
      throw PartlogException.io(e, location(version));
    }
    if (bytes.length < there) {
      throw PartlogException.io(new EOFException("only " + bytes.length + " of " + there + " bytes came"), location(version));
    }
  }

  /** The tag of a version file; null if it is absent. */
  String tag(long version) throws IOException {
    return store.tag(name(version)).orElse(null);
  }

  /**
   * A version file, and its tag from before it was read; no bytes if it is absent, and no tag where looks are spared.
   *
   * @param isLarge whether it has more bytes than were expected: then it is not read yet
   */
  private record ReadFile(String tag, byte[] bytes, boolean isLarge) {}

  private ReadFile find(long version, long expectedBytes) throws IOException {
    // Before it is read: if another file takes its place in between, the tag is not that file's.
    String tag = sparing ? null : tag(version);
    return tag == null && !sparing ? new ReadFile(null, null, false) : read(version, expectedBytes, tag);
  }

  private ReadFile read(long version, long expectedBytes, String tag) throws IOException {
    try {
      return new ReadFile(tag, store.read(name(version), (int) Math.min(expectedBytes, Version.BYTES_MAX)), false);
    } catch (NoSuchFileException absent) {
      return new ReadFile(tag, null, false);
    } catch (UnfitFileException e) {
      return new ReadFile(tag, null, true); // The name may also have a folder: a read without a limit finds out.
    }
  }

  /**
   * Reads version files at once.
   *
   * @param taker gets the bytes of each file, in their order; null if the file is absent
   */
  void each(long first, long last, Requests.Taker<Long, byte[]> taker) throws IOException {
    long share = Version.BYTES_MAX / requests.most();
    Iterable<Long> numbers = () -> LongStream.rangeClosed(first, last).iterator();
    requests.each(numbers, number -> share, Version.BYTES_MAX, number -> read(number, share, null),
        (number, found) -> taker.take(number, found.isLarge ? readIfPresent(number) : found.bytes));
  }

  /** Like {@link #replay(Replay, long, Map)}, if no later version is known to be there. */
  boolean replay(Replay builder) throws IOException {
    return replay(builder, -1, Map.of());
  }

  /**
   * Applies the versions that follow, until none is there. Where looks are spared, the state keeps the tag of an earlier version, unless
   * that version is far behind. The caller looks at the earlier one after this call: if it is still there, so were those after it when they
   * were read.
   *
   * <p>The versions up to {@code last} and the one after it are read at once. If more than a few versions were found, as many again are
   * read at once, because more may follow.
   *
   * @param last a version that is known to be there, so that all before it are needed
   * @param listed by {@link #list(Map)}
   * @return false if the next one does not follow the one before it
   */
  boolean replay(Replay builder, long last, Map<String, ReadStore.Listed> listed) throws IOException {
    long begun = builder.nextVersion();
    Follower follower = new Follower(builder, listed);
    while (follower.course == Course.GOES_ON) {
      long next = builder.nextVersion();
      long guessed = next - begun < GUESSES_MIN ? next : Math.min(2 * next - begun, next + requests.most() - 1);
      Iterable<Long> numbers = () -> LongStream.rangeClosed(next, Math.max(last + 1, guessed)).iterator();
      follower.follow(numbers);
    }
    if (follower.course == Course.BREAKS) {
      return false;
    }
    tagAgain(builder, listed);
    return true;
  }

  /**
   * As {@link #replay(Replay, long, Map)}, of the versions up to {@code last} alone.
   *
   * @return whether all of them follow
   */
  boolean replayListed(Replay builder, long last, Map<String, ReadStore.Listed> listed) throws IOException {
    Follower follower = new Follower(builder, listed);
    Iterable<Long> numbers = () -> LongStream.rangeClosed(builder.nextVersion(), last).iterator();
    follower.follow(numbers);
    tagAgain(builder, listed);
    return builder.nextVersion() > last;
  }

  /** GOES_ON if another version may follow, ENDED after the last version, BREAKS if a version does not follow the version before. */
  private enum Course {
    GOES_ON, ENDED, BREAKS
  }

  /** Applies one version after another. */
  private final class Follower implements Requests.Taker<Long, ReadFile> {
    private final Replay builder;
    private final Map<String, ReadStore.Listed> listed;
    private Course course = Course.GOES_ON;

    private Follower(Replay builder, Map<String, ReadStore.Listed> listed) {
      this.builder = builder;
      this.listed = listed;
    }

    private void follow(Iterable<Long> numbers) throws IOException {
      requests.each(numbers, this::bytes, Version.BYTES_MAX, number -> find(number, bytes(number)), this);
    }

    /** The most bytes that a file is read with, beside others. A larger file is read alone. */
    private long bytes(long version) {
      ReadStore.Listed file = listed.get(Names.versionFile(version));
      return file == null ? Version.BYTES_MAX / requests.most() : file.bytes();
    }

    @Override
    public boolean take(Long number, ReadFile found) throws IOException {
      course = apply(number, found.tag, found.isLarge ? readIfPresent(number) : found.bytes);
      return course == Course.GOES_ON;
    }

    private Course apply(long number, String tag, byte[] bytes) {
      if (bytes == null) {
        return Course.ENDED;
      }
      Version version = parse(bytes, number);
      if (!builder.precedes(version)) {
        return Course.BREAKS;
      }
      try {
        builder.apply(version, bytes);
      } catch (Damaged e) {
        throw corrupt(e, number, e.getMessage());
      }
      if (tag != null) {
        builder.tag(tag, number);
      }
      return Course.GOES_ON;
    }
  }

  private void tagAgain(Replay builder, Map<String, ReadStore.Listed> listed) throws IOException {
    long last = builder.nextVersion() - 1;
    if (sparing && last - builder.tagged() > untagged) {
      ReadStore.Listed file = listed.get(Names.versionFile(last));
      String tag = file == null ? tag(last) : file.tag();
      if (tag != null) {
        builder.tag(tag, last);
      }
    }
  }

  /** The bytes of a version file; null if it does not exist. @throws PartlogException VERSION_CORRUPT if it is too large */
  byte[] readIfPresent(long version) throws IOException {
    try {
      return read(version);
    } catch (NoSuchFileException absent) {
      return null;
    } catch (UnfitFileException e) {
      throw corrupt(e, version, e.getReason());
    }
  }

  /** The error of a version whose content is wrong. */
  PartlogException corrupt(Exception cause, long version, String reason) {
    return PartlogException.caused(cause, "VERSION_CORRUPT", "file", location(version), "reason", reason);
  }

  private String name(long version) {
    return Names.topicFile(topic, Names.versionFile(version));
  }

  private String location(long version) {
    return store.location(name(version));
  }
}
