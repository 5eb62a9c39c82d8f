package io.sparklog.read;

import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.segment.BatchPosition;
import io.sparklog.segment.Extent;
import io.sparklog.segment.ExtentReader;
import io.sparklog.segment.ReadAhead;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFiles;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.Invariant;
import io.sparklog.spec.PartlogException;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Optional;

/**
 * Reads one partition batch by batch, each checked, also of later commits. FORMAT.md section 9.
 *
 * <p>The cursor has one position, the offset of the next record. If the position lies within a batch, the whole batch is given, and the
 * caller skips the records before the position. After a batch, the position is the last offset of the batch + 1, also if offsets have
 * gaps. So a caller may close a cursor at any time, and open another there. The cursor gives committed batches alone. It decodes no record
 * and knows no keys: the barrier of a re-route is the work of the caller.
 *
 * <p>If the data file of the next batch is gone, the newest state says where the same offsets are now, or why they are gone. A
 * {@link SplitReader} reads its planned extents by a cursor that ends with them. Not for several threads at once.
 */
public final class PartitionCursor implements Closeable {
  /** A smaller batch whose base offset is relative is copied, as that takes less time than to send it from its file. */
  private static final int STAMPED_BYTES_MIN = 16 << 10;

  /** A cut is before a batch of at least this size, and before a batch behind smaller batches that have this size together. */
  private static final int CUT_BYTES = 16 << 10;

  /**
   * A batch before which batches may be cut.
   *
   * @param at the place of the batch behind the first of its batches
   * @param isAbsolute whether the data file has {@code base} as its base offset
   */
  public record Cut(int at, long base, boolean isAbsolute) {}

  /**
   * Batches that follow one another in a data file.
   *
   * @param position of the first batch in the data file, in bytes
   * @param bytes of all the batches
   * @param base offset of the first batch, which may be below the position that the cursor had
   * @param nextOffset the last offset of the last batch + 1
   * @param copy the batches with absolute base offsets. Null if a caller may send the bytes of the file, with no copy in memory. The file
   *     may be gone by then; a cursor at {@code base} finds them again
   * @param cuts the first batch, all batches with a relative base offset, and others. Empty if there is a copy
   */
  public record Batches(Segment segment, long position, int bytes, long base, long nextOffset, byte[] copy, List<Cut> cuts) {
    /** The batches to which the caller must give absolute base offsets. Empty if there is a copy. */
    public List<Cut> stamps() {
      return cuts.stream().filter(cut -> !cut.isAbsolute).toList();
    }

    /** These batches and the batches of {@code next}, which follow them in the same file. */
    public Batches and(Batches next) {
      List<Cut> all = new ArrayList<>(cuts);
      next.cuts.forEach(cut -> all.add(new Cut(bytes + cut.at, cut.base, cut.isAbsolute)));
      return new Batches(segment, position, bytes + next.bytes, base, next.nextOffset, null, all);
    }

    /** Whether the batches of {@code next} follow these in the same file. */
    public boolean isBefore(Batches next) {
      return segment.equals(next.segment) && position + bytes == next.position;
    }

    /** The batches from a cut on, as many as fit in {@code bytesMax}; empty if {@code base} is at no cut, or if none fits. */
    public Optional<Batches> from(long base, int bytesMax) {
      int first = 0;
      while (first < cuts.size() && cuts.get(first).base != base) {
        first++;
      }
      if (first == cuts.size()) {
        return Optional.empty();
      }
      int from = cuts.get(first).at;
      int end = cuts.size();
      while (end > first && (end == cuts.size() ? bytes : cuts.get(end).at) - from > bytesMax) {
        end--;
      }
      if (end == first) {
        return Optional.empty();
      }
      int to = end == cuts.size() ? bytes : cuts.get(end).at;
      List<Cut> kept = cuts.subList(first, end).stream().map(cut -> new Cut(cut.at - from, cut.base, cut.isAbsolute)).toList();
      long next = end == cuts.size() ? nextOffset : cuts.get(end).base;
      return Optional.of(new Batches(segment, position + from, to - from, base, next, null, kept));
    }
  }

  private final ReadableTopics topics;
  private final String topic;
  private final String topicId;
  private final int partition;
  private final RecordFilter filter;
  private final ExtentReader.Need need;
  private final BatchDecoder decoder;
  private final LaterState later;
  private final ReadAhead.ReadRoom room;
  private final ReadAhead ahead;

