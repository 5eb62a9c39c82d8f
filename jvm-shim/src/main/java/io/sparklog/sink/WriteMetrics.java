package io.sparklog.sink;

import io.sparklog.write.TaskWriter;
import java.util.Arrays;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** The metrics that Spark's UI shows about a write. */
final class WriteMetrics {
  private static final String BYTES_WRITTEN = "bytesWritten";
  private static final String RECORDS_WRITTEN = "recordsWritten";
  private static final String PEAK_BUFFER_BYTES = "peakBufferBytes";

  private WriteMetrics() {}

  /** Spark takes the output bytes of a stage from the metric of this name. */
  public static final class BytesWritten extends CustomSumMetric {
    @Override
    public String name() {
      return BYTES_WRITTEN;
    }

    @Override
    public String description() {
      return "bytes of record batches";
    }
  }

  /** Spark takes the output records of a stage from the metric of this name. */
  public static final class RecordsWritten extends CustomSumMetric {
    @Override
    public String name() {
      return RECORDS_WRITTEN;
    }

    @Override
    public String description() {
      return "records written";
    }
  }

  /** The most memory that batches of a task took; see {@code write.buffer.bytes}. */
  public static final class PeakBufferBytes implements CustomMetric {
    @Override
    public String name() {
      return PEAK_BUFFER_BYTES;
    }

    @Override
    public String description() {
      return "peak buffer bytes of a task";
    }

    @Override
    public String aggregateTaskMetrics(long[] taskMetrics) {
      return Long.toString(Arrays.stream(taskMetrics).max().orElse(0));
    }
  }

  static CustomMetric[] declared() {
    return new CustomMetric[] {new BytesWritten(), new RecordsWritten(), new PeakBufferBytes()};
  }

  private record WriteValue(String name, long value) implements CustomTaskMetric {}

  static CustomTaskMetric[] of(TaskWriter writer) {
    return new CustomTaskMetric[] {new WriteValue(BYTES_WRITTEN, writer.writtenBytes()), new WriteValue(RECORDS_WRITTEN, writer.records()),
        new WriteValue(PEAK_BUFFER_BYTES, writer.heldBytesPeak())};
  }
}
