package io.sparklog.sink;

import io.sparklog.spark.TaskMetric;
import io.sparklog.write.TaskWriter;
import java.util.Arrays;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** The metrics that Spark's UI shows about a write. */
final class WriteMetrics {
  private static final TaskMetric BYTES = new BytesWritten();
  private static final TaskMetric RECORDS = new RecordsWritten();
  private static final TaskMetric PEAK = new PeakBufferBytes();

  private WriteMetrics() {}

  /** Spark takes the output bytes of a stage from the metric of this name. */
  public static final class BytesWritten extends TaskMetric {
    public BytesWritten() {
      super("bytesWritten", "bytes of record batches");
    }
  }

  /** Spark takes the output records of a stage from the metric of this name. */
  public static final class RecordsWritten extends TaskMetric {
    public RecordsWritten() {
      super("recordsWritten", "records written");
    }
  }

  /** The most memory that batches of a task took; see {@code write.buffer.bytes}. */
  public static final class PeakBufferBytes extends TaskMetric {
    public PeakBufferBytes() {
      super("peakBufferBytes", "peak buffer bytes of a task");
    }

    @Override
    public String aggregateTaskMetrics(long[] taskMetrics) {
      return Long.toString(Arrays.stream(taskMetrics).max().orElse(0));
    }
  }

  static CustomMetric[] declared() {
    return new CustomMetric[] {BYTES, RECORDS, PEAK};
  }

  static CustomTaskMetric[] of(TaskWriter writer) {
    return new CustomTaskMetric[] {BYTES.of(writer.writtenBytes()), RECORDS.of(writer.records()), PEAK.of(writer.heldBytesPeak())};
  }
}
