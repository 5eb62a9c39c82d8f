package io.sparklog.source;

import io.sparklog.spark.TaskMetric;
import org.apache.spark.sql.connector.metric.CustomMetric;

/** The metrics that Spark's UI shows of a read. */
final class ReadMetrics {
  static final TaskMetric BATCHES = new BatchesRead();
  static final TaskMetric BYTES = new BytesRead();
  static final TaskMetric SKIPPED = new BytesSkipped();

  private ReadMetrics() {}

  static CustomMetric[] declared() {
    return new CustomMetric[] {BATCHES, BYTES, SKIPPED};
  }

  /** Counted in tasks. */
  public static final class BatchesRead extends TaskMetric {
    public BatchesRead() {
      super("batchesRead", "record batches read");
    }
  }

  /** Counted in tasks. */
  public static final class BytesRead extends TaskMetric {
    public BytesRead() {
      super("bytesRead", "bytes read");
    }
  }

  /** Known when the read is planned. */
  public static final class BytesSkipped extends TaskMetric {
    public BytesSkipped() {
      super("bytesSkipped", "bytes of the topics that need not be read");
    }
  }
}
