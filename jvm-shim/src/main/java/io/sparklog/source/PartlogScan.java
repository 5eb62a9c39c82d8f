package io.sparklog.source;

import io.sparklog.format.Codec;
import io.sparklog.log.Segment;
import io.sparklog.log.State;
import io.sparklog.read.OffsetBounds;
import io.sparklog.read.Selection;
import io.sparklog.read.Split;
import io.sparklog.read.SplitPlanner;
import io.sparklog.read.SplitSize;
import io.sparklog.spark.Columns;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.Options;
import io.sparklog.storage.StoreRef;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportOrdering;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A batch read.
 *
 * <p>What it reports of partitions and order spares Spark shuffles and sorts: a task reads one partition, in the order of offsets.
 */
final class PartlogScan implements Batch, SupportsReportStatistics, SupportsReportPartitioning, SupportsReportOrdering {
  /** Compressed bytes are taken to become so many times as much: a small guess would have Spark broadcast a topic. */
  private static final int COMPRESSION_GUESS = 4;

  private static final List<String> PAYLOADS = List.of(Columns.KEY, Columns.VALUE, Columns.HEADERS);

  private final Snapshot snapshot;
  private final StructType schema;
  private final Pushed pushed;
  private final SplitSize splitSize;
  private List<Split> splits;

  /** @param schema the columns to give */
  PartlogScan(Snapshot snapshot, StructType schema, Pushed pushed) {
    this.snapshot = snapshot;
    this.schema = schema;
    this.pushed = pushed;
    // Here, for Spark may plan on a thread that does not know the session.
    this.splitSize = splitSize(snapshot.options());
  }

  /** By the settings of the session that plans, and the options of the read. */
  private static SplitSize splitSize(Options options) {
    SQLConf conf = SQLConf.get();
    return new SplitSize(conf.filesMaxPartitionBytes(), conf.filesOpenCostInBytes(), parallelism(conf),
        options.given("minPartitions") ? options.integer("minPartitions") : 1,
        options.given("maxRecordsPerPartition") ? options.number("maxRecordsPerPartition") : Long.MAX_VALUE);
  }

  private static int parallelism(SQLConf conf) {
    if (conf.filesMinPartitionNum().isDefined()) {
      return (Integer) conf.filesMinPartitionNum().get();
    }
    return SparkSession.getActiveSession().isDefined()
        ? SparkSession.active().sparkContext().defaultParallelism()
        : Runtime.getRuntime().availableProcessors();
  }

  private synchronized List<Split> splits() {
    if (splits == null) {
      splits = SparkErrors
          .run(() -> new SplitPlanner(snapshot.root().store(), splitSize).plan(Selection.of(snapshot.ranges(), pushed.condition())));
    }
    return splits;
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
    boolean ofOneTopic = snapshot.isOfOneTopic();
    return splits().stream().map(split -> new PartlogInputPartition(split, ofOneTopic)).toArray(InputPartition[]::new);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new PartlogReaderFactory(StoreRef.of(snapshot.root().store()), schema, snapshot.options().bool("failOnDataLoss"),
        pushed.limit());
  }

  /** The records of a split are of one partition, in any query; a partition may have several splits. */
  @Override
  public Partitioning outputPartitioning() {
    int partitions = (int) splits().stream().map(split -> Map.entry(split.topic(), split.partition())).distinct().count();
    return partitions == 0 ? new UnknownPartitioning(0) : new KeyGroupedPartitioning(columns(false), partitions);
  }

  @Override
  public SortOrder[] outputOrdering() {
    return Arrays.stream(columns(true)).map(column -> Expressions.sort(column, SortDirection.ASCENDING)).toArray(SortOrder[]::new);
  }

  private Expression[] columns(boolean offset) {
    Expression partition = offset ? Expressions.column(Columns.PARTITION) : Expressions.identity(Columns.PARTITION);
    Expression topic = offset ? Expressions.column(Columns.TOPIC) : Expressions.identity(Columns.TOPIC);
    List<Expression> columns = new ArrayList<>(snapshot.isOfOneTopic() ? List.of(partition) : List.of(topic, partition));
    if (offset) {
      columns.add(Expressions.column(Columns.OFFSET));
    }
    return columns.toArray(Expression[]::new);
  }

  @Override
  public Statistics estimateStatistics() {
    long records = splits().stream().mapToLong(Split::offsets).sum();
    long rowBytes = 8;
    long payloadBytes = 0;
    for (StructField column : schema.fields()) {
      if (PAYLOADS.contains(column.name())) {
        payloadBytes = memoryBytes();
      } else {
        rowBytes += column.dataType().defaultSize();
      }
    }
    return new Estimate(records, Math.max(1, payloadBytes + records * rowBytes));
  }

  /** About how many bytes the batches take when they are not compressed. */
  private long memoryBytes() {
    Map<String, Codec> codecs = new HashMap<>();
    snapshot.ranges().forEach(range -> codecs.put(range.state().topic(), range.state().config().codec()));
    return splits().stream()
        .mapToLong(split -> split.bytesToRead() * (codecs.get(split.topic()) == Codec.NONE ? 1 : COMPRESSION_GUESS))
        .sum();
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return ReadMetrics.declared();
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[] {new ReadMetrics.Value(ReadMetrics.SKIPPED, skippedBytes())};
  }

  private long skippedBytes() {
    long liveBytes = 0;
    for (State state : snapshot.ranges().stream().map(OffsetBounds.Range::state).distinct().toList()) {
      for (int partition = 0; partition < state.partitions(); partition++) {
        liveBytes += state.segments(partition).stream().mapToLong(Segment::bytes).sum();
      }
    }
    return Math.max(0, liveBytes - splits().stream().mapToLong(Split::bytesToRead).sum());
  }

  /** {@code partlog[subscribe=orders] /data/log, filters: offset > 5, limit: 10} */
  @Override
  public String description() {
    return snapshot + pushed.toString();
  }

  @Override
  public String toString() {
    return description();
  }

  /** Spark reads once what a query reads twice, if it can tell that it is the same. */
  @Override
  public boolean equals(Object other) {
    return other instanceof PartlogScan scan && schema.equals(scan.schema) && pushed.isSame(scan.pushed) && splitSize.equals(scan.splitSize)
        && snapshot.isSame(scan.snapshot);
  }

  @Override
  public int hashCode() {
    return Objects.hash(snapshot.root().store().root(), schema);
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
