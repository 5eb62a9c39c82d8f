package io.sparklog.merge;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Layout;
import io.sparklog.log.Segment;
import io.sparklog.log.SegmentFile;
import io.sparklog.log.SegmentGone;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import java.io.Closeable;
import java.io.IOException;
import java.util.zip.CRC32C;

/**
 * Reads whole dense segments, one after another and batch by batch, through one buffer. Checks all that a reader of the segment checks, and
 * its number of batches. FORMAT.md section 9.
 */
final class SegmentScan implements Closeable {
  private static final int READ_BYTES = 1 << 20;

  private final LogStore store;
  private final String topic;
  private final BatchDecoder decoder;
  private final boolean decode;
  private byte[] buffer = new byte[READ_BYTES];
  private int end;

  private SegmentFile file;
  private Segment segment;
  private CRC32C headerCrc;
  private int batches;
  private int at;
  private int bytes;
  private long position;
  private long base;
  private long nextOffset;

  /** @param decode whether the records are wanted too: of each batch, {@code decoder} then holds them */
  SegmentScan(LogStore store, String topic, BatchDecoder decoder, boolean decode) {
    this.store = store;
    this.topic = topic;
    this.decoder = decoder;
    this.decode = decode;
  }

  /** Goes on with another segment. @throws SegmentGone if its data file is gone */
  void open(Segment next) throws IOException {
    close();
    file = SegmentFile.open(store, topic, next);
    segment = next;
    headerCrc = new CRC32C();
    batches = 0;
    at = 0;
    bytes = 0;
    end = 0;
    position = next.position();
    nextOffset = next.base();
  }

  /**
   * Goes to the next batch, which is then in {@link #buffer} as a whole, and may be changed there; false at the end of the segment.
   *
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT
   * @throws SegmentGone if the data file is gone by now
   */
  boolean next() throws IOException {
    at += bytes;
    position += bytes;
    bytes = 0;
    if (position == segment.endPosition()) {
      requireEnd();
      return false;
    }
    require(Layout.HEADER_BYTES);
    base = file.checkHeader(position, buffer, at, segment.endPosition(), nextOffset);
    int total = BatchHeader.totalBytes(buffer, at);
    try {
      decoder.requireReadable(total);
      require(total);
      if (decode) {
        decoder.decode(buffer, at, total);
      } else {
        decoder.check(buffer, at, total);
      }
    } catch (BadBatch e) {
      throw file.corrupt(position, e);
    }
    BatchHeader.addTo(headerCrc, buffer, at, true);
    bytes = total;
    batches++;
    nextOffset = base + BatchHeader.count(buffer, at);
    return true;
  }

  /** Has {@code wanted} bytes in the buffer from {@link #at} on, or as many as the segment has left. */
  private void require(int wanted) throws IOException {
    int there = end - at;
    if (there >= wanted) {
      return;
    }
    byte[] to = wanted > buffer.length ? new byte[wanted] : buffer;
    System.arraycopy(buffer, at, to, 0, there);
    buffer = to;
    at = 0;
    end = there + (int) Math.min(buffer.length - there, segment.endPosition() - position - there);
    file.read(position + there, buffer, there, end - there);
  }

  private void requireEnd() {
    if (nextOffset != segment.end()) {
      throw file.corrupt("its batches end at offset " + nextOffset);
    }
    if (batches != segment.batches()) {
      throw file.corrupt("it has " + batches + " batches, and its version file says " + segment.batches());
    }
    file.requireHeaderCrc(headerCrc);
  }

  byte[] buffer() {
    return buffer;
  }

  /** Where the batch begins in the buffer. */
  int at() {
    return at;
  }

  int bytes() {
    return bytes;
  }

  /** The offset of its first record. */
  long base() {
    return base;
  }

  @Override
  public void close() throws IOException {
    if (file != null) {
      file.close();
      file = null;
    }
  }
}
