package io.sparklog.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/**
 * A number that tasks count, and that Spark's UI shows as a sum. Spark makes a metric by the name of its class, so each metric has a class.
 */
public abstract class TaskMetric extends CustomSumMetric {
  private final String name;
  private final String description;

  /** The count of one task. */
  private record Counted(String name, long value) implements CustomTaskMetric {}

  protected TaskMetric(String name, String description) {
    this.name = name;
    this.description = description;
  }

  @Override
  public final String name() {
    return name;
  }

  @Override
  public final String description() {
    return description;
  }

  public final CustomTaskMetric of(long value) {
    return new Counted(name, value);
  }
}
