package io.sparklog.log;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Layout;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FileReader;
import java.io.EOFException;
import java.io.IOException;

/**
 * Steps from batch header to batch header through part of a segment, reading no more than it must. Checks what a header alone can show, its
 * base offset included; the records are for whoever decodes them.
 */
public final class BatchWalk {
  /** Why a segment is corrupt whose headers do not give its headerCrc. */
  public static final String HEADERS_DIFFER = "the headers of its batches do not have the checksum that the version file gives";

  private static final int BUFFER_BYTES = 64 << 10;

  private final String topic;
  private final Segment segment;
  private final FileReader file;
  private final byte[] buffer = new byte[BUFFER_BYTES];
  private long bufferPosition;
  private int bufferBytes;
  private long position;
  private long next;
  private long step;
  private long nextOffset;
  private long base;
  private int at;

  /** Walks all of {@code segment}, whose data file is {@code file}. */
  public BatchWalk(String topic, Segment segment, FileReader file) {
    this(topic, segment, file, segment.position(), segment.base());
  }

  /** Walks from the batch at {@code position} of the file, whose first offset is {@code offset}. */
  public BatchWalk(String topic, Segment segment, FileReader file, long position, long offset) {
    this.topic = topic;
    this.segment = segment;
    this.file = file;
    this.position = position;
    this.next = position;
    this.nextOffset = offset;
  }

  /**
   * Goes to the next batch; false at the segment's end.
   *
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT
   */
  public boolean next() throws IOException {
    if (next >= segment.endPosition()) {
      if (nextOffset != segment.end() && segment.dense()) {
        throw corrupt(topic, segment, file, "its batches end at offset " + nextOffset);
      }
      return false;
    }
    step = next - position;
    position = next;
    fill();
    try {
      next = position + BatchHeader.check(buffer, at, segment.endPosition() - position);
    } catch (BadBatch e) {
      throw corrupt(topic, segment, file, position, e);
    }
    base = base(topic, segment, file, position, buffer, at, nextOffset);
    nextOffset = base + BatchHeader.lastOffsetDelta(buffer, at) + 1;
    if (nextOffset > segment.end()) {
      throw corrupt(topic, segment, file, position, new BadBatch("it ends at offset " + nextOffset + ", beyond its segment"));
    }
    return true;
  }

  private void fill() throws IOException {
    long within = position - bufferPosition;
    if (within >= 0 && within + Layout.HEADER_BYTES <= bufferBytes) {
      at = (int) within;
      return;
    }
    // Large batches: the next header lies beyond any buffer again, so read no more than this one.
    int want = step > BUFFER_BYTES ? Layout.HEADER_BYTES : BUFFER_BYTES;
    int bytes = (int) Math.min(want, segment.endPosition() - position);
    if (bytes < Layout.HEADER_BYTES) {
      throw corrupt(topic, segment, file, position, new BadBatch("only " + bytes + " bytes are left of its segment"));
    }
    try {
      file.read(position, buffer, 0, bytes);
    } catch (EOFException e) {
      throw corrupt(topic, segment, file, "the file is cut: " + e.getMessage());
    }
    bufferPosition = position;
    bufferBytes = bytes;
    at = 0;
  }

  /**
   * The offset of the first record of a batch, as the version file gives it; the header must agree. FORMAT.md section 4.
   *
   * @param expected what the offsets before it lead to
   * @throws PartlogException BATCH_CORRUPT
   */
  public static long base(String topic, Segment segment, FileReader file, long position, byte[] header, int at, long expected) {
    long stored = BatchHeader.baseOffset(header, at);
    if (segment.dense()
        && (BatchHeader.count(header, at) != BatchHeader.lastOffsetDelta(header, at) + 1 || BatchHeader.isControl(header, at))) {
      throw corrupt(topic, segment, file, position, new BadBatch("records are missing in it, and its segment has one at every offset"));
    }
    if (segment.dense()
        ? BatchHeader.isStamped(stored, expected - segment.base(), expected)
        : stored >= expected && stored < segment.end()) {
      return segment.dense() ? expected : stored;
    }
    throw corrupt(topic, segment, file, position,
        new BadBatch("its base offset is " + stored + ", where offset " + expected + " should be"));
  }

  /** The header of the batch is in {@link #buffer} at this place. */
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

  /** BATCH_CORRUPT for the batch at {@code position}. */
  public static PartlogException corrupt(String topic, Segment segment, FileReader file, long position, BadBatch why) {
    return PartlogException.caused(why, "BATCH_CORRUPT", "topic", topic, "partition", segment.partition(), "byte", position, "file",
        file.location(), "reason", why.getMessage());
  }

  /** SEGMENT_CORRUPT for a segment as a whole. */
  public static PartlogException corrupt(String topic, Segment segment, FileReader file, String why) {
    return PartlogException.of("SEGMENT_CORRUPT", "topic", topic, "partition", segment.partition(), "base", segment.base(), "end",
        segment.end(), "file", file.location(), "reason", why);
  }
}