  /** The extents that are left to read, beginning with the extent of {@link #reader}. */
  private final Deque<Extent> left;

  /** Opens the files of {@link #left}. Null before the first of them is opened. */
  private SegmentFiles files;

  /** Null while no extent is open. */
  private ExtentReader reader;

  /** The bytes that the caller is known to need. */
  private long wanted;

  /** See {@link ReadAhead.ReadRoom#ahead}. */
  private long aheadMax;

  /** The version of the plan, which has the extents of {@link #left}. */
  private long plannedVersion;

  /** All offsets of the partition before this one are in {@link #left}, or are read. */
  private long plannedTo;

  private long position;

  /** Whether the current batch of {@link #reader} did not fit into the last answer. */
  private boolean held;

  private long batchesRead;

  /** The extents of a split. After them, the cursor is at its end. */
  PartitionCursor(ReadableTopics topics, Split split, LaterState.DataLoss dataLoss, ExtentReader.Need need) {
    this.topics = topics;
    this.topic = split.topic();
    this.topicId = split.topicId();
    this.partition = split.partition();
    this.filter = split.filter();
    this.need = need;
    this.room = ReadAhead.ReadRoom.UNBOUNDED;
    this.ahead = new ReadAhead(room);
    this.decoder = new BatchDecoder(split.decompressedBytesMax());
    this.later = new LaterState(topics, dataLoss);
    this.left = new ArrayDeque<>(split.extents());
    this.plannedVersion = split.version();
  }

  private PartitionCursor(ReadableTopics topics, State state, int partition, long offset, ReadAhead.ReadRoom room) {
    this.topics = topics;
    this.topic = state.topic();
    this.topicId = state.topicId();
    this.partition = partition;
    this.filter = RecordFilter.ALL_RECORDS;
    this.need = topics.isRemote() ? ExtentReader.Need.BYTES : ExtentReader.Need.PLACE;
    this.room = room;
    this.ahead = new ReadAhead(room);
    this.decoder = new BatchDecoder(state.config().decompressedBytesMax());
    this.later = new LaterState(topics, new LaterState.DataLoss(true));
    this.left = new ArrayDeque<>();
    this.plannedTo = offset;
    this.position = offset;
  }

  /**
   * A cursor at {@code offset} of a partition, which may be the end offset.
   *
   * @throws PartlogException TOPIC_NOT_FOUND, PARTITION_NOT_FOUND, OFFSETS_EXPIRED below the log start offset, OFFSETS_OUT_OF_RANGE beyond
   *     the end offset
   */
  public static PartitionCursor open(ReadableTopics topics, String topic, int partition, long offset) {
    return open(topics, topic, partition, offset, ReadAhead.ReadRoom.UNBOUNDED);
  }

  /** As the other. @param room has the memory of batches that are in memory as a whole, and of bytes that are asked for ahead */
  public static PartitionCursor open(ReadableTopics topics, String topic, int partition, long offset, ReadAhead.ReadRoom room) {
    State state = topics.newest(topic).orElseThrow(() -> topics.notFound(topic));
    state.requirePartition("partition", topics.location(), partition);
    PartitionCursor cursor = new PartitionCursor(topics, state, partition, offset, room);
    cursor.requireInRange(state);
    return cursor;
  }

  /** The identity of the topic that the cursor was opened for. It gives batches of no other topic of this name. */
  public String topicId() {
    return topicId;
  }

  /** The offset of the next record. */
  public long position() {
    return position;
  }

