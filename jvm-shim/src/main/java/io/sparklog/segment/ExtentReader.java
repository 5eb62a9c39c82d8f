package io.sparklog.segment;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Layout;
import io.sparklog.spec.Invariant;
import io.sparklog.spec.PartlogException;
import java.io.Closeable;
import java.io.IOException;
import java.util.zip.CRC32C;

/**
 * Reads the batches of one extent, one after another, and makes all checks of FORMAT.md section 9. It is the only reader of batches, for
 * queries and for merging.
 */
public final class ExtentReader implements Closeable {
  /** A caller's need of each batch. Each is checked up to the CRC-32C in any case, and records where they are decoded. */
  public enum Need {
    /** The offsets of its records. A batch with a record at each offset is not decoded, and may not be in memory as a whole. */
    OFFSETS,
    /** Its place and its header. It is not decoded, and may not be in memory as a whole. */
    PLACE,
    /** Its bytes as they are on disk, which may be changed in the buffer. It is not decoded. */
    BYTES,
    /** Its records, which the decoder then holds, and its bytes. */
    RECORDS
  }

  private final SegmentFile file;
  private final Segment segment;
  private final Extent extent;
  private final Need need;
  private final ReadAhead ahead;
  private final BatchDecoder decoder;
  private final long stopPosition;
  private final CRC32C headerCrc = new CRC32C();

  /** Whether {@link #position} is where the plan saw a batch, which is not proved yet. */
  private boolean hinted;

  private long position;
  private long nextOffset;
  private long base;
  private int at;
  private int bytes;
  private int batches;
  private boolean decoded;

  private ExtentReader(SegmentFile file, Extent extent, Need need, ReadAhead ahead, BatchDecoder decoder) {
    this.file = file;
    this.segment = extent.segment();
    this.extent = extent;
    this.need = need;
    this.ahead = ahead;
    this.decoder = decoder;
    this.stopPosition = extent.to() >= 0 ? extent.to() : segment.endPosition();
    this.hinted = extent.from() != segment.position();
    this.position = extent.from();
    this.nextOffset = extent.fromOffset();
  }

  /**
   * Begins to read an extent.
   *
   * @param file of the extent's segment; closing the reader closes it, and so does an exception here
   * @param ahead reads the file, and nothing else until this is closed
   * @throws SegmentGone if the file is gone
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT
   */
  public static ExtentReader open(SegmentFile file, Extent extent, Need need, ReadAhead ahead, BatchDecoder decoder) throws IOException {
    try {
      ExtentReader reader = new ExtentReader(file, extent, need, ahead, decoder);
      // Merging has no use for the batches before a cut. To ask for the length of each file takes 5 % of the time of a merge of tiny ones.
      long fileBytes = need == Need.BYTES || need == Need.PLACE ? Long.MAX_VALUE : file.fileBytes();
      ahead.begin(file, fileBytes, reader.stopPosition, extent.expectedEnd());
      file.expect(extent.from(), extent.expectedEnd());
      return reader;
    } catch (IOException | RuntimeException e) {
      file.close();
      throw e;
    }
  }

  /**
   * Reads and checks the next batch; false after the last one.
   *
   * @throws SegmentGone if the file is gone
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT
   */
  public boolean next() throws IOException {
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
    at = ahead.find(position, Layout.HEADER_BYTES);
    file.checkHeader(position, ahead.buffer(), at, stopPosition, nextOffset);
    base = nextOffset;
    bytes = BatchHeader.totalBytes(ahead.buffer(), at);
    int lastDelta = BatchHeader.lastOffsetDelta(ahead.buffer(), at);
    try {
      decoder.requireReadable(bytes);
    } catch (BadBatch e) {
      throw file.corrupt(position, e);
    }
    decoded = switch (need) {
      case OFFSETS -> extent.filtered() || BatchHeader.count(ahead.buffer(), at) != lastDelta + 1;
      case PLACE, BYTES -> false;
      case RECORDS -> true;
    };
    boolean passing = need != Need.BYTES && !decoded && ReadAhead.isLarge(bytes);
    at = passing ? at : ahead.find(position, bytes);
    byte[] buffer = ahead.buffer();
    BatchHeader.addTo(headerCrc, buffer, at);
    try {
      if (passing) {
        decoder.check(buffer, at, bytes, crc -> ahead.pass(position + Layout.HEADER_BYTES, bytes - Layout.HEADER_BYTES, crc));
      } else if (decoded) {
        decoder.decode(buffer, at, bytes);
      } else {
        decoder.check(buffer, at, bytes);
      }
    } catch (BadBatch e) {
      throw file.corrupt(position, e);
    }
    batches++;
    position += bytes;
    nextOffset = base + lastDelta + 1;
    Invariant.require(position <= stopPosition && nextOffset > base && nextOffset <= segment.end(),
        () -> "a checked batch leads to byte " + position + " and offset " + nextOffset + " of " + extent);
  }

  private void requireEnd() {
    if (nextOffset < extent.endOffset()) {
      throw file.corrupt("its batches up to byte " + position + " end at offset " + nextOffset + ", before offset " + extent.endOffset());
    }
    if (extent.to() >= 0 && position != extent.to()) {
      throw file.corrupt("offset " + nextOffset + " is at byte " + position + ", and should be at byte " + extent.to());
    }
    if (extent.isWhole()) {
      file.requireWhole(headerCrc, batches);
    }
  }

  public Extent extent() {
    return extent;
  }

  /** The position of the current batch in the data file. */
  public long position() {
    return position - bytes;
  }

  /** The offset that the deltas of the current batch count from. */
  public long base() {
    return base;
  }

  /** The offset after the offsets of the current batch. */
  public long nextOffset() {
    return nextOffset;
  }

  /** Holds the current batch as a whole, unless only its offsets or its place are needed: then its header at least. */
  public byte[] buffer() {
    return ahead.buffer();
  }

  /** Where the current batch begins in the buffer. */
  public int at() {
    return at;
  }

  /** How many bytes the current batch has. */
  public int bytes() {
    return bytes;
  }

  /** Whether the records of the current batch were decoded. If they were not, and offsets are needed, their deltas are 0, 1, 2, … */
  public boolean isDecoded() {
    return decoded;
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
