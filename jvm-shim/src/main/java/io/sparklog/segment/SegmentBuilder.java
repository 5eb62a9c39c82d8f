package io.sparklog.segment;

import io.sparklog.format.BatchHeader;
import io.sparklog.format.IndexBuilder;
import io.sparklog.format.OffsetIndex;
import io.sparklog.spec.Invariant;
import io.sparklog.storage.ReadStore;
import java.util.zip.CRC32C;

/** Adds up the fields of a segment while its batches are appended. FORMAT.md section 4. */
public final class SegmentBuilder {
  private final int partition;
  private final String file;
  private final long position;
  private final CRC32C headerCrc = new CRC32C();
  private long bytes;
  private long records;
  private int batches;
  private long minTimestamp = Long.MAX_VALUE;
  private long maxTimestamp = -1;
  private boolean routed = true;
  private boolean ordered = true;
  private final IndexBuilder index = new IndexBuilder(0, OffsetIndex.INTERVAL_BYTES);

  /**
   * @param file data file, relative to the topic's folder
   * @param position of the first batch in the file, in bytes
   */
  public SegmentBuilder(int partition, String file, long position) {
    this.partition = partition;
    this.file = file;
    this.position = position;
  }

  /** Whether the batch at {@code at} fits into the same segment, of at most {@code bytesMax} bytes. FORMAT.md section 10. */
  public boolean fits(byte[] buffer, int at, int bytesMax) {
    return bytes + BatchHeader.totalBytes(buffer, at) <= bytesMax && records + BatchHeader.count(buffer, at) <= Integer.MAX_VALUE;
  }

  /**
   * Appends the batch at {@code at}, and makes its base offset relative to the segment.
   *
   * @param batchMinTimestamp the least time of its records, ms since 1970
   * @param batchRouted whether the partitioner chose this partition for each of its records
   * @param batchOrdered whether no record of the batch has a lower time than a record before it
   */
  public void add(byte[] buffer, int at, long batchMinTimestamp, boolean batchRouted, boolean batchOrdered) {
    BatchHeader.setBaseOffset(buffer, at, records);
    BatchHeader.addTo(headerCrc, buffer, at);
    index.batch(bytes, records + BatchHeader.count(buffer, at) - 1, BatchHeader.maxTimestamp(buffer, at));
    bytes += BatchHeader.totalBytes(buffer, at);
    records += BatchHeader.count(buffer, at);
    batches++;
    ordered &= batchOrdered && BatchHeader.baseTimestamp(buffer, at) >= maxTimestamp;
    minTimestamp = Math.min(minTimestamp, batchMinTimestamp);
    maxTimestamp = Math.max(maxTimestamp, BatchHeader.maxTimestamp(buffer, at));
    routed &= batchRouted;
  }

  /** The position after the last batch so far. */
  public long endPosition() {
    return position + bytes;
  }

  /** The segment, which must have a batch. Its offsets count from 0: {@link Segment#at} places it. */
  public Segment segment() {
    Invariant.require(batches > 0 && bytes <= Integer.MAX_VALUE && records <= Integer.MAX_VALUE,
        () -> this + " has " + batches + " batches, " + bytes + " bytes and " + records + " records");
    Invariant.require(minTimestamp <= maxTimestamp, () -> this + " has times from " + minTimestamp + " to " + maxTimestamp);
    return new Segment(partition, file, position, bytes, 0, records, records, batches, minTimestamp, maxTimestamp, Segment.Offsets.DENSE,
        routed, ordered, (int) headerCrc.getValue());
  }

  /**
   * From so many bytes on, a segment gets a data file of its own. Where the Kafka view links it, its syncs cost no more than a copy of 256
   * KiB. Elsewhere a file saves nothing but an index.
   *
   * @param hasView whether the topic has a Kafka view, on a disk
   */
  public static int ownFileBytes(ReadStore store, boolean hasView) {
    return hasView && !store.isRemote() ? 256 << 10 : 1 << 20;
  }

  /** The index that follows the batches in a data file of their own; empty where the Kafka view has it. FORMAT.md section 4. */
  public byte[] index(ReadStore store) {
    return store.isRemote() ? index.offsetIndex() : new byte[0];
  }

  @Override
  public String toString() {
    return "a segment of partition " + partition + (file == null ? "" : " in " + file + " from byte " + position + " on");
  }
}
