package io.sparklog.source;

import io.sparklog.read.SplitReader;
import io.sparklog.spark.SparkErrors;
import io.sparklog.storage.ReadStatistics;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads a split for a task: one ColumnarBatch for each record batch. */
final class PartlogReader implements PartitionReader<ColumnarBatch> {
  private final SplitReader reader;
  private final RecordVectors vectors;
  private long bytesReported;

  PartlogReader(SplitReader reader, RecordVectors vectors) {
    this.reader = reader;
    this.vectors = vectors;
  }

  @Override
  public boolean next() {
    try {
      return SparkErrors.run(reader::next);
    } finally {
      ReadStatistics.add(reader.bytesRead() - bytesReported);
      bytesReported = reader.bytesRead();
    }
  }

  @Override
  public ColumnarBatch get() {
    return vectors.show(reader.records());
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    return new CustomTaskMetric[] {new ReadMetrics.Value(ReadMetrics.BATCHES, reader.batchesRead()),
        new ReadMetrics.Value(ReadMetrics.BYTES, reader.bytesRead())};
  }

  @Override
  public void close() {
    SparkErrors.act(reader::close);
  }
}
