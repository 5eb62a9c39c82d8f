package io.sparklog.format;

import java.nio.ByteBuffer;

/** Looks up offsets in the bytes of a {@code .timeindex} file. Its answers are hints, like those of {@link OffsetIndex}. */
public final class TimeIndex {
  /** No entry fits. */
  public static final int NONE = -1;

  public static final int ENTRY_BYTES = Long.BYTES + Integer.BYTES;

  private final ByteBuffer file;
  private final long baseOffset;
  private final int entries;

  /** Takes a whole file; bytes after the last whole entry are ignored. */
  public TimeIndex(byte[] file, long baseOffset) {
    this.file = ByteBuffer.wrap(file);
    this.baseOffset = baseOffset;
    this.entries = file.length / ENTRY_BYTES;
  }

  public int entries() {
    return entries;
  }

  public long timestamp(int entry) {
    return file.getLong(entry * ENTRY_BYTES);
  }

  /** Each record with a later time than {@link #timestamp} comes after this offset. */
  public long offset(int entry) {
    return baseOffset + file.getInt(entry * ENTRY_BYTES + Long.BYTES);
  }

  /**
   * The last entry whose timestamp is at most {@code timestamp}. The first record of that time or later is in the batch of its offset, or
   * after it.
   */
  public int floor(long timestamp) {
    int low = 0;
    int high = entries;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (timestamp(middle) <= timestamp) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    int entry = low - 1;
    return entry >= 0 && offset(entry) >= baseOffset && timestamp(entry) >= 0 ? entry : NONE;
  }
}
