package io.sparklog.merge;

import io.sparklog.log.State;
import io.sparklog.log.Step;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentBuilder;
import io.sparklog.spec.Invariant;
import io.sparklog.spec.Warnings;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.LogStore;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * The data files of a merge. A segment stays in memory until it is large enough for a file of its own. Smaller segments share a file, so
 * many partitions cost one sync.
 */
final class MergedFiles implements Closeable {
  private final LogStore store;
  private final String topic;
  private final String folder;
  private final List<String> created = new ArrayList<>();
  private final byte[] buffer;
  private int buffered;
  private int ownFiles;
  private FileAppender pool;

  /** The file of the open segment; null as long as the buffer has all of it. */
  private FileAppender own;
  private String ownName;

  /** @param folder relative to the topic's folder */
  MergedFiles(LogStore store, State state, String folder) {
    this.store = store;
    this.topic = state.topic();
    this.folder = folder;
    this.buffer = new byte[SegmentBuilder.ownFileBytes(store, state.config().hasView())];
  }

  /** Appends to the open segment, which is of {@code partition}. */
  void write(int partition, byte[] from, int at, int length) throws IOException {
    if (length >= buffer.length - buffered) {
      if (own == null) {
        ownName = folder + "/" + Names.ownFile(partition, 0, 0, ownFiles++);
        own = create(ownName);
      }
      own.write(buffer, 0, buffered);
      buffered = 0;
    }
    if (length >= buffer.length) {
      own.write(from, at, length);
    } else {
      System.arraycopy(from, at, buffer, buffered, length);
      buffered += length;
    }
  }

  private FileAppender create(String name) throws IOException {
    Step.MERGE_WRITE.reached();
    created.add(name);
    return store.create(Names.topicFile(topic, name));
  }

  /** Closes the open segment. @param base its first offset. @return it, in its place */
  Segment end(SegmentBuilder built, long base) throws IOException {
    Segment segment = built.segment().at(base);
    if (own == null) {
      String name = folder + "/" + Names.poolFile();
      pool = pool == null ? create(name) : pool;
      long position = pool.position();
      pool.write(buffer, 0, buffered);
      buffered = 0;
      requireBytes(segment, name, pool.position() - position);
      return segment.in(name, position);
    }
    own.write(buffer, 0, buffered);
    buffered = 0;
    requireBytes(segment, ownName, own.position());
    byte[] index = built.index(store);
    own.write(index, 0, index.length);
    own.sync();
    own.close();
    own = null;
    return segment.in(ownName, 0).indexed(index.length);
  }

  private void requireBytes(Segment segment, String name, long written) {
    Invariant.require(written == segment.bytes(), () -> "of a merge, " + written + " bytes were written to " + name + " for " + segment);
  }

  /** Forgets the open segment. */
  void discard() throws IOException {
    buffered = 0;
    if (own != null) {
      own.close();
      own = null;
      delete(List.of(ownName));
    }
  }

  /** Makes all files durable. */
  void sync() throws IOException {
    if (pool != null) {
      pool.sync();
    }
    store.flush(Names.topicFile(topic, folder));
    store.flush(Names.topicFile(topic, Names.DATA));
  }

  /** Deletes all files but {@code kept}. A file that cannot be deleted is left to a vacuum. */
  void deleteAllBut(Set<String> kept) {
    delete(created.stream().filter(name -> !kept.contains(name)).toList());
    try {
      store.deleteFolderIfEmpty(Names.topicFile(topic, folder));
    } catch (IOException e) {
      Warnings.warn(MergedFiles.class, "left {} of topic {}", folder, topic, e);
    }
  }

  private void delete(List<String> names) {
    for (String name : names) {
      try {
        store.delete(Names.topicFile(topic, name));
        created.remove(name);
      } catch (IOException e) {
        Warnings.warn(MergedFiles.class, "left {} of topic {}", name, topic, e);
      }
    }
  }

  @Override
  public void close() throws IOException {
    try {
      discard();
    } finally {
      if (pool != null) {
        pool.close();
      }
    }
  }
}
