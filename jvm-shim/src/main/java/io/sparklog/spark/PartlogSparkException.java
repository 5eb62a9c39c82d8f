package io.sparklog.spark;

import io.sparklog.spec.PartlogException;
import java.util.Map;
import org.apache.spark.SparkThrowable;

/** An error of the connector as Spark and PySpark know errors: {@code getCondition()} gives {@code PARTLOG_<ID>}. */
public final class PartlogSparkException extends PartlogException implements SparkThrowable {
  PartlogSparkException(PartlogException cause) {
    super(cause);
  }

  @Override
  public String getCondition() {
    return condition();
  }

  @Override
  public String getSqlState() {
    // "External routine exception": SQLSTATE has no class for errors of data sources.
    return "38000";
  }

  @Override
  public Map<String, String> getMessageParameters() {
    return parameters();
  }

  @Override
  public String getDefaultMessageTemplate() {
    return getMessage();
  }
}