  /**
   * Gives the next batches: as many as fit in {@code bytesMax}, and at least one; none at the end offset. In memory are the batches that
   * are copied. Over a network, one batch more is in memory, {@code bytesMax} bytes are asked for, and up to 8 MiB more by a cursor that
   * has read on before, but never more than 33 MiB. If batches were found before a fault, they are given, and the next call meets the
   * fault.
   *
   * @throws PartlogException OFFSETS_EXPIRED if the log start offset rose above the position; OFFSETS_OUT_OF_RANGE if the end offset fell
   *     below the position, as after a restore of an older copy; TOPIC_NOT_FOUND, TOPIC_REPLACED, SEGMENT_MISSING, SEGMENT_CORRUPT,
   *     BATCH_CORRUPT
   */
  public List<Batches> next(int bytesMax) throws IOException {
    State state = newest();
    want(bytesMax);
    long before = position;
    List<Batches> given = new ArrayList<>();
    try {
      for (int bytes = 0; bytes < Math.max(1, bytesMax) && (held || nextOf(state)); bytes += reader.bytes()) {
        held = !given.isEmpty() && reader.bytes() > bytesMax - bytes;
        if (held) {
          break;
        }
        give(given);
        position = reader.nextOffset();
      }
    } catch (IOException | RuntimeException e) {
      dropPlan(e);
      if (given.isEmpty()) {
        throw e;
      }
    } catch (Error e) {
      position = before;
      dropPlan(e);
      throw e;
    }
    return given;
  }

  /** The next call plans again from the position. */
  private void dropPlan(Throwable why) {
    try {
      closePlan();
    } catch (IOException | RuntimeException e) {
      if (e != why) {
        why.addSuppressed(e);
      }
    }
    left.clear();
    held = false;
    plannedTo = position;
  }

  /** Adds the current batch: to the batches before it if it follows them in the file, and neither it nor they are copied. */
  private void give(List<Batches> given) {
    Segment segment = reader.extent().segment();
    long at = reader.position();
    boolean isAbsolute = BatchHeader.baseOffset(reader.buffer(), reader.at()) == reader.base();
    if (topics.isRemote() || !isAbsolute && reader.bytes() < STAMPED_BYTES_MIN) {
      BatchHeader.setBaseOffset(reader.buffer(), reader.at(), reader.base());
      byte[] copy = Arrays.copyOfRange(reader.buffer(), reader.at(), reader.at() + reader.bytes());
      given.add(new Batches(segment, at, copy.length, reader.base(), reader.nextOffset(), copy, List.of()));
      return;
    }
    Batches last = given.isEmpty() ? null : given.get(given.size() - 1);
    boolean isNext = last != null && last.copy == null && last.segment.equals(segment);
    List<Cut> cuts = isNext ? last.cuts : new ArrayList<>();
    int before = isNext ? last.bytes : 0;
    if (!isNext || !isAbsolute || reader.bytes() >= CUT_BYTES || before - cuts.get(cuts.size() - 1).at >= CUT_BYTES) {
      cuts.add(new Cut(before, reader.base(), isAbsolute));
    }
    if (isNext) {
      int bytes = before + reader.bytes();
      given.set(given.size() - 1, new Batches(segment, last.position, bytes, last.base, reader.nextOffset(), null, cuts));
    } else {
      given.add(new Batches(segment, at, reader.bytes(), reader.base(), reader.nextOffset(), null, cuts));
    }
  }

  /** Goes to the batch that holds the position, or the next one; false at the end offset of {@code state}. Plans segment after segment. */
  private boolean nextOf(State state) throws IOException {
    while (true) {
      while (next()) {
        if (reader.nextOffset() > position) { // A small segment is read from its start.
          return true;
        }
      }
      position = Math.max(position, plannedTo);
      List<Segment> rest = state.segments(partition, position, state.end(partition));
      if (rest.isEmpty()) {
        position = state.end(partition);
        return false;
      }
      closePlan(); // The next segment is another plan.
      Segment first = rest.get(0);
      long start = Math.max(position, first.base());
      left.add(Extent.of(first, BatchPosition.startOf(first), start, first.end(), false));
      plannedTo = first.end();
      plan(Optional.of(state), start);
    }
  }

  /** The newest state of the topic, which still has the position. */
  private State newest() {
    State state = topics.newest(topic).orElseThrow(() -> topics.notFound(topic));
    if (!state.topicId().equals(topicId)) {
      throw PartlogException.of("TOPIC_REPLACED", "topic", topic, "root", topics.location());
    }
    requireInRange(state);
    return state;
  }

  private void requireInRange(State state) {
    long start = state.start(partition);
    if (position > state.end(partition)) {
      throw PartlogException.of("OFFSETS_OUT_OF_RANGE", "option", "offset", "offset", position, "topic", topic, "partition", partition,
          "root", topics.location(), "start", start, "end", state.end(partition), "way", "Ask for an offset in that range");
    }
    if (position < start) {
      throw PartlogException.of("OFFSETS_EXPIRED", "offset", position, "end", start, "count", start - position, "topic", topic, "partition",
          partition, "root", topics.location(), "start", start);
    }
  }

