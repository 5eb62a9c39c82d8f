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

  private static final ReadStore.Listing NOTHING_LISTED = new ReadStore.Listing(List.of(), Map.of(), false);

  private final ReadStore store;
  private final String topic;
  private final int untagged;

  /** {@link ReadStore#isRemote}. */
  private final boolean isRemote;
  private final Requests requests;

  /** @param untagged how many versions are read without any look, where each look is a request */
  VersionFiles(ReadStore store, String topic, int untagged) {
    this.store = store;
    this.topic = topic;
    this.untagged = untagged;
    this.isRemote = store.isRemote();
    this.requests = store.requests();
  }

  /**
   * The topic's folder. Without a version or a checkpoint among its names, the topic does not exist. A listing may miss names that come or
   * go meanwhile; even all names, if it takes so long that writers replace all of them. So a listing without a version is made again.
   */
  ReadStore.Listing list() throws IOException {
    ReadStore.Listing listing = store.listing(Names.topicFolder(topic));
    boolean isWhole = Names.newest(listing.names()) >= 0 || listing.names().isEmpty() && listing.isInOrder();
    return isWhole ? listing : store.listing(Names.topicFolder(topic));
  }

  /** The tag of a version file, before it is read; null if it is absent. @param listing may tell it */
  String tag(long version, ReadStore.Listing listing) throws IOException {
    ReadStore.Listed file = listing.files().get(Names.versionFile(version));
    return file == null ? tag(version) : file.tag();
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
   * A version file, and its tag from before it was read; no bytes if it is absent, and no tag where each look is a request.
   *
   * @param isLarge whether it has more bytes than were expected: then it is not read yet
   */
  private record ReadFile(String tag, byte[] bytes, boolean isLarge) {}

  private ReadFile find(long version, long expectedBytes) throws IOException {
    // Before it is read: if another file takes its place in between, the tag is not that file's.
    String tag = isRemote ? null : tag(version);
    return tag == null && !isRemote ? new ReadFile(null, null, false) : read(version, expectedBytes, tag);
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

  /** Applies all versions that follow: as {@link #replay(Replay, long, boolean, ReadStore.Listing)}, if none is known to be there. */
  boolean replay(Replay builder) throws IOException {
    return replay(builder, -1, false, NOTHING_LISTED);
  }

  /**
   * Applies the versions that follow, until none is there. Where each look is a request, the state keeps the tag of an earlier version,
   * unless that version is far behind. After this call, the caller looks at the file of the earlier version: if that file is still
   * there, the files of later versions were there when they were read.
   *
   * <p>The versions up to {@code last} and the one after it are read at once. If more than a few versions were found, as many again are
   * read at once, because more may follow.
   *
   * @param last a version that is known to be there, so that all before it are needed
   * @param isToLast whether versions after {@code last} are not needed
   * @return false if the next one does not follow the one before it
   */
  boolean replay(Replay builder, long last, boolean isToLast, ReadStore.Listing listing) throws IOException {
    long begun = builder.nextVersion();
    Follower follower = new Follower(builder, listing);
    do {
      long next = builder.nextVersion();
      long guessed = next - begun < GUESSES_MIN ? next : Math.min(2 * next - begun, next + requests.most() - 1);
      follower.follow(next, isToLast ? last : Math.max(last + 1, guessed));
    } while (!isToLast && follower.course == Course.GOES_ON);
    if (follower.course == Course.BREAKS) {
      return false;
    }
    tagAgain(builder, listing);
    return true;
  }

  /** GOES_ON if another version may follow, ENDED after the last version, BREAKS if a version does not follow the version before. */
  private enum Course {
    GOES_ON, ENDED, BREAKS
  }

  /** Applies one version after another. */
  private final class Follower implements Requests.Taker<Long, ReadFile> {
    private final Replay builder;
    private final ReadStore.Listing listing;
    private Course course = Course.GOES_ON;

    private Follower(Replay builder, ReadStore.Listing listing) {
      this.builder = builder;
      this.listing = listing;
    }

    private void follow(long first, long last) throws IOException {
      Iterable<Long> numbers = () -> LongStream.rangeClosed(first, last).iterator();
      requests.each(numbers, this::bytes, Version.BYTES_MAX, number -> find(number, bytes(number)), this);
    }

    /** The most bytes that a file is read with, beside others. A larger file is read alone. */
    private long bytes(long version) {
      ReadStore.Listed file = listing.files().get(Names.versionFile(version));
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

  private void tagAgain(Replay builder, ReadStore.Listing listing) throws IOException {
    long last = builder.nextVersion() - 1;
    if (isRemote && last - builder.tagged() > untagged) {
      String tag = tag(last, listing);
      if (tag != null) {
        builder.tag(tag, last);
      }
    }
  }

  /**
   * Whether the files of the state's versions are still the files that were read, from the version whose tag the state has. A topic that
   * was created again has others.
   */
  boolean isUnchanged(State state) throws IOException {
    return state.tag() != null && state.tag().equals(tag(state.tagged()));
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
