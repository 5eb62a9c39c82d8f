package io.sparklog.view;

import io.sparklog.format.BatchHeader;
import io.sparklog.format.IndexBuilder;
import io.sparklog.format.Layout;
import io.sparklog.format.OffsetIndex;
import io.sparklog.log.State;
import io.sparklog.log.Step;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.FileReader;
import io.sparklog.storage.FileStamper;
import io.sparklog.storage.LinkingStore;
import io.sparklog.storage.UnfitFileException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;

/** The files of single segments in the Kafka view of a topic. FORMAT.md section 8. */
final class SegmentView {
  /** In the order in which they are made. */
  private static final List<String> KINDS = List.of("index", "timeindex", "log");

  private static final int COPY_BYTES = 1 << 20;

  private final LinkingStore store;
  private final State state;
  private final String txn;

  /** @param txn a random identity, for the names of temporary files */
  SegmentView(LinkingStore store, State state, String txn) {
    this.store = store;
    this.state = state;
    this.txn = txn;
  }

  /** Removes the three files of the name that a segment has or had. */
  void remove(int partition, long base) throws IOException {
    String folder = Names.viewFolder(state.topic(), partition);
    for (String kind : KINDS) {
      store.delete(folder + "/" + Names.viewFile(base, kind));
    }
  }

  /**
   * Whether a segment may be taken for right, by less than its bytes.
   *
   * @param names in the folder of its partition
   * @param indexes whether to look for indexes that a power loss has cut short, too
   */
  boolean seemsRight(Segment segment, Set<String> names, boolean indexes) throws IOException {
    for (String kind : KINDS) {
      if (!names.contains(Names.viewFile(segment.base(), kind))) {
        return false;
      }
    }
    try {
      boolean log = segment.isInOwnFile()
          ? store.isSameFile(Names.dataFile(state.topic(), segment.file()), view(segment, "log"))
          : store.bytes(view(segment, "log")) == segment.bytes();
      return log && (!indexes || isTimeIndexWhole(segment) && isOffsetIndexWhole(segment));
    } catch (NoSuchFileException | UnfitFileException absentOrOfAnotherKind) {
      return false;
    }
  }

  /** Its last entry has the greatest time. */
  private boolean isTimeIndexWhole(Segment segment) throws IOException {
    byte[] last = lastEntry(view(segment, "timeindex"), IndexBuilder.TIME_ENTRY_BYTES);
    return last != null && (last.length == 0 ? segment.maxTimestamp() < 0 : ByteBuffer.wrap(last).getLong() == segment.maxTimestamp());
  }

  /** From its last entry on, no batch begins where another entry would be due. */
  private boolean isOffsetIndexWhole(Segment segment) throws IOException {
    byte[] last = lastEntry(view(segment, "index"), OffsetIndex.ENTRY_BYTES);
    if (last == null) {
      return false;
    }
    int interval = state.config().indexIntervalBytes();
    if (last.length == 0 && segment.bytes() <= interval) {
      return true;
    }
    try (SegmentFile file = SegmentFile.open(store, state.topic(), segment)) {
      long position = segment.position();
      long base = segment.base();
      if (last.length > 0) {
        OffsetIndex entry = new OffsetIndex(last, segment.base());
        position += entry.position(0);
        OptionalLong hinted = file.hintedBase(position, new byte[Layout.HEADER_BYTES], entry.offset(0));
        if (hinted.isEmpty()) {
          return false;
        }
        base = hinted.getAsLong();
      }
      BatchWalk walk = new BatchWalk(file, position, base);
      while (walk.next()) {
        if (walk.position() - position > interval) {
          return false;
        }
      }
      return true;
    }
  }

  /** The last entry of an index; of no bytes if it has none, null if an entry is cut. */
  private byte[] lastEntry(String name, int entryBytes) throws IOException {
    try (FileReader index = store.open(name)) {
      long bytes = index.bytes();
      if (bytes % entryBytes != 0) {
        return null;
      }
      byte[] entry = new byte[bytes == 0 ? 0 : entryBytes];
      index.read(bytes - entry.length, entry, 0, entry.length);
      return entry;
    }
  }

  /**
   * Makes the three files of a segment right, also if other files have their names.
   *
   * @param compare whether they are probably right already, so that it is worth to look first
   * @return whether that changed anything; true if it did not look
   */
  boolean make(Segment segment, boolean compare) throws IOException {
    boolean own = segment.isInOwnFile();
    IndexBuilder index = new IndexBuilder(segment.base(), state.config().indexIntervalBytes());
    boolean changed = false;
    try (SegmentFile file = SegmentFile.open(store, state.topic(), segment)) {
      // A file that goes on after the segment has bytes in it that are not the segment's: it is copied like a shared one.
      own &= file.fileBytes() == segment.bytes();
      if (own) {
        stamp(file, index);
      } else {
        walk(file, index);
      }
      changed |= put(segment, "index", index.offsetIndex(), compare);
      changed |= put(segment, "timeindex", index.timeIndex(), compare);
      changed |= own ? link(segment) : put(segment, "log", copy(file), compare);
    }
    return changed;
  }

