package io.sparklog.source;

import io.sparklog.format.Codec;
import io.sparklog.log.Root;
import io.sparklog.log.Segment;
import io.sparklog.log.State;
import io.sparklog.spark.Columns;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.Options;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A batch read. The topics are looked up once, when something about the read is first asked for; so all of it is of one snapshot. */
final class PartlogScan implements Batch, SupportsReportStatistics {
  /** Compressed bytes are taken to become so many times as much: a small guess would have Spark broadcast a topic. */
  private static final int COMPRESSION_GUESS = 4;

  private static final List<String> PAYLOADS = List.of(Columns.KEY, Columns.VALUE, Columns.HEADERS);

  private final Root root;
  private final Options options;
  private final StructType schema;
  private final SplitSize splitSize;
  private final Subscription subscription;
  private Plan plan;

  /** The offsets to read, and the splits that read them. */
  private record Plan(List<OffsetBounds.Range> ranges, List<Split> splits) {
    /** About how many bytes the batches take when they are not compressed. */
    private long memoryBytes() {
      Map<String, Codec> codecs = new HashMap<>();
      ranges.forEach(range -> codecs.put(range.state().topic(), range.state().config().codec()));
      return splits.stream().mapToLong(split -> split.bytesToRead() * (codecs.get(split.topic()) == Codec.NONE ? 1 : COMPRESSION_GUESS)).sum();
    }

    private long skippedBytes() {
      long liveBytes = 0;
      for (State state : ranges.stream().map(OffsetBounds.Range::state).distinct().toList()) {
        for (int partition = 0; partition < state.partitions(); partition++) {
          liveBytes += state.segments(partition).stream().mapToLong(Segment::bytes).sum();
        }
      }
      return Math.max(0, liveBytes - splits.stream().mapToLong(Split::bytesToRead).sum());
    }
  }

  PartlogScan(Root root, Options options, StructType schema) {
    this.root = root;
    this.options = options;
    this.schema = schema;
    // Spark may plan on a thread that does not know the session.
    this.splitSize = SplitSize.of(options);
    this.subscription = new Subscription(root, options);
  }

  private synchronized Plan plan() {
    if (plan == null) {
      plan =
          SparkErrors.run(
              () -> {
                List<OffsetBounds.Range> ranges = new OffsetBounds(root.store(), options).resolve(subscription.resolve());
                return new Plan(ranges, new SplitPlanner(root.store(), splitSize).plan(ranges));
              });
    }
    return plan;
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return plan().splits.toArray(InputPartition[]::new);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new PartlogReaderFactory(root.store().root(), schema, options.truth("failOnDataLoss"));
  }

  @Override
  public Statistics estimateStatistics() {
    long records = plan().splits.stream().mapToLong(Split::offsets).sum();
    long rowBytes = 8;
    long payloadBytes = 0;
    for (StructField column : schema.fields()) {
      if (PAYLOADS.contains(column.name())) {
        payloadBytes = plan().memoryBytes();
      } else {
        rowBytes += column.dataType().defaultSize();
      }
    }
    return new Estimate(records, Math.max(1, payloadBytes + records * rowBytes));
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return ReadMetrics.declared();
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[] {new ReadMetrics.Value(ReadMetrics.SKIPPED, plan().skippedBytes())};
  }

  /** {@code partlog[subscribe=orders] /data/log} */
  @Override
  public String description() {
    return "partlog[" + subscription + "] " + root.store().root();
  }

  @Override
  public String toString() {
    return description();
  }

  private record Estimate(long records, long bytes) implements Statistics {
    @Override
    public OptionalLong sizeInBytes() {
      return OptionalLong.of(bytes);
    }

    @Override
    public OptionalLong numRows() {
      return OptionalLong.of(records);
    }
  }
}
