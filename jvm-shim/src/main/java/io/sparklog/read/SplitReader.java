package io.sparklog.read;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Layout;
import io.sparklog.log.BatchWalk;
import io.sparklog.log.Segment;
import io.sparklog.log.SegmentFile;
import io.sparklog.log.SegmentGone;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.zip.CRC32C;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the batches of a split one after another, each fully checked, and shows those of their records that belong to it. FORMAT.md section
 * 9.
 *
 * <p>The plan's offsets count; its positions and files are where they were when it was made. What is handed out is the committed records of
 * these offsets, or an exception is thrown.
 */
public final class SplitReader implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(SplitReader.class);

  /**
   * Where an extent ends at an offset of unknown place, so many bytes more than it should take are read at once, and then batch by batch.
   */
  private static final int AHEAD_BYTES = 16 << 10;

  private final LogStore store;
  private final Split split;
  private final boolean failOnDataLoss;
  private final boolean headersWillDo;
  private long rowsLeft;
  private final BatchDecoder decoder;
  private final ReadAhead ahead = new ReadAhead();
  private final CRC32C headerCrc = new CRC32C();
  private final Deque<Extent> left;

  private Extent extent;
  private Segment segment;
  private SegmentFile file;
  private long stopPosition;
  private long position;
  private long nextOffset;
  private boolean relocated;
  private long knownVersion;

  private long base;
  private boolean headerOnly;
  private int first;
  private int rows;
  private long batchesRead;

  /**
   * @param headersWillDo whether nothing of the records is asked for but their offsets
   * @param rowsMax no more records are handed out
   */
  public SplitReader(LogStore store, Split split, boolean failOnDataLoss, boolean headersWillDo, long rowsMax) {
    this.rowsLeft = rowsMax;
    this.headersWillDo = headersWillDo;
    this.store = store;
    this.split = split;
    this.failOnDataLoss = failOnDataLoss;
    this.decoder = new BatchDecoder(split.decompressedBytesMax());
    this.left = new ArrayDeque<>(split.extents());
    this.knownVersion = split.version();
  }

  /**
   * Goes to the next batch with records to hand out; false if there is none.
   *
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT, SEGMENT_MISSING, OFFSETS_EXPIRED, TOPIC_REPLACED
   */
  public boolean next() throws IOException {
    while (rowsLeft > 0) {
      if (extent == null && !begin()) {
        return false;
      }
      while (position < stopPosition && nextOffset < extent.endOffset()) {
        batch();
        if (rows > 0) {
          rowsLeft -= rows;
          return true;
        }
      }
      end();
    }
    return false;
  }

  /** The current batch; records {@link #first} to {@link #first} + {@link #rows} of it are to be handed out. */
  public BatchDecoder batchDecoder() {
    return decoder;
  }

  /** The offset that the deltas of the current batch count from. */
  public long base() {
    return base;
  }

  /** Whether the records of the current batch have offset deltas 0, 1, 2, … and were not decoded. */
  public boolean isHeaderOnly() {
    return headerOnly;
  }

  public int first() {
    return first;
  }

  public int rows() {
    return rows;
  }

  /** Batches read so far. */
  public long batchesRead() {
    return batchesRead;
  }

  /** Bytes read so far. */
  public long bytesRead() {
    return ahead.bytesRead();
  }

  private boolean begin() throws IOException {
    while (!left.isEmpty()) {
      extent = left.poll();
      segment = extent.segment(split.partition());
      stopPosition = extent.to() >= 0 ? extent.to() : segment.endPosition();
      try {
        file = SegmentFile.open(store, split.topic(), segment);
        ahead.begin(file, stopPosition, extent.from() + extent.bytesToRead() + AHEAD_BYTES);
      } catch (SegmentGone gone) {
        left.push(extent);
        planAnew(gone);
        continue;
      }
      if (!segment.dense()) {
        checkHeaders();
      }
      position = extent.from();
      nextOffset = extent.fromOffset();
      relocated = false;
      headerCrc.reset();
      return true;
    }
    extent = null;
    return false;
  }

  /** Where offsets have gaps, a wrong one of a batch that is not read may hide one that should be: only all headers together show it. */
  private void checkHeaders() throws IOException {
    BatchWalk walk = new BatchWalk(file);
    while (walk.next()) {
      // To the end of the segment.
    }
    walk.requireHeaderCrc();
  }

  private void end() throws IOException {
    if (segment.dense() && nextOffset < extent.endOffset()) {
      throw file.corrupt("its batches up to byte " + position + " end at offset " + nextOffset + ", before offset " + extent.endOffset());
    }
    if (extent.to() >= 0 && position != extent.to()) {
      throw file.corrupt("offset " + nextOffset + " is at byte " + position + ", and should be at byte " + extent.to());
    }
    if (extent.isWhole() && !relocated) {
      file.requireHeaderCrc(headerCrc);
    }
    extent = null;
    close();
  }

  /** Reads and checks the batch at {@link #position}. */
  private void batch() throws IOException {
    boolean hinted = position == extent.from() && position != segment.position() && !relocated;
    if (hinted && (position < segment.position() || position > segment.endPosition() - Layout.HEADER_BYTES)) {
      relocate();
      return;
    }
    int at = ahead.find(position, Layout.HEADER_BYTES);
    try {
      base = file.checkHeader(position, ahead.buffer(), at, stopPosition, nextOffset);
    } catch (PartlogException e) {
      if (hinted) {
        relocate();
        return;
      }
      throw e;
    }
    int bytes = BatchHeader.totalBytes(ahead.buffer(), at);
    headerOnly = headersWillDo && !extent.tested()
        && BatchHeader.count(ahead.buffer(), at) == BatchHeader.lastOffsetDelta(ahead.buffer(), at) + 1;
    if (bytes > decoder.batchBytesMax()) {
      throw file.corrupt(position, new BadBatch("it has " + bytes + " bytes; the limit is " + decoder.batchBytesMax()));
    }
    boolean passing = headerOnly && ReadAhead.isLarge(bytes);
    at = passing ? at : ahead.find(position, bytes);
    byte[] buffer = ahead.buffer();
    BatchHeader.addTo(headerCrc, buffer, at, segment.dense());
    long afterLast = base + BatchHeader.lastOffsetDelta(buffer, at) + 1;
    try {
      if (passing) {
        decoder.check(buffer, at, bytes, crc -> ahead.pass(position + Layout.HEADER_BYTES, bytes - Layout.HEADER_BYTES, crc));
      } else if (headerOnly) {
        decoder.check(buffer, at, bytes);
      } else {
        decoder.decode(buffer, at, bytes);
      }
    } catch (BadBatch e) {
      throw file.corrupt(position, e);
    }
    batchesRead++;
    position += bytes;
    nextOffset = afterLast;
    trim();
  }

  /** Finds the records of the current batch that lie in the extent. */
  private void trim() {
    int count = decoder.isControl() ? 0 : decoder.count();
    first = base >= extent.startOffset() ? 0 : firstFrom(extent.startOffset() - base, count);
    int end = nextOffset <= extent.endOffset() ? count : firstFrom(extent.endOffset() - base, count);
    if (extent.tested()) {
      end = test(first, end);
    }
    rows = (int) Math.min(rowsLeft, Math.max(0, end - first));
  }

  /**
   * Moves the records that meet the condition together, over those that do not, and returns where they end.
   */
  private int test(int from, int end) {
    Condition condition = split.condition();
    int[] offsetDeltas = decoder.offsetDeltas();
    long[] timestamps = decoder.timestamps();
    int to = from;
    for (int i = from; i < end; i++) {
      if (condition.isMet(base + offsetDeltas[i], Times.micros(timestamps[i]))) {
        if (to < i) {
          decoder.keep(i, to);
        }
        to++;
      }
    }
    return to;
  }

  private int firstFrom(long delta, int count) {
    if (delta <= 0) {
      return 0;
    }
    if (headerOnly || delta > Integer.MAX_VALUE) {
      return (int) Math.min(count, delta);
    }
    int found = Arrays.binarySearch(decoder.offsetDeltas(), 0, count, (int) delta);
    return found >= 0 ? found : -found - 1;
  }

  /**
   * Where the plan saw a batch there is none that fits: it took an index at its word, or the file has changed. Only walking from the
   * segment's start can tell.
   */
  private void relocate() throws IOException {
    relocated = true;
    rows = 0;
    BatchWalk walk = new BatchWalk(file);
    while (walk.next() && walk.last() < extent.startOffset()) {
      // On to the batch that holds the first offset.
    }
    position = walk.position();
    nextOffset = walk.base();
  }

  /** The data file of the next extent is gone: its offsets may have moved to another, or they have expired. */
  private void planAnew(SegmentGone gone) throws IOException {
    Extent next = left.peek();
    Optional<State> newest = new TopicLog(store, split.topic()).newest();
    if (newest.isPresent() && !newest.get().topicId().equals(split.topicId())) {
      throw PartlogException.caused(gone, "TOPIC_REPLACED", "topic", split.topic(), "root", store.root());
    }
    if (newest.isEmpty() || newest.get().version() <= knownVersion) {
      throw gone.missing();
    }
    State state = newest.get();
    knownVersion = state.version();
    long start = state.start(split.partition());
    if (start > next.startOffset()) {
      PartlogException expired = PartlogException.caused(gone, "OFFSETS_EXPIRED", "offset", next.startOffset(), "topic", split.topic(),
          "partition", split.partition(), "root", store.root(), "start", start);
      if (failOnDataLoss) {
        throw expired;
      }
      LOG.warn("{} Going on with what is there, since failOnDataLoss is false.", expired.getMessage());
    }
    List<Extent> fresh = new ArrayList<>();
    for (Extent old : left) {
      fresh.addAll(
          new ExtentFinder(store).find(state, split.partition(), Math.max(start, old.startOffset()), old.endOffset(), split.condition()));
    }
    if (fresh.stream().anyMatch(extent -> extent.file().equals(next.file()))) {
      throw gone.missing();
    }
    left.clear();
    left.addAll(fresh);
  }

  @Override
  public void close() throws IOException {
    ahead.close();
  }
}
