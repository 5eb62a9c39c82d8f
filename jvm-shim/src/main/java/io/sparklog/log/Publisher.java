package io.sparklog.log;

import io.sparklog.format.BatchHeader;
import io.sparklog.format.IndexBuilder;
import io.sparklog.format.Layout;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.DataReader;
import io.sparklog.storage.DataWriter;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Names;
import io.sparklog.storage.Step;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;

/** Keeps the Kafka view of a topic: names and bytes that Kafka's tools and people look at. Anyone may repeat any of it at any time. FORMAT.md section 8. */
public final class Publisher {
  private static final int COPY_BYTES = 1 << 20;

  private final LogStore store;
  private final State state;
  private final String txn;
  private int published;

  /** @param txn a random identity, for the names of temporary files */
  public Publisher(LogStore store, State state, String txn) {
    this.store = store;
    this.state = state;
    this.txn = txn;
  }

  /** How many segments were brought into the view, or mended in it. */
  public int published() {
    return published;
  }

  /** Brings segments into the view that a commit added. */
  void add(List<Segment> segments) throws IOException {
    Set<Integer> partitions = new HashSet<>();
    for (Segment segment : segments) {
      publish(segment);
      partitions.add(segment.partition());
    }
    for (int partition : partitions) {
      store.sync(Names.viewFolder(state.topic(), partition));
    }
    Step.PUBLISH_DONE.reached();
  }

  /** Makes the whole view right, whatever is there: removes segments that are not live, brings in what is missing, mends what differs. */
  public void all() throws IOException {
    for (int partition = 0; partition < state.partitions(); partition++) {
      String folder = Names.viewFolder(state.topic(), partition);
      Set<Long> live = new HashSet<>();
      state.segments(partition).forEach(segment -> live.add(segment.base()));
      for (String name : store.list(folder)) {
        OptionalLong base = Names.viewBase(name);
        if (base.isPresent() && !live.contains(base.getAsLong())) {
          store.delete(folder + "/" + name);
        }
      }
    }
    for (int partition = 0; partition < state.partitions(); partition++) {
      for (Segment segment : state.segments(partition)) {
        publish(segment);
      }
      if (!state.segments(partition).isEmpty()) {
        store.sync(Names.viewFolder(state.topic(), partition));
      }
    }
    Step.PUBLISH_DONE.reached();
  }

  private void publish(Segment segment) throws IOException {
    String data = Names.topicFile(state.topic(), segment.file());
    boolean own = Names.isOwnFile(segment.file()) && segment.position() == 0;
    IndexBuilder index = new IndexBuilder(segment.base(), state.config().indexIntervalBytes());
    boolean changed = false;
    try (DataReader file = store.open(data)) {
      // A file that goes on after the segment has bytes in it that are not the segment's: it is copied like a shared one.
      own &= file.bytes() == segment.bytes();
      if (own) {
        stamp(segment, file, data, index);
      } else {
        walk(segment, file, index);
      }
      changed |= put(segment, "index", index.offsetIndex());
      changed |= put(segment, "timeindex", index.timeIndex());
      Step.PUBLISH_LOG.reached();
      changed |= own ? link(segment, data) : copy(segment, file);
    }
    if (changed) {
      published++;
    }
  }

  private void walk(Segment segment, DataReader file, IndexBuilder index) throws IOException {
    for (BatchWalk walk = new BatchWalk(state.topic(), segment, file); walk.next(); ) {
      index.batch(walk.position() - segment.position(), walk.last(), BatchHeader.maxTimestamp(walk.buffer(), walk.at()));
    }
  }

  /** Writes the absolute base offset into each batch, where it does not stand yet. Kafka's CRC does not cover it, and our readers accept either. */
  private void stamp(Segment segment, DataReader file, String data, IndexBuilder index) throws IOException {
    DataWriter writer = null;
    try {
      byte[] offset = new byte[Layout.HEADER_BYTES];
      for (BatchWalk walk = new BatchWalk(state.topic(), segment, file); walk.next(); ) {
        index.batch(walk.position(), walk.last(), BatchHeader.maxTimestamp(walk.buffer(), walk.at()));
        if (BatchHeader.baseOffset(walk.buffer(), walk.at()) != walk.base()) {
          Step.PUBLISH_STAMP.reached();
          writer = writer == null ? store.stamp(data) : writer;
          BatchHeader.setBaseOffset(offset, 0, walk.base());
          writer.write(walk.position(), offset, 0, Long.BYTES);
        }
      }
      if (writer != null) {
        writer.sync();
      }
    } finally {
      if (writer != null) {
        writer.close();
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
    try (DataWriter writer = fresh(temporary(kind))) {
      writer.write(content, 0, content.length);
      writer.sync();
    }
    move(temporary(kind), name);
    return true;
  }

  private boolean link(Segment segment, String data) throws IOException {
    String name = view(segment, "log");
    if (store.sameFile(data, name)) {
      return false;
    }
    store.delete(name);
    linkOnce(data, name);
    return true;
  }

  private boolean copy(Segment segment, DataReader file) throws IOException {
    String name = view(segment, "log");
    byte[] bytes = new byte[(int) segment.bytes()];
    file.read(segment.position(), bytes, 0, bytes.length);
    for (BatchWalk walk = new BatchWalk(state.topic(), segment, file); walk.next(); ) {
      BatchHeader.setBaseOffset(bytes, (int) (walk.position() - segment.position()), walk.base());
    }
    if (holds(name, bytes)) {
      return false;
    }
    store.delete(name);
    try (DataWriter writer = fresh(temporary("log"))) {
      for (int at = 0; at < bytes.length; at += COPY_BYTES) {
        writer.write(bytes, at, Math.min(COPY_BYTES, bytes.length - at));
      }
      writer.sync();
    }
    move(temporary("log"), name);
    return true;
  }

  private boolean holds(String name, byte[] content) throws IOException {
    try (DataReader there = store.open(name)) {
      if (there.bytes() != content.length) {
        return false;
      }
      byte[] found = new byte[content.length];
      there.read(0, found, 0, found.length);
      return Arrays.equals(found, content);
    } catch (NoSuchFileException absent) {
      return false;
    }
  }

  private DataWriter fresh(String temporary) throws IOException {
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

  /** Makes the view of the topic in {@code state} right. @return how many segments were brought in or mended */
  public static int publish(LogStore store, State state, String txn) {
    Publisher publisher = new Publisher(store, state, txn);
    try {
      publisher.all();
    } catch (IOException e) {
      throw PartlogException.caused(e, "IO", "file", store.location(Names.topicFolder(state.topic())), "cause", e.toString());
    }
    return publisher.published();
  }
}
