package io.sparklog.source;

import io.sparklog.format.Codec;
import io.sparklog.log.State;
import io.sparklog.read.Selection;
import io.sparklog.read.Split;
import io.sparklog.read.SplitPlanner;
import io.sparklog.segment.Segment;
import io.sparklog.spark.Columns;
import io.sparklog.spark.PartlogSparkException;
import io.sparklog.spark.SessionSettings;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.Options;
import io.sparklog.storage.CheckpointFolders;
import io.sparklog.stream.StreamStart;
import java.time.Clock;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.random.RandomGenerator;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportOrdering;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A read of records, as planned.
 *
 * <p>It reports partitions and order, which saves Spark shuffles and sorts: a task reads one partition, in the order of offsets.
 */
final class PartlogScan
    implements
      SupportsReportStatistics,
      SupportsReportPartitioning,
      SupportsReportOrdering,
      SupportsRuntimeV2Filtering {
  /** Assumed expansion of compressed bytes; a low guess would let Spark broadcast a whole topic. */
  private static final int COMPRESSION_GUESS = 4;

  /** Errors about things that a write makes if they are missing. */
  private static final List<String> NOT_THERE = List.of("TOPIC_NOT_FOUND", "ROOT_NOT_FOUND", "ROOT_WITHOUT_LOG");

  private static final List<String> PAYLOADS = List.of(Columns.KEY, Columns.VALUE, Columns.HEADERS);

  private final ReadRequest request;
  private final StructType schema;
  private final PushedDown pushed;
  private final SplitPlanner.SplitSize splitSize;
  private final Clock clock;
  private final RandomGenerator random;
  private final PartlogBatch batch;

  /**
   * The read that Spark asks for next, on the thread where it gave runtime filters. No other: a plan may have the scan twice, and run it
   * with other filters or without.
   */
  private final ThreadLocal<PartlogBatch> narrowed = new ThreadLocal<>();

  /** The read that was planned last, for the metrics. */
  private volatile PartlogBatch last;

  /** Null in a batch. */
  private PartlogStream stream;

  /**
   * @param schema the columns to return
   * @param functions whether Spark finds the functions of our catalog
   * @param clock tells a stream when its micro-batches were
   * @param random names a stream's temporary files
   */
  PartlogScan(ReadRequest request, StructType schema, PushedDown pushed, boolean functions, Clock clock, RandomGenerator random) {
    this.request = request;
    this.schema = schema;
    this.pushed = pushed;
    this.clock = clock;
    this.random = random;
    // Here, since Spark may plan on a thread that does not know the session.
    this.splitSize = splitSize(request.options());
    this.batch = new PartlogBatch(request, schema, pushed, splitSize, Grouping.Terms.of(functions, splitSize.parallelism(), SQLConf.get()));
    this.last = batch;
  }

  /** By the settings of the session that plans, and the options of the read. */
  private static SplitPlanner.SplitSize splitSize(Options options) {
    SQLConf conf = SQLConf.get();
    return new SplitPlanner.SplitSize(conf.filesMaxPartitionBytes(), conf.filesOpenCostInBytes(), parallelism(conf),
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

  private List<Split> splits() {
    return batch.splits();
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public Batch toBatch() {
    PartlogBatch next = narrowed.get();
    narrowed.remove();
    last = next == null ? batch : next;
    return last;
  }

  /** Those of the columns that may rule out whole splits. */
  @Override
  public NamedReference[] filterAttributes() {
    return Stream.of(Columns.KEY, Columns.PARTITION, Columns.TOPIC)
        .filter(List.of(schema.fieldNames())::contains)
        .map(Expressions::column)
        .toArray(NamedReference[]::new);
  }

  /** Filters that Spark knows only when it runs the query: from the other side of a join, or from a subquery. */
  @Override
  public void filter(Predicate[] predicates) {
    narrowed.set(batch.narrowed(predicates));
  }

  /** Spark offers a stream no filters and no limit, and asks it for nothing that concerns a batch but statistics and metrics. */
  @Override
  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    stream = SparkErrors.run(() -> new PartlogStream(request.root(), schema, request.options().ofStream(), splitSize,
        new StreamStart(CheckpointFolders.open(checkpointLocation, () -> SessionSettings.with(Map.of())), random), clock));
    return stream;
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }

  @Override
  public Partitioning outputPartitioning() {
    return batch.grouping().partitioning(splits());
  }

  /** By the columns of the read: if Spark keeps the order of splits that it brings together, it fails at a column that is not read. */
  @Override
  public SortOrder[] outputOrdering() {
    return Stream.concat(columns().stream(), Stream.of(Columns.OFFSET))
        .filter(List.of(schema.fieldNames())::contains)
        .map(column -> Expressions.sort(Expressions.column(column), SortDirection.ASCENDING))
        .toArray(SortOrder[]::new);
  }

  /** The columns that identify a partition. */
  private List<String> columns() {
    return request.isOfOneTopic() ? List.of(Columns.PARTITION) : List.of(Columns.TOPIC, Columns.PARTITION);
  }

  /** Nothing is known of a topic that is not there yet. DESCRIBE asks too, and must not fail; a read fails when it plans its tasks. */
  @Override
  public Statistics estimateStatistics() {
    try {
      return stream != null ? Estimate.UNKNOWN : estimate();
    } catch (PartlogSparkException e) {
      if (NOT_THERE.contains(e.id())) {
        return Estimate.UNKNOWN;
      }
      throw e;
    }
  }

  private Statistics estimate() {
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
    return new Estimate(OptionalLong.of(records), OptionalLong.of(Math.max(1, payloadBytes + records * rowBytes)));
  }

  /** About how many bytes the batches take when they are not compressed. */
  private long memoryBytes() {
    Map<String, Codec> codecs = new HashMap<>();
    request.ranges().forEach(range -> codecs.put(range.state().topic(), range.state().config().codec()));
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
    return stream != null ? new CustomTaskMetric[0] : new CustomTaskMetric[] {ReadMetrics.SKIPPED.of(skippedBytes())};
  }

  private long skippedBytes() {
    long liveBytes = 0;
    for (State state : request.ranges().stream().map(Selection.OffsetRange::state).distinct().toList()) {
      for (int partition = 0; partition < state.partitions(); partition++) {
        liveBytes += state.segments(partition).stream().mapToLong(Segment::bytes).sum();
      }
    }
    return Math.max(0, liveBytes - last.splits().stream().mapToLong(Split::bytesToRead).sum());
  }

  /** {@code partlog[subscribe=orders] /data/log, filters: offset > 5, limit: 10} */
  @Override
  public String description() {
    return request + pushed.toString();
  }

  @Override
  public String toString() {
    return description();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof PartlogScan scan && batch.equals(scan.batch);
  }

  @Override
  public int hashCode() {
    return batch.hashCode();
  }

  private record Estimate(OptionalLong numRows, OptionalLong sizeInBytes) implements Statistics {
    private static final Estimate UNKNOWN = new Estimate(OptionalLong.empty(), OptionalLong.empty());
  }
}
