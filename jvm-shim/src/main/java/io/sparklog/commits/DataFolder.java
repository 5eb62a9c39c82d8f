package io.sparklog.commits;

import io.sparklog.log.State;
import io.sparklog.segment.Names;
import io.sparklog.spec.Warnings;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.List;
import java.util.random.RandomGenerator;

/** The data folder of many commits of this process to a topic. For one thread. FORMAT.md section C.2. */
final class DataFolder {
  /** Then the next folder begins, so that a folder is emptied by merges. */
  private static final int FILES_MAX = 1000;

  private final LogStore store;
  private final String topic;
  private final RandomGenerator random;
  private long plannedVersion;
  private String folder;
  /** Whether the name of the folder is durable. */
  private boolean named;
  private int files;

  DataFolder(LogStore store, String topic, RandomGenerator random) {
    this.store = store;
    this.topic = topic;
    this.random = random;
  }

  /** Whether a version after {@code newest} may name the files of this folder. */
  boolean serves(State newest) {
    return folder != null && plannedVersion >= newest.horizon();
  }

  /** Writes the parts into a new file of a folder that serves {@code newest}, and makes the file durable. @return the file's name */
  String write(State newest, FileParts parts) throws IOException {
    if (!serves(newest) || files == FILES_MAX) {
      begin(newest);
    }
    try {
      return writeFile(parts);
    } catch (NoSuchFileException deleted) {
      // Another program found the folder empty, and deleted it.
      begin(newest);
      return writeFile(parts);
    }
  }

  /** The bytes of a file whose name they need. */
  interface FileParts {
    List<byte[]> in(String file);
  }

  private void begin(State newest) {
    plannedVersion = newest.version() + 1;
    folder = Names.dataFolder(plannedVersion, Names.identity(random));
    files = 0;
    named = false;
  }

  private String writeFile(FileParts parts) throws IOException {
    String file = folder + "/" + Names.sharedFile(0, files++);
    try {
      try (FileAppender out = store.create(Names.topicFile(topic, file))) {
        named &= !out.inNewFolder(); // Also if another program has found the folder empty, and deleted it.
        for (byte[] part : parts.in(file)) {
          out.write(part, 0, part.length);
        }
        out.sync();
      }
      store.flush(Names.topicFile(topic, folder));
      if (!named) {
        store.flush(Names.topicFile(topic, Names.DATA));
        named = true;
      }
      return file;
    } catch (IOException e) {
      delete(file); // No version can name it yet.
      named = false; // The folder may have been made again.
      throw e;
    }
  }

  /** Deletes a file that no version can name. */
  void delete(String file) {
    try {
      store.delete(Names.topicFile(topic, file));
    } catch (IOException e) {
      Warnings.warn(DataFolder.class, "left {} of topic {}", file, topic, e);
    }
  }
}
