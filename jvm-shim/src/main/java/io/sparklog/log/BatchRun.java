package io.sparklog.log;

import io.sparklog.format.BatchHeader;
import java.util.zip.CRC32C;

/** Batches of one partition that are being laid one after another, and what will have to be said of them. */
final class BatchRun {
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

  /** @param file null if the run travels */
  BatchRun(int partition, String file, long position) {
    this.partition = partition;
    this.file = file;
    this.position = position;
  }

  /**
   * Takes the batch at {@code at} into the run, and makes its base offset relative to the run.
   *
   * @param minTimestampBound none of its records is earlier
   * @param allRouted whether the partitioner put each of its records here
   * @param inOrder whether none of its records has a lower time than one before it
   */
  void add(byte[] buffer, int at, long minTimestampBound, boolean allRouted, boolean inOrder) {
    BatchHeader.setBaseOffset(buffer, at, records);
    BatchHeader.addTo(headerCrc, buffer, at, true);
    bytes += BatchHeader.totalBytes(buffer, at);
    records += BatchHeader.count(buffer, at);
    batches++;
    ordered &= inOrder && BatchHeader.baseTimestamp(buffer, at) >= maxTimestamp;
    minTimestamp = Math.min(minTimestamp, minTimestampBound);
    maxTimestamp = Math.max(maxTimestamp, BatchHeader.maxTimestamp(buffer, at));
    routed &= allRouted;
  }

  long bytes() {
    return bytes;
  }

  /** Whether the batch at {@code at} fits into the same segment, of at most {@code bytesMax} bytes. FORMAT.md section 10. */
  boolean fits(byte[] buffer, int at, int bytesMax) {
    return bytes + BatchHeader.totalBytes(buffer, at) <= bytesMax && records + BatchHeader.count(buffer, at) <= Integer.MAX_VALUE;
  }

  /** @param travelling its bytes, or null if they lie in its file */
  Piece piece(byte[] travelling) {
    // Where a run was split, the bound of the whole may lie above what its parts hold.
    return new Piece(partition, file, position, travelling, bytes, records, batches, Math.min(minTimestamp, maxTimestamp), maxTimestamp,
        routed, ordered, (int) headerCrc.getValue());
  }
}
