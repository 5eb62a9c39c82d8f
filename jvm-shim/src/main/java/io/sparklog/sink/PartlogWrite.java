package io.sparklog.sink;

import io.sparklog.log.Names;
import io.sparklog.log.Root;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import java.time.Clock;
import java.util.random.RandomGenerator;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;

/**
 * Builds a write. Declares truncation, although it never truncates: otherwise Spark itself refuses the save modes, and advises to
 * overwrite.
 */
public final class PartlogWrite implements WriteBuilder, SupportsTruncate, Write {
  private final Root root;
  private final Options options;
  private final LogicalWriteInfo info;
  private final Clock clock;
  private final RandomGenerator random;
  private boolean truncate;

  public PartlogWrite(Root root, Options options, LogicalWriteInfo info, Clock clock, RandomGenerator random) {
    this.root = root;
    this.options = options;
    this.info = info;
    this.clock = clock;
    this.random = random;
  }

  @Override
  public WriteBuilder truncate() {
    truncate = true;
    return this;
  }

  @Override
  public Write build() {
    return this;
  }

  @Override
  public BatchWrite toBatch() {
    return SparkErrors.run(() -> {
      if (truncate) {
        throw PartlogException.of("SAVE_MODE", "mode", "overwrite");
      }
      String topic = options.text("topic");
      RowColumns columns = RowColumns.of(info.schema(), topic != null);
      if (topic != null) {
        Root.requireLegal(topic);
      }
      root.requireWritable();
      WritePlan plan = WritePlan.of(root, options, columns, Names.identity(random), clock.millis());
      root.prepare();
      Once once = options.given("txnAppId") ? Once.transaction(options.text("txnAppId"), options.number("txnVersion")) : Once.NEVER;
      return new PartlogBatchWrite(plan, new TopicCommits(root, plan.txn(), once, clock, random));
    });
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return WriteMetrics.declared();
  }

  @Override
  public String description() {
    return "partlog " + root.store().root();
  }
}
