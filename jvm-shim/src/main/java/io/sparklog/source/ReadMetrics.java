package io.sparklog.source;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** The metrics that Spark's UI shows of a read. Spark creates the metrics by their class names, so each has a public class. */
public final class ReadMetrics {
  static final String BATCHES = "batchesRead";
  static final String BYTES = "bytesRead";
  static final String SKIPPED = "bytesSkipped";

  private ReadMetrics() {}

  static CustomMetric[] declared() {
    return new CustomMetric[] {new BatchesRead(), new BytesRead(), new BytesSkipped()};
  }

  record ReadValue(String name, long value) implements CustomTaskMetric {}

  /** Counted in tasks. */
  public static final class BatchesRead extends CustomSumMetric {
    @Override
    public String name() {
      return BATCHES;
    }

    @Override
    public String description() {
      return "record batches read";
    }
  }

  /** Counted in tasks. */
  public static final class BytesRead extends CustomSumMetric {
    @Override
    public String name() {
      return BYTES;
    }

    @Override
    public String description() {
      return "bytes read";
    }
  }

  /** Known when the read is planned. */
  public static final class BytesSkipped extends CustomSumMetric {
    @Override
    public String name() {
      return SKIPPED;
    }

    @Override
    public String description() {
      return "bytes of the topics that need not be read";
    }
  }
}
