package io.sparklog.read;

import io.sparklog.log.ReadableTopics;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Extent;
import io.sparklog.segment.ExtentReader;
import io.sparklog.spec.PartlogException;
import java.io.Closeable;
import java.io.IOException;

/**
 * Reads the batches of a split one after another, each fully checked, and shows the records that belong to the split. FORMAT.md section 9.
 *
 * <p>The offsets of the plan are exact; its files and positions are from the time of the plan. It returns the committed records of these
 * offsets, or throws an exception.
 */
public final class SplitReader implements Closeable {
  private final PartitionCursor cursor;
  private final VisibleRecords records;
  /** The bytes of a record, on average; 0 if all records are needed. */
  private final long recordBytes;

  /** The bytes of a batch, on average. */
  private final long batchBytes;
  private long rowsLeft;

  /**
   * @param failOnDataLoss whether it is an error if offsets or the topic have gone since the plan was made; otherwise they are left out
   * @param offsetsOnly whether the caller needs no more of the records than their offsets
   * @param rowsMax the most records to return
   */
  public SplitReader(ReadableTopics topics, Split split, boolean failOnDataLoss, boolean offsetsOnly, long rowsMax) {
    ExtentReader.Need need = offsetsOnly ? ExtentReader.Need.OFFSETS : ExtentReader.Need.RECORDS;
    this.cursor = new PartitionCursor(topics, split, new LaterState.DataLoss(failOnDataLoss), need);
    this.records = new VisibleRecords(cursor.decoder(), split.filter());
    this.rowsLeft = rowsMax;
    long bytes = split.extents().stream().mapToLong(Extent::bytesToRead).sum();
    this.batchBytes = BatchWalk.meanBytes(split.extents().get(0).segment());
    this.recordBytes = rowsMax < split.offsets() ? bytes / split.offsets() + 1 : 0;
  }

  /**
   * Goes to the next batch with records to return; false at the end.
   *
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT, SEGMENT_MISSING, OFFSETS_EXPIRED, TOPIC_NOT_FOUND, TOPIC_REPLACED
   */
  public boolean next() throws IOException {
    while (rowsLeft > 0 && nextBatch()) {
      records.select(cursor.reader(), rowsLeft);
      if (records.rows() > 0) {
        rowsLeft -= records.rows();
        return true;
      }
    }
    return false;
  }

  private boolean nextBatch() throws IOException {
    cursor.want(bytesWanted());
    return cursor.next();
  }

  /** A reader that needs few records asks for few bytes, and for more and more of them if a filter leaves these records out. */
  private long bytesWanted() {
    return recordBytes == 0 ? Long.MAX_VALUE : Math.max(rowsLeft * recordBytes + batchBytes, bytesRead());
  }

  /** The records of the current batch to return; good until the next call of {@link #next}. */
  public VisibleRecords records() {
    return records;
  }

  /** Batches read so far. */
  public long batchesRead() {
    return cursor.batchesRead();
  }

  /** Bytes read so far. */
  public long bytesRead() {
    return cursor.bytesRead();
  }

  @Override
  public void close() throws IOException {
    cursor.close();
  }
}
