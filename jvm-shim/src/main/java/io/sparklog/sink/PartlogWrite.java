package io.sparklog.sink;

import io.sparklog.log.Root;
import io.sparklog.log.ReadableTopics;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.Option;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.write.Once;
import java.io.IOException;
import java.time.Clock;
import java.util.List;
import java.util.function.Supplier;
import java.util.random.RandomGenerator;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;

/**
 * Builds a write, which always appends. Declares truncation, although it never truncates. A stream in complete mode asks for it, and
 * appends its result, like with Kafka. Without it, Spark itself refuses the save modes of a batch, and advises to overwrite.
 */
public final class PartlogWrite implements WriteBuilder, SupportsTruncate, SupportsStreamingUpdateAsAppend, Write {
  private final Root root;
  private final Options options;
  private final LogicalWriteInfo info;
  private final SinkMetrics metrics;
  private final Clock clock;
  private final RandomGenerator random;
  private Existence existence = Existence.ANY;
  private boolean truncate;

  /** @param metrics gets the commits of a stream */
  public PartlogWrite(Root root, Options options, LogicalWriteInfo info, SinkMetrics metrics, Clock clock, RandomGenerator random) {
    this.root = root;
    this.options = options;
    this.info = info;
    this.metrics = metrics;
    this.clock = clock;
    this.random = random;
  }

  /** @param asked whether the topics must exist */
  public PartlogWrite to(Existence asked) {
    existence = asked;
    return this;
  }

  /**
   * Refuses a query that cannot write any rows.
   *
   * @param options of a write
   * @throws PartlogException OPTION_VALUE, TOPIC_NAME_ILLEGAL, TOPIC_OF_SERVER, and what {@link Root#requireWritable} throws
   */
  public static void requireStream(Root root, Options options) {
    requireNoTransaction(options);
    if (options.given("topic")) {
      ReadableTopics.requireLegal(options.text("topic"));
      ReadableTopics.requireOfPrograms(options.text("topic"), root.location());
    }
    root.requireWritable();
  }

  private static void requireNoTransaction(Options options) {
    if (options.given("txnAppId")) {
      throw Option.invalidValue("txnAppId", options.text("txnAppId"),
          "a stream is exactly-once by itself, and each epoch needs another; leave it out");
    }
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
        String topic = options.text("topic");
        throw PartlogException.of("SAVE_MODE", "mode", "overwrite", "topics", topic == null ? "the topics" : "topic " + topic, "root",
            root.location());
      }
      boolean named = options.given("txnAppId");
      return new PartlogBatchWrite(write(root::names, !root.store().hasFolders() && root.isPrepared()),
          named ? Once.transaction(options.text("txnAppId"), options.number("txnVersion")) : null);
    });
  }

  /** Spark asks in each epoch. */
  @Override
  public StreamingWrite toStreaming() {
    return SparkErrors.run(() -> {
      requireNoTransaction(options);
      return new PartlogStreamWrite(write(() -> root.recentNames(clock), root.isPrepared()), info.queryId(), metrics);
    });
  }

  /** @param prepared whether the root needs no look, nor to be made */
  private DriverWrite write(Supplier<List<String>> topics, boolean prepared) throws IOException {
    String topic = options.text("topic");
    RowColumns columns = RowColumns.of(info.schema(), topic != null);
    if (topic != null) {
      ReadableTopics.requireLegal(topic);
    }
    boolean looksFirst = root.store().hasFolders();
    if (!prepared && looksFirst) {
      root.requireWritable();
    }
    WritePlan plan = WritePlan.of(root, options, columns, clock, random, existence, topics);
    // In a store without folders, a version of a topic proves the root, and each look costs requests.
    if (!prepared && !looksFirst && !plan.isOfTopics()) {
      root.requireWritable();
    }
    if (!prepared) {
      root.prepare();
    }
    // A commit of its own, after all that may refuse the write.
    List<Runnable> owed = plan.applyPendingReroutes(root, clock, random);
    if (!owed.isEmpty()) {
      plan = WritePlan.of(root, options, columns, clock, random, existence, topics);
    }
    return new DriverWrite(root, plan, owed, options.bool("merge") ? options.number("merge.budget.bytes") : 0, existence == Existence.NEW,
        clock, random);
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
