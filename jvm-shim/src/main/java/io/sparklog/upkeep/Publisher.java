package io.sparklog.upkeep;

import io.sparklog.format.BatchHeader;
import io.sparklog.format.IndexBuilder;
import io.sparklog.format.Layout;
import io.sparklog.log.BatchWalk;
import io.sparklog.log.Names;
import io.sparklog.log.Segment;
import io.sparklog.log.SegmentFile;
import io.sparklog.log.SegmentGone;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.FileReader;
import io.sparklog.storage.FileStamper;
import io.sparklog.storage.LinkingStore;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Step;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Keeps the Kafka view of a topic: names and bytes that Kafka's tools and people look at. Anyone may repeat any of it at any time, so
 * nothing of it is synced but the stamps, which change data files. FORMAT.md section 8.
 */
public final class Publisher {
  private static final int COPY_BYTES = 1 << 20;

  private final LinkingStore store;
  private final State state;
  private final String txn;
  private int published;
  private PartlogException failure;

  /** @param txn a random identity, for the names of temporary files */
  private Publisher(LinkingStore store, State state, String txn) {
    this.store = store;
    this.state = state;
    this.txn = txn;
  }

  /** Brings into the view what a commit added; {@code state} holds it. A store without links has no view yet. */
  static void publish(LogStore store, State state, String txn, List<Segment> added) throws IOException {
    if (store instanceof LinkingStore linking) {
      new Publisher(linking, state, txn).add(added);
    }
  }

  private void add(List<Segment> segments) throws IOException {
    for (Segment segment : segments) {
      publish(segment);
    }
    Step.PUBLISH_DONE.reached();
  }

  /** The names of segments in the view, a list for each partition. */
  private static List<List<String>> names(LogStore store, State state) throws IOException {
    List<List<String>> names = new ArrayList<>();
    for (int partition = 0; partition < state.partitions(); partition++) {
      names.add(store.list(Names.viewFolder(state.topic(), partition)).stream().filter(name -> Names.viewBase(name).isPresent()).toList());
    }
    return names;
  }

  /**
   * Makes the whole view right, whatever is there: removes segments that are not live, brings in what is missing, repairs what differs.
   * One failure does not stop the rest.
   *
   * @param names what was in the view before {@link #state} was read, so that nothing is removed that was committed meanwhile
   * @throws PartlogException the first failure, which holds the others
   */
  private void all(List<List<String>> names) {
    for (int partition = 0; partition < state.partitions(); partition++) {
      String folder = Names.viewFolder(state.topic(), partition);
      Set<Long> live = new HashSet<>();
      state.segments(partition).forEach(segment -> live.add(segment.base()));
      for (String name : names.get(partition)) {
        if (!live.contains(Names.viewBase(name).getAsLong())) {
          attempt(() -> store.delete(folder + "/" + name));
        }
      }
    }
    for (int partition = 0; partition < state.partitions(); partition++) {
      for (Segment segment : state.segments(partition)) {
        attempt(() -> publish(segment));
      }
    }
    if (failure != null) {
      throw failure;
    }
    Step.PUBLISH_DONE.reached();
  }

  private interface Part {
    void run() throws IOException;
  }

  private void attempt(Part part) {
    try {
      part.run();
    } catch (SegmentGone e) {
      note(e.missing());
    } catch (IOException e) {
      note(PartlogException.io(e, store.location(Names.topicFolder(state.topic()))));
    } catch (PartlogException e) {
      note(e);
    }
  }

  private void note(PartlogException e) {
    if (failure == null) {
      failure = e;
    } else {
      failure.addSuppressed(e);
    }
  }

  private void publish(Segment segment) throws IOException {
    boolean own = Names.isOwnFile(segment.file()) && segment.position() == 0;
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
      changed |= put(segment, "index", index.offsetIndex());
      changed |= put(segment, "timeindex", index.timeIndex());
      Step.PUBLISH_LOG.reached();
      changed |= own ? link(segment) : copy(file);
    }
    if (changed) {
      published++;
    }
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
          stamper = stamper == null ? store.stamp(Names.topicFile(state.topic(), file.segment().file())) : stamper;
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

  private String temporary(String kind) {
    return Names.topicFile(state.topic(), Names.temporary(txn, kind));
  }

  /** Makes the file of {@code kind} hold {@code content}; false if it did already. */
  private boolean put(Segment segment, String kind, byte[] content) throws IOException {
    String name = view(segment, kind);
    if (holds(name, content)) {
      return false;
    }
    Step.PUBLISH_INDEX.reached();
    store.delete(name);
    try (FileAppender writer = fresh(temporary(kind))) {
      writer.write(content, 0, content.length);
    }
    move(temporary(kind), name);
    return true;
  }

  private boolean link(Segment segment) throws IOException {
    String data = Names.topicFile(state.topic(), segment.file());
    String name = view(segment, "log");
    if (store.isSameFile(data, name)) {
      return false;
    }
    store.delete(name);
    linkOnce(data, name);
    return true;
  }

  private boolean copy(SegmentFile file) throws IOException {
    Segment segment = file.segment();
    String name = view(segment, "log");
    byte[] bytes = new byte[(int) segment.bytes()];
    file.read(segment.position(), bytes, 0, bytes.length);
    for (BatchWalk walk = new BatchWalk(file); walk.next();) {
      BatchHeader.setBaseOffset(bytes, (int) (walk.position() - segment.position()), walk.base());
    }
    if (holds(name, bytes)) {
      return false;
    }
    store.delete(name);
    try (FileAppender writer = fresh(temporary("log"))) {
      for (int at = 0; at < bytes.length; at += COPY_BYTES) {
        writer.write(bytes, at, Math.min(COPY_BYTES, bytes.length - at));
      }
    }
    move(temporary("log"), name);
    return true;
  }

  private boolean holds(String name, byte[] content) throws IOException {
    try (FileReader there = store.open(name)) {
      if (there.bytes() != content.length) {
        return false;
      }
      byte[] found = new byte[content.length];
      there.read(0, found, 0, found.length);
      return Arrays.equals(found, content);
    } catch (IOException absentOrUnreadable) {
      // A link, a folder, whatever it is: it is replaced.
      return false;
    }
  }

  private FileAppender fresh(String temporary) throws IOException {
    store.delete(temporary);
    return store.create(temporary);
  }

  private void move(String temporary, String name) throws IOException {
    linkOnce(temporary, name);
    store.delete(temporary);
  }

  private void linkOnce(String existing, String name) throws IOException {
    try {
      store.link(existing, name);
    } catch (FileAlreadyExistsException another) {
      // Somebody publishes the same segment at the same time, and so the same bytes.
    }
  }

  /**
   * Makes the view of the topic that {@code log} is of right, as of now.
   *
   * @return how many segments were brought in or repaired
   * @throws PartlogException for what could not be repaired, once the rest is
   */
  public static int publish(TopicLog log, String txn) {
    if (!(log.store() instanceof LinkingStore store)) {
      throw new UnsupportedOperationException("a Kafka view needs a store with links, and " + log.store().root() + " is in one without");
    }
    State before = log.latest().orElseThrow();
    List<List<String>> names;
    try {
      names = names(store, before);
    } catch (IOException e) {
      throw PartlogException.io(e, store.location(Names.topicFolder(log.topic())));
    }
    Publisher publisher = new Publisher(store, log.latest().orElseThrow(), txn);
    publisher.all(names);
    return publisher.published;
  }
}
