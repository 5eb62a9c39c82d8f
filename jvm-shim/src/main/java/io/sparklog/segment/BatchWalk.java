package io.sparklog.segment;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Layout;
import io.sparklog.spec.Invariant;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.zip.CRC32C;

/**
 * Steps from batch header to batch header through a segment, reading no more than it must. Checks what headers can show, the base offsets
 * included; it does not look at the records.
 */
public final class BatchWalk {
  private static final int BUFFER_BYTES = 64 << 10;
  private static final int COPY_BYTES = 1 << 20;

  /** Takes bytes, the next ones at each call. */
  @FunctionalInterface
  public interface Sink {
    void write(byte[] from, int at, int length) throws IOException;
  }

  private final SegmentFile file;
  private final Segment segment;
  private final CRC32C headerCrc = new CRC32C();
  private final Sink sink;
  private final byte[] buffer;
  private long bufferPosition;
  private int bufferBytes;
  private long position;
  private long next;
  private long step;
  private long nextOffset;
  private long base;
  private int at;

  /** Walks the whole segment. */
  public BatchWalk(SegmentFile file) {
    this(file, file.segment().position(), file.segment().base());
  }

  /**
   * Walks the whole segment and hands on each byte of it, once and front to back. Until the next call of {@link #next}, the header of the
   * batch is not handed on: the caller may change it in {@link #buffer}.
   *
   * @param sink has all once {@link #next} has returned false
   */
  public BatchWalk(SegmentFile file, Sink sink) {
    this(file, file.segment().position(), file.segment().base(), sink);
  }

  /** Walks from the batch at {@code position} of the file to the end of the segment; the first offset of that batch is {@code offset}. */
  public BatchWalk(SegmentFile file, long position, long offset) {
    this(file, position, offset, null);
  }

  private BatchWalk(SegmentFile file, long position, long offset, Sink sink) {
    this.file = file;
    this.segment = file.segment();
    this.sink = sink;
    this.buffer = new byte[sink == null ? BUFFER_BYTES : COPY_BYTES];
    this.bufferPosition = sink == null ? 0 : position;
    this.position = position;
    this.next = position;
    this.nextOffset = offset;
    this.step = meanBytes(segment);
  }

  /** Whether a walk through a segment reads headers one by one, and no bytes between them; otherwise it reads all of the segment. */
  public static boolean skipsRecords(Segment segment) {
    return meanBytes(segment) > BUFFER_BYTES;
  }

  /** The size of a batch of a segment, on average. */
  public static long meanBytes(Segment segment) {
    return segment.bytes() / Math.max(1, segment.batches());
  }

  /**
   * Goes to the next batch; false at the segment's end.
   *
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT
   * @throws SegmentGone if the file is gone
   */
  public boolean next() throws IOException {
    if (next >= segment.endPosition()) {
      if (nextOffset != segment.end()) {
        throw file.corrupt("its batches end at offset " + nextOffset);
      }
      if (sink != null) {
        handOn(segment.endPosition(), segment.endPosition());
        sink.write(buffer, 0, bufferBytes);
        bufferBytes = 0;
      }
      return false;
    }
    if (nextOffset == segment.end()) {
      throw file.corrupt("it has " + (segment.endPosition() - next) + " bytes after the batch with its last offset");
    }
    step = next > position ? next - position : step;
    position = next;
    fill();
    file.checkHeader(position, buffer, at, segment.endPosition(), nextOffset);
    base = nextOffset;
    next = position + BatchHeader.totalBytes(buffer, at);
    nextOffset = base + BatchHeader.lastOffsetDelta(buffer, at) + 1;
    Invariant.require(next > position && next <= segment.endPosition() && nextOffset > base && nextOffset <= segment.end(),
        () -> "a checked header at byte " + position + " leads to byte " + next + " and offset " + nextOffset + " of " + segment);
    BatchHeader.addTo(headerCrc, buffer, at);
    return true;
  }

  private void fill() throws IOException {
    long within = position - bufferPosition;
    if (within >= 0 && within + Layout.HEADER_BYTES <= bufferBytes) {
      at = (int) within;
      return;
    }
    // Batches are large: no buffer would hold the next header too, so read no more than this one.
    int want = step > BUFFER_BYTES ? Layout.HEADER_BYTES : BUFFER_BYTES;
    int bytes = (int) Math.min(want, segment.endPosition() - position);
    if (bytes < Layout.HEADER_BYTES) {
      throw file.corrupt(position, new BadBatch("only " + bytes + " bytes are left of its segment"));
    }
    if (sink != null) {
      handOn(position, position + Layout.HEADER_BYTES);
      at = (int) (position - bufferPosition);
      return;
    }
    file.read(position, buffer, 0, bytes);
    bufferPosition = position;
    bufferBytes = bytes;
    at = 0;
  }

  /** Reads on until the buffer has the bytes up to {@code to}, and hands on the bytes before {@code from} if it needs the room. */
  private void handOn(long from, long to) throws IOException {
    while (bufferPosition + bufferBytes < to) {
      int kept = (int) Math.max(0, bufferPosition + bufferBytes - from);
      int handed = bufferBytes - kept;
      sink.write(buffer, 0, handed);
      System.arraycopy(buffer, handed, buffer, 0, kept);
      bufferPosition += handed;
      int bytes = (int) Math.min(buffer.length - kept, segment.endPosition() - bufferPosition - kept);
      file.read(bufferPosition + kept, buffer, kept, bytes);
      bufferBytes = kept + bytes;
    }
  }

  /**
   * Call it after a walk through the whole segment: only all headers together prove that no header was changed.
   *
   * @throws PartlogException SEGMENT_CORRUPT
   */
  public void requireHeaderCrc() {
    file.requireHeaderCrc(headerCrc);
  }

  /** Where the header of the batch begins in {@link #buffer}. */
  public int at() {
    return at;
  }

  public byte[] buffer() {
    return buffer;
  }

  /** The position of the batch in the data file. */
  public long position() {
    return position;
  }

  /** The offset of its first record. */
  public long base() {
    return base;
  }

  /** The offset of its last record. */
  public long last() {
    return nextOffset - 1;
  }

  public long bytes() {
    return next - position;
  }
}
