package io.sparklog.format;

import java.nio.ByteBuffer;
import java.util.function.IntToLongFunction;

/**
 * Looks up positions in the bytes of an offset index: an {@code .index} file, or the index behind a segment. It has no checksum, so an
 * answer is a hint: use it only if a valid batch is there. Garbage gives a wrong answer or {@link #NONE}, never an exception.
 */
public final class OffsetIndex {
  /** No entry fits. */
  public static final int NONE = -1;

  /** How far apart the entries of an index behind a segment are at least. FORMAT.md section 4. */
  public static final int INTERVAL_BYTES = 1 << 16;

  public static final int ENTRY_BYTES = Integer.BYTES + Integer.BYTES;

  private final ByteBuffer file;
  private final long baseOffset;
  private final int entries;

  /** Takes a whole file; bytes after the last whole entry are ignored. */
  public OffsetIndex(byte[] file, long baseOffset) {
    this.file = ByteBuffer.wrap(file);
    this.baseOffset = baseOffset;
    this.entries = file.length / ENTRY_BYTES;
  }

  public int entries() {
    return entries;
  }

  /** The last offset of the batch that {@code entry} points at; Kafka before 4.1 may have put a later one. */
  public long offset(int entry) {
    return baseOffset + file.getInt(entry * ENTRY_BYTES);
  }

  /** Where the batch begins in the segment. */
  public int position(int entry) {
    return file.getInt(entry * ENTRY_BYTES + Integer.BYTES);
  }

  /** The last entry whose offset is at most {@code offset}; a reader of that offset can start at its position. */
  public int floorByOffset(long offset) {
    return floor(this::offset, offset);
  }

  /** The last entry whose position is at most {@code position}. */
  public int floorByPosition(long position) {
    return floor(this::position, position);
  }

  private int floor(IntToLongFunction field, long most) {
    int low = 0;
    int high = entries;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (field.applyAsLong(middle) <= most) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    int entry = low - 1;
    return entry >= 0 && offset(entry) >= baseOffset && position(entry) >= 0 ? entry : NONE;
  }
}
