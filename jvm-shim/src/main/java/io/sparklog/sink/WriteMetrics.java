package io.sparklog.sink;

import io.sparklog.log.TaskWriter;
import java.util.Arrays;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What Spark's UI shows of a write. */
final class WriteMetrics {
  private static final String BYTES = "bytesWritten";
  private static final String RECORDS = "recordsWritten";
  private static final String PEAK_BUFFER_BYTES = "peakBufferBytes";

  private WriteMetrics() {}

  /** Spark takes the output size of a stage from a metric of this name. */
  public static final class BytesWritten extends CustomSumMetric {
    @Override
    public String name() {
      return BYTES;
    }

    @Override
    public String description() {
      return "bytes of record batches";
    }
  }

  /** Spark takes the output records of a stage from a metric of this name. */
  public static final class RecordsWritten extends CustomSumMetric {
    @Override
    public String name() {
      return RECORDS;
    }

    @Override
    public String description() {
      return "records written";
    }
  }

  /** How much of {@code write.buffer.bytes} was in use. */
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

  private record Value(String name, long value) implements CustomTaskMetric {}

  static CustomTaskMetric[] of(TaskWriter writer) {
    return new CustomTaskMetric[] {new Value(BYTES, writer.writtenBytes()), new Value(RECORDS, writer.records()),
        new Value(PEAK_BUFFER_BYTES, writer.heldBytesPeak())};
  }
}