  private static void walk(SegmentFile file, IndexBuilder index) throws IOException {
    BatchWalk walk = new BatchWalk(file);
    while (walk.next()) {
      index.batch(walk.position() - file.segment().position(), walk.last(), BatchHeader.maxTimestamp(walk.buffer(), walk.at()));
    }
    walk.requireHeaderCrc();
  }

  /**
   * Writes the absolute base offset into each batch, where it is not written yet. Kafka's CRC does not cover it, and our readers
   * accept either.
   */
  private void stamp(SegmentFile file, IndexBuilder index) throws IOException {
    FileStamper stamper = null;
    try {
      byte[] offset = new byte[Layout.HEADER_BYTES];
      BatchWalk walk = new BatchWalk(file);
      while (walk.next()) {
        index.batch(walk.position(), walk.last(), BatchHeader.maxTimestamp(walk.buffer(), walk.at()));
        if (BatchHeader.baseOffset(walk.buffer(), walk.at()) != walk.base()) {
          Step.PUBLISH_STAMP.reached();
          stamper = stamper == null ? store.stamp(Names.dataFile(state.topic(), file.segment().file())) : stamper;
          BatchHeader.setBaseOffset(offset, 0, walk.base());
          stamper.replace(walk.position(), offset, 0, Long.BYTES);
        }
      }
      if (stamper != null) {
        stamper.sync();
      }
      walk.requireHeaderCrc();
    } finally {
      if (stamper != null) {
        stamper.close();
      }
    }
  }

  private String view(Segment segment, String kind) {
    return Names.viewFolder(state.topic(), segment.partition()) + "/" + Names.viewFile(segment.base(), kind);
  }

  /** Makes the file of {@code kind} hold {@code content}; false if it did already. */
  private boolean put(Segment segment, String kind, byte[] content, boolean compare) throws IOException {
    String name = view(segment, kind);
    if (compare && holds(name, content)) {
      return false;
    }
    (kind.equals("log") ? Step.PUBLISH_LOG : Step.PUBLISH_INDEX).reached();
    String temporary = Names.topicFile(state.topic(), Names.temporary(txn, kind));
    try (FileAppender writer = create(temporary)) {
      for (int at = 0; at < content.length; at += COPY_BYTES) {
        writer.write(content, at, Math.min(COPY_BYTES, content.length - at));
      }
    }
    link(temporary, name, () -> holds(name, content));
    store.delete(temporary);
    return true;
  }

  private boolean link(Segment segment) throws IOException {
    String data = Names.dataFile(state.topic(), segment.file());
    String name = view(segment, "log");
    if (store.isSameFile(data, name)) {
      return false;
    }
    Step.PUBLISH_LOG.reached();
    link(data, name, () -> store.isSameFile(data, name));
    return true;
  }

  /** The bytes of a segment, with absolute offsets. */
  private static byte[] copy(SegmentFile file) throws IOException {
    Segment segment = file.segment();
    byte[] bytes = new byte[(int) segment.bytes()];
    file.read(segment.position(), bytes, 0, bytes.length);
    for (BatchWalk walk = new BatchWalk(file); walk.next();) {
      BatchHeader.setBaseOffset(bytes, (int) (walk.position() - segment.position()), walk.base());
    }
    return bytes;
  }

  private boolean holds(String name, byte[] content) {
    try (FileReader there = store.open(name)) {
      if (there.bytes() != content.length) {
        return false;
      }
      byte[] found = new byte[content.length];
      there.read(0, found, 0, found.length);
      return Arrays.equals(found, content);
    } catch (IOException absentOrUnreadable) {
      // A link, a folder or another thing: it is replaced.
      return false;
    }
  }

  /** Creates a temporary file; a file that an earlier attempt has left is replaced. */
  private FileAppender create(String temporary) throws IOException {
    try {
      return store.create(temporary);
    } catch (FileAlreadyExistsException left) {
      store.delete(temporary);
      return store.create(temporary);
    }
  }

  private interface Check {
    boolean isTrue() throws IOException;
  }

  private void link(String existing, String name, Check isRight) throws IOException {
    try {
      store.link(existing, name);
    } catch (FileAlreadyExistsException | UnfitFileException there) {
      if (!isRight.isTrue()) {
        store.delete(name);
        linkUnlessThere(existing, name);
      }
    }
  }

  private void linkUnlessThere(String existing, String name) throws IOException {
    try {
      store.link(existing, name);
    } catch (FileAlreadyExistsException another) {
      // Another process publishes the same segment at the same time, and so the same bytes.
    }
  }
}
