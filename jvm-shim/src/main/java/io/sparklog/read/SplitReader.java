package io.sparklog.read;

import io.sparklog.log.ReadableTopics;
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
  private long rowsLeft;

  /**
   * @param failOnDataLoss whether it is an error if offsets or the topic have gone since the plan was made; otherwise they are left out
   * @param offsetsOnly whether the caller needs no more of the records than their offsets
   * @param rowsMax the most records to return
   */
  public SplitReader(ReadableTopics topics, Split split, boolean failOnDataLoss, boolean offsetsOnly, long rowsMax) {
    ExtentReader.Need need = offsetsOnly ? ExtentReader.Need.OFFSETS : ExtentReader.Need.RECORDS;
    this.cursor = new PartitionCursor(topics, split, new DataLoss(failOnDataLoss), need);
    this.records = new VisibleRecords(cursor.decoder(), split.filter());
    this.rowsLeft = rowsMax;
  }

  /**
   * Goes to the next batch with records to return; false at the end.
   *
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT, SEGMENT_MISSING, OFFSETS_EXPIRED, TOPIC_NOT_FOUND, TOPIC_REPLACED
   */
  public boolean next() throws IOException {
    while (rowsLeft > 0 && cursor.next()) {
      records.select(cursor.reader(), rowsLeft);
      if (records.rows() > 0) {
        rowsLeft -= records.rows();
        return true;
      }
    }
    return false;
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