  /** Asks for the next bytes. @param bytes that the caller is known to need; see {@link SegmentFiles#want} */
  void want(long bytes) {
    wanted = bytes;
    aheadMax = topics.isRemote() ? room.ahead() : 0;
    if (files != null) {
      files.want(bytes, aheadMax);
    }
  }

  /**
   * Goes to the next batch of the planned extents; false after the last one.
   *
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT, SEGMENT_MISSING, OFFSETS_EXPIRED, TOPIC_NOT_FOUND, TOPIC_REPLACED
   */
  boolean next() throws IOException {
    while (!left.isEmpty()) {
      try {
        if (nextOfExtent()) {
          return true;
        }
      } catch (SegmentGone gone) {
        planAgain(gone);
      }
    }
    return false;
  }

  /** Goes to the next batch of the first extent that is left; at its end drops it, and returns false. */
  private boolean nextOfExtent() throws IOException {
    if (reader == null) {
      Extent extent = left.peek();
      if (files == null) {
        files = topics.open(topic, List.copyOf(left));
        files.want(wanted, aheadMax);
      }
      reader = ExtentReader.open(files.open(extent), extent, need, ahead, decoder);
    }
    if (reader.next()) {
      batchesRead++;
      return true;
    }
    closeReader();
    left.remove();
    return false;
  }

  /** The data file of the first extent that is left is gone: its offsets may be in another file now, or be gone. */
  private void planAgain(SegmentGone gone) throws IOException {
    long next = reader == null ? left.peek().startOffset() : Math.max(left.peek().startOffset(), reader.nextOffset());
    closePlan();
    plan(later.after(gone, topic, topicId, plannedVersion, next), next);
  }

  /**
   * Finds the offsets that are left, from {@code next} on, in a state, or in a later one if its files are gone too.
   *
   * @param planned empty if the topic is gone, and that is not an error: then nothing is left
   */
  private void plan(Optional<State> planned, long next) throws IOException {
    List<Extent> extents = null;
    for (Optional<State> state = planned; extents == null;) {
      if (state.isEmpty()) {
        left.clear();
        return;
      }
      plannedVersion = state.get().version();
      try {
        extents = extents(state.get(), Math.max(next, state.get().start(partition)));
      } catch (SegmentGone again) {
        state = later.after(again, topic, topicId, plannedVersion, next);
      }
    }
    List<Extent> found = extents;
    long before = left.stream().mapToLong(Extent::offsets).sum();
    long after = found.stream().mapToLong(Extent::offsets).sum();
    Invariant.require(after <= before && found.stream().allMatch(extent -> extent.startOffset() >= next), () -> "of partition " + partition
        + " of topic " + topic + ", " + before + " offsets from " + next + " on are left to read, and a later version has " + after);
    left.clear();
    left.addAll(found);
  }

  /** The extents that are left to read, from offset {@code next} on, as {@code state} has it. */
  private List<Extent> extents(State state, long next) throws IOException {
    ExtentFinder finder = new ExtentFinder(topics, new WalkedSegments());
    List<Extent> extents = new ArrayList<>();
    for (Extent extent : left) {
      extents.addAll(finder.find(state, partition, Math.max(next, extent.startOffset()), extent.endOffset(), filter));
    }
    return extents;
  }

  /** At the current batch. */
  ExtentReader reader() {
    return reader;
  }

  /** Has the records of the current batch if they are needed. */
  BatchDecoder decoder() {
    return decoder;
  }

  /** Batches read so far. */
  long batchesRead() {
    return batchesRead;
  }

  /** Bytes read so far. */
  long bytesRead() {
    return ahead.bytesRead();
  }

  @Override
  public void close() throws IOException {
    try {
      closePlan();
    } finally {
      ahead.release();
    }
  }

  private void closePlan() throws IOException {
    if (files != null) {
      files.close();
      files = null;
    }
    closeReader();
  }

  private void closeReader() throws IOException {
    ExtentReader closing = reader;
    reader = null;
    if (closing != null) {
      closing.close();
    }
  }
}
