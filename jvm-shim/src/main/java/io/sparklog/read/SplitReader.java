package io.sparklog.read;

import io.sparklog.format.BatchDecoder;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.segment.Extent;
import io.sparklog.segment.ExtentReader;
import io.sparklog.segment.ReadAhead;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.Invariant;
import io.sparklog.spec.PartlogException;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;

/**
 * Reads the batches of a split one after another, each fully checked, and shows the records that belong to the split. FORMAT.md section 9.
 *
 * <p>The offsets of the plan are exact; its files and positions are from the time of the plan. It returns the committed records of these
 * offsets, or throws an exception.
 */
public final class SplitReader implements Closeable {
  private final ReadableTopics topics;
  private final Split split;
  private final ExtentReader.Need need;
  private final LaterState later;
  private final BatchDecoder decoder;
  private final ReadAhead ahead = new ReadAhead();
  private final VisibleRecords records;

  /** The extents that are left to read, beginning with the extent of {@link #reader}. */
  private final Deque<Extent> left;

  /** Null while no extent is open. */
  private ExtentReader reader;

  private long knownVersion;
  private long rowsLeft;
  private long batchesRead;

  /**
   * @param failOnDataLoss whether it is an error if offsets or the topic have gone since the plan was made; otherwise they are left out
   * @param offsetsOnly whether the caller needs no more of the records than their offsets
   * @param rowsMax the most records to return
   */
  public SplitReader(ReadableTopics topics, Split split, boolean failOnDataLoss, boolean offsetsOnly, long rowsMax) {
    this.topics = topics;
    this.split = split;
    this.need = offsetsOnly ? ExtentReader.Need.OFFSETS : ExtentReader.Need.RECORDS;
    this.later = new LaterState(topics, new DataLoss(failOnDataLoss));
    this.decoder = new BatchDecoder(split.decompressedBytesMax());
    this.records = new VisibleRecords(decoder, split.filter());
    this.left = new ArrayDeque<>(split.extents());
    this.knownVersion = split.version();
    this.rowsLeft = rowsMax;
  }

  /**
   * Goes to the next batch with records to return; false at the end.
   *
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT, SEGMENT_MISSING, OFFSETS_EXPIRED, TOPIC_NOT_FOUND, TOPIC_REPLACED
   */
  public boolean next() throws IOException {
    while (rowsLeft > 0 && !left.isEmpty()) {
      try {
        if (nextOfExtent()) {
          rowsLeft -= records.rows();
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
      reader = ExtentReader.open(topics.open(split.topic(), extent.segment()), extent, need, ahead, decoder);
    }
    while (reader.next()) {
      batchesRead++;
      records.select(reader, rowsLeft);
      if (records.rows() > 0) {
        return true;
      }
    }
    close();
    left.remove();
    return false;
  }

  /** The data file of the first extent that is left is gone: its offsets may be in another file now, or be gone. */
  private void planAgain(SegmentGone gone) throws IOException {
    long next = reader == null ? left.peek().startOffset() : Math.max(left.peek().startOffset(), reader.nextOffset());
    close();
    List<Extent> extents = null;
    for (SegmentGone last = gone; extents == null;) {
      Optional<State> state = later.after(last, split.topic(), split.topicId(), knownVersion, next);
      if (state.isEmpty()) {
        left.clear();
        return;
      }
      knownVersion = state.get().version();
      try {
        extents = extents(state.get(), Math.max(next, state.get().start(split.partition())));
      } catch (SegmentGone again) {
        last = again;
      }
    }
    long before = left.stream().mapToLong(Extent::offsets).sum();
    long after = extents.stream().mapToLong(Extent::offsets).sum();
    Invariant.require(after <= before && extents.stream().allMatch(extent -> extent.startOffset() >= next),
        () -> "of partition " + split.partition() + " of topic " + split.topic() + ", " + before + " offsets from " + next
            + " on are left to read, and a later version has " + after);
    left.clear();
    left.addAll(extents);
  }

  /** The extents that are left to read, from offset {@code next} on, as {@code state} has it. */
  private List<Extent> extents(State state, long next) throws IOException {
    ExtentFinder finder = new ExtentFinder(topics, new WalkedSegments());
    List<Extent> extents = new ArrayList<>();
    for (Extent extent : left) {
      extents.addAll(finder.find(state, split.partition(), Math.max(next, extent.startOffset()), extent.endOffset(), split.filter()));
    }
    return extents;
  }

  /** The records of the current batch to return; good until the next call of {@link #next}. */
  public VisibleRecords records() {
    return records;
  }

  /** Batches read so far. */
  public long batchesRead() {
    return batchesRead;
  }

  /** Bytes read so far. */
  public long bytesRead() {
    return ahead.bytesRead();
  }

  @Override
  public void close() throws IOException {
    if (reader != null) {
      reader.close();
      reader = null;
    }
  }
}
