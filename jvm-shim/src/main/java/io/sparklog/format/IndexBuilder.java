package io.sparklog.format;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Builds Kafka's {@code .index} and {@code .timeindex} of a segment, and the index behind a segment, from its batches, given in order.
 * FORMAT.md sections 4 and 8.
 */
public final class IndexBuilder {
  /** An entry of a {@code .timeindex}: a time, then an offset. */
  public static final int TIME_ENTRY_BYTES = Long.BYTES + Integer.BYTES;

  private final long baseOffset;
  private final int intervalBytes;
  private final Entries offsets = new Entries();
  private final Entries times = new Entries();
  private long indexedPosition;
  private long maxTimestamp = -1;
  private long maxTimestampOffset;
  private long indexedTimestamp = -1;

  public IndexBuilder(long baseOffset, int intervalBytes) {
    this.baseOffset = baseOffset;
    this.intervalBytes = intervalBytes;
    this.maxTimestampOffset = baseOffset;
  }

  /** Adds a batch: where it begins in the segment, its last offset, and its max timestamp (−1 if no record has a time). */
  public void batch(long position, long lastOffset, long maxTimestamp) {
    int relative = Math.toIntExact(lastOffset - baseOffset);
    if (maxTimestamp > this.maxTimestamp) {
      // Greater, not equal: Kafka needs the earliest batch that has the timestamp.
      this.maxTimestamp = maxTimestamp;
      maxTimestampOffset = lastOffset;
    }
    if (position - indexedPosition > intervalBytes) {
      offsets.put(OffsetIndex.ENTRY_BYTES).putInt(relative).putInt(Math.toIntExact(position));
      indexedPosition = position;
      offerTime();
    }
  }

  /** Content of the {@code .index} file. */
  public byte[] offsetIndex() {
    return offsets.bytes();
  }

  /** Content of the {@code .timeindex} file, with the entry that Kafka adds when it closes a segment. */
  public byte[] timeIndex() {
    offerTime();
    return times.bytes();
  }

  private void offerTime() {
    if (maxTimestamp > indexedTimestamp) {
      times.put(TIME_ENTRY_BYTES).putLong(maxTimestamp).putInt((int) (maxTimestampOffset - baseOffset));
      indexedTimestamp = maxTimestamp;
    }
  }

  private static final class Entries {
    private ByteBuffer buffer = ByteBuffer.allocate(0);

    ByteBuffer put(int entryBytes) {
      if (buffer.remaining() < entryBytes) {
        int position = buffer.position();
        buffer = ByteBuffer.wrap(Arrays.copyOf(buffer.array(), Layout.grown(buffer.capacity(), Math.max(position + entryBytes, 1024))));
        buffer.position(position);
      }
      return buffer;
    }

    byte[] bytes() {
      return Arrays.copyOf(buffer.array(), buffer.position());
    }
  }
}
