package io.sparklog.log;

import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.UnfitFileException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.List;

/** The version files of one topic, for reading. FORMAT.md section 5. */
final class VersionFiles {
  private final LogStore store;
  private final String topic;

  VersionFiles(LogStore store, String topic) {
    this.store = store;
    this.topic = topic;
  }

  /**
   * The names in the topic's folder; without one of a version or a checkpoint, the topic does not exist. A listing may miss what comes or
   * goes while it is made: all that it should show, if it takes so long that writers replace it. So one without a version is made again.
   */
  List<String> list() throws IOException {
    List<String> names = store.list(Names.topicFolder(topic));
    return Names.newest(names) < 0 ? store.list(Names.topicFolder(topic)) : names;
  }

  /** The bytes of a version file. @throws NoSuchFileException if it does not exist */
  byte[] read(long version) throws IOException {
    return store.read(Names.topicFile(topic, Names.versionFile(version)), Version.BYTES_MAX);
  }

  /** The version in the bytes that {@link #read} gave. @throws PartlogException VERSION_CORRUPT or FORMAT_TOO_NEW */
  Version parse(byte[] bytes, long version) {
    try {
      return Version.parse(bytes, location(version), topic, version);
    } catch (Damaged e) {
      throw corrupt(e, version, e.getMessage());
    }
  }

  /** The tag of a version file; null if it is absent. */
  String tag(long version) throws IOException {
    return store.tag(Names.topicFile(topic, Names.versionFile(version))).orElse(null);
  }

  /** Applies the versions that follow, until none is there. @return false if the next one does not follow the one before it */
  boolean replay(Replay builder) throws IOException {
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

  /** The error of a version that cannot be what it should be. */
  PartlogException corrupt(Exception cause, long version, String reason) {
    return PartlogException.caused(cause, "VERSION_CORRUPT", "file", location(version), "reason", reason);
  }

  private String location(long version) {
    return store.location(Names.topicFile(topic, Names.versionFile(version)));
  }
}
