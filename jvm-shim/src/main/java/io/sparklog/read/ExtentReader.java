package io.sparklog.read;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Layout;
import io.sparklog.log.BatchWalk;
import io.sparklog.log.Segment;
import io.sparklog.log.SegmentFile;
import io.sparklog.log.SegmentGone;
import io.sparklog.log.Topics;
import io.sparklog.spec.PartlogException;
import java.io.Closeable;
import java.io.IOException;
import java.util.zip.CRC32C;

/** Reads the batches of one extent, one after another, and checks all that FORMAT.md section 9 asks for. */
final class ExtentReader implements Closeable {
  /** If only the end offset of an extent is known, this many bytes beyond the estimate are read at once, and then batch by batch. */
  private static final int AHEAD_BYTES = 16 << 10;

  private final SegmentFile file;
  private final Segment segment;
  private final Extent extent;
  private final boolean offsetsOnly;
  private final ReadAhead ahead;
  private final BatchDecoder decoder;
  private final long stopPosition;
  private final CRC32C headerCrc = new CRC32C();

  /** Whether {@link #position} is where the plan saw a batch, which is not proved yet. */
  private boolean hinted;

  private long position;
  private long nextOffset;
  private long base;
  private boolean headerOnly;

  private ExtentReader(SegmentFile file, Extent extent, boolean offsetsOnly, ReadAhead ahead, BatchDecoder decoder) {
    this.file = file;
    this.segment = extent.segment();
    this.extent = extent;
    this.offsetsOnly = offsetsOnly;
    this.ahead = ahead;
    this.decoder = decoder;
    this.stopPosition = extent.to() >= 0 ? extent.to() : segment.endPosition();
    this.hinted = extent.from() != segment.position();
    this.position = extent.from();
    this.nextOffset = extent.fromOffset();
  }

  /**
   * Opens the data file of an extent.
   *
   * @param offsetsOnly whether the caller needs no more of the records than their offsets
   * @param ahead reads the file, and nothing else until this is closed
   * @throws SegmentGone if the file is gone
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT
   */
  static ExtentReader open(Topics topics, String topic, Extent extent, boolean offsetsOnly, ReadAhead ahead, BatchDecoder decoder)
      throws IOException {
    SegmentFile file = topics.open(topic, extent.segment());
    try {
      ExtentReader reader = new ExtentReader(file, extent, offsetsOnly, ahead, decoder);
      ahead.begin(file, reader.stopPosition, extent.from() + extent.bytesToRead() + AHEAD_BYTES);
      if (!extent.segment().dense()) {
        reader.checkHeaders();
      }
      return reader;
    } catch (IOException | RuntimeException e) {
      file.close();
      throw e;
    }
  }

  /**
   * If offsets have gaps, a wrong offset of a batch that is not read may hide a batch that should be: only all headers together show it.
   */
  private void checkHeaders() throws IOException {
    BatchWalk walk = new BatchWalk(file);
    while (walk.next()) {
      // To the end of the segment.
    }
    walk.requireHeaderCrc();
  }

  /**
   * Reads and checks the next batch; false after the last one.
   *
   * @throws SegmentGone if the file is gone by now
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT
   */
  boolean next() throws IOException {
    while (position < stopPosition && nextOffset < extent.endOffset()) {
      if (hinted && !isBatchHere()) {
        relocate();
      } else {
        read();
        return true;
      }
    }
    requireEnd();
    return false;
  }

  private boolean isBatchHere() throws IOException {
    hinted = false;
    if (position < segment.position() || position > segment.endPosition() - Layout.HEADER_BYTES) {
      return false;
    }
    int at = ahead.find(position, Layout.HEADER_BYTES);
    try {
      file.checkHeader(position, ahead.buffer(), at, stopPosition, nextOffset);
      return true;
    } catch (PartlogException e) {
      return false;
    }
  }

  /**
   * No valid batch is at the planned position: the plan relied on a wrong index, or the file has changed. Only a walk from the segment's
   * start can tell.
   */
  private void relocate() throws IOException {
    BatchWalk walk = new BatchWalk(file);
    while (walk.next() && walk.last() < extent.startOffset()) {
      // On to the batch that holds the first offset.
    }
    position = walk.position();
    nextOffset = walk.base();
  }

  /** Reads and checks the batch at {@link #position}. */
  private void read() throws IOException {
    hinted = false;
    int at = ahead.find(position, Layout.HEADER_BYTES);
    base = file.checkHeader(position, ahead.buffer(), at, stopPosition, nextOffset);
    int bytes = BatchHeader.totalBytes(ahead.buffer(), at);
    int lastDelta = BatchHeader.lastOffsetDelta(ahead.buffer(), at);
    try {
      decoder.requireReadable(bytes);
    } catch (BadBatch e) {
      throw file.corrupt(position, e);
    }
    headerOnly = offsetsOnly && !extent.filtered() && BatchHeader.count(ahead.buffer(), at) == lastDelta + 1;
    boolean passing = headerOnly && ReadAhead.isLarge(bytes);
    at = passing ? at : ahead.find(position, bytes);
    byte[] buffer = ahead.buffer();
    BatchHeader.addTo(headerCrc, buffer, at, segment.dense());
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
    position += bytes;
    nextOffset = base + lastDelta + 1;
  }

  private void requireEnd() {
    if (segment.dense() && nextOffset < extent.endOffset()) {
      throw file.corrupt("its batches up to byte " + position + " end at offset " + nextOffset + ", before offset " + extent.endOffset());
    }
    if (extent.to() >= 0 && position != extent.to()) {
      throw file.corrupt("offset " + nextOffset + " is at byte " + position + ", and should be at byte " + extent.to());
    }
    if (extent.isWhole()) {
      file.requireHeaderCrc(headerCrc);
    }
  }

  Extent extent() {
    return extent;
  }

  /** The offset that the deltas of the current batch count from. */
  long base() {
    return base;
  }

  /** The offset after those of the current batch. */
  long nextOffset() {
    return nextOffset;
  }

  /** Whether the records of the current batch have offset deltas 0, 1, 2, … and were not decoded. */
  boolean isHeaderOnly() {
    return headerOnly;
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
