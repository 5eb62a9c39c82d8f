package io.sparklog.source;

import io.sparklog.log.ReadableTopics;
import io.sparklog.read.Split;
import io.sparklog.read.SplitReader;
import io.sparklog.spark.SparkErrors;
import io.sparklog.storage.ReadStatistics;
import java.io.IOException;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads the splits of a task one after another: one ColumnarBatch for each record batch. */
final class PartlogReader implements PartitionReader<ColumnarBatch> {
  private final ReadableTopics root;
  private final StructType schema;
  private final boolean isRemote;
  private final boolean failOnDataLoss;
  private final long rowsMax;
  private final Iterator<Split> left;
  private SplitReader reader;
  private RecordVectors vectors;

  /** The batches of the splits before the current one. */
  private long batchesBefore;

  private long bytesBefore;
  private long bytesReported;

  /**
   * @param schema the columns to return
   * @param failOnDataLoss whether it is an error if offsets have expired since the plan was made
   * @param rowsMax the most records to return of each split
   */
  PartlogReader(ReadableTopics root, List<Split> splits, StructType schema, boolean failOnDataLoss, long rowsMax) {
    this.root = root;
    this.isRemote = root.isRemote();
    this.schema = schema;
    this.failOnDataLoss = failOnDataLoss;
    this.rowsMax = rowsMax;
    this.left = splits.iterator();
  }

  @Override
  public boolean next() {
    try {
      return SparkErrors.run(this::nextOfAll);
    } finally {
      if (!isRemote) {
        ReadStatistics.add(bytes() - bytesReported);
        bytesReported = bytes();
      }
    }
  }

  private boolean nextOfAll() throws IOException {
    while (reader == null || !reader.next()) {
      if (!left.hasNext()) {
        return false;
      }
      open(left.next());
    }
    return true;
  }

  private void open(Split split) throws IOException {
    if (reader != null) {
      batchesBefore += reader.batchesRead();
      bytesBefore += reader.bytesRead();
      SplitReader done = reader;
      reader = null;
      done.close();
    }
    reader = new SplitReader(root, split, failOnDataLoss, RecordVectors.needOffsetsOnly(schema), rowsMax);
    vectors = new RecordVectors(schema, split);
  }

  @Override
  public ColumnarBatch get() {
    return vectors.show(reader.records());
  }

  private long batches() {
    return batchesBefore + (reader == null ? 0 : reader.batchesRead());
  }

  private long bytes() {
    return bytesBefore + (reader == null ? 0 : reader.bytesRead());
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    return new CustomTaskMetric[] {ReadMetrics.BATCHES.of(batches()), ReadMetrics.BYTES.of(bytes())};
  }

  @Override
  public void close() {
    SparkErrors.act(() -> {
      if (reader != null) {
        reader.close();
      }
    });
  }
}
