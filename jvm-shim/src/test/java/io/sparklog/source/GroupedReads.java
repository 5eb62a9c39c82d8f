package io.sparklog.source;

import io.sparklog.log.Segment;
import io.sparklog.log.State;
import io.sparklog.partition.Partitioner;
import io.sparklog.partition.Router;
import io.sparklog.read.Split;
import io.sparklog.spark.Columns;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Random reads of random topics: the groups that a scan reports hold what they say, record by record, and are by key where they can be. */
final class GroupedReads {
  private static final String CORES = "spark.sql.files.minPartitionNum";
  private static final StructType ALL = Columns.read(false);

  private final Random random;
  private final RandomPredicates predicates;
  private final Path directory;
  private final KeyedLog log;

  /** How many scans were grouped by key, and how many otherwise. */
  private int byKey;
  private int otherwise;

  private GroupedReads(long seed, Path directory) {
    this.random = new Random(seed);
    this.predicates = new RandomPredicates(seed);
    this.directory = directory;
    this.log = new KeyedLog(directory);
  }

  /** The fault that the seed finds; otherwise how many scans were grouped by key, and how many not. @param directory an empty one */
  static String run(long seed, Path directory) throws IOException {
    GroupedReads reads = new GroupedReads(seed, directory);
    try {
      for (String topic : RandomPredicates.TOPICS) {
        Map<String, String> config = Map.of("partitions", reads.oneIn(2) ? "4" : Integer.toString(1 + reads.random.nextInt(8)),
            "partitioner", topic.equals("b") ? "murmur2" : "murmur3");
        reads.log.write(topic, config, 100, KeyedLog.routed(reads.random.nextInt(60) + 1));
      }
      for (int i = 0; i < 12; i++) {
        if (reads.oneIn(2)) {
          reads.log.change(RandomPredicates.TOPICS[reads.random.nextInt(3)], reads.random);
        }
        reads.read();
      }
      return reads.byKey + " by key, " + reads.otherwise + " otherwise";
    } catch (Wrong wrong) {
      return "wrong: " + wrong.getMessage();
    } finally {
      SQLConf.get().unsetConf(CORES);
    }
  }

  private static final class Wrong extends RuntimeException {
    private static final long serialVersionUID = 1;

    private Wrong(String message) {
      super(message);
    }
  }

  private static void require(boolean right, String message) {
    if (!right) {
      throw new Wrong(message);
    }
  }

  private boolean oneIn(int n) {
    return random.nextInt(n) == 0;
  }

  private void read() throws IOException {
    List<String> topics = new ArrayList<>(List.of(RandomPredicates.TOPICS));
    topics.removeIf(topic -> random.nextBoolean());
    String topic = topics.isEmpty() ? "a" : topics.get(0);
    List<State> states = (topics.isEmpty() ? List.of(topic) : topics).stream().map(log::state).toList();
    int cores = 1 + random.nextInt(5);
    SQLConf.get().setConfString(CORES, Integer.toString(cores));
    Reads reads = Reads.of(directory, "includeHeaders", "false", "minPartitions", Integer.toString(1 + random.nextInt(50)))
        .with("subscribe", states.stream().map(State::topic).collect(Collectors.joining(",")))
        .with("startingOffsets", states.stream().map(this::starts).collect(Collectors.joining(",", "{", "}")));
    boolean ofCatalog = !oneIn(8);
    PartlogScanBuilder builder = (ofCatalog ? reads.ofCatalog() : reads).builder();
    if (oneIn(4)) {
      builder.pushPredicates(new Predicate[] {predicates.predicate(2)});
    }
    boolean withKey = !oneIn(6);
    if (!withKey) {
      builder.pruneColumns(
          new StructType(Arrays.stream(ALL.fields()).filter(field -> !field.name().equals(Columns.KEY)).toArray(StructField[]::new)));
    }
    PartlogScan scan = (PartlogScan) builder.build();
    List<Split> splits = Reads.splits(scan);
    boolean routed = splits.stream().flatMap(split -> split.extents().stream()).allMatch(extent -> extent.segment().routed());
    boolean enough = splits.stream().map(Split::partition).distinct().count() >= cores;
    Set<Router> routers = new HashSet<>(states.stream().map(state -> state.router()).toList());
    boolean expected = ofCatalog && withKey && routed && enough && routers.size() == 1 && routers.iterator().next().isModulo();
    check(scan, expected, withKey, states.size() > 1);
  }

  /** In a part of the reads a topic is read from offsets in its middle: what lies before them does not matter. */
  private String starts(State state) {
    boolean whole = oneIn(2);
    List<String> starts = new ArrayList<>();
    for (int p = 0; p < state.partitions(); p++) {
      List<Segment> segments = state.segments(p);
      long afterOther = segments.stream().filter(segment -> !segment.routed()).mapToLong(Segment::end).max().orElse(state.start(p));
      starts.add("\"" + p + "\":" + (whole ? state.start(p) : afterOther - (oneIn(20) && afterOther > state.start(p) ? 1 : 0)));
    }
    return "\"" + state.topic() + "\":{" + String.join(",", starts) + "}";
  }

  private void check(PartlogScan scan, boolean isByKey, boolean withKey, boolean ofTopics) throws IOException {
    Partitioning partitioning = scan.outputPartitioning();
    Batch batch = scan.toBatch();
    if (batch.planInputPartitions().length == 0) {
      require(!(partitioning instanceof KeyGroupedPartitioning), "nothing is grouped");
      return;
    }
    require(partitioning instanceof KeyGroupedPartitioning, "it is not grouped");
    String groups = Arrays.toString(((KeyGroupedPartitioning) partitioning).keys());
    require(groups.startsWith("[murmur") == isByKey, groups + ", by key: " + isByKey);
    byKey += isByKey ? 1 : 0;
    otherwise += isByKey ? 0 : 1;
    Set<List<Object>> values = values(batch, groups, withKey, ofTopics);
    require(partitioning.numPartitions() == values.size(), partitioning.numPartitions() + " groups are said to be " + values);

    scan.filter(new Predicate[] {predicates.predicate(2)});
    Batch narrowed = scan.toBatch();
    require(values.containsAll(values(narrowed, groups, withKey, ofTopics)), "a filter at run time makes other groups");
  }

  /** The values of the groups, once it is known that each record is in the group of its value. */
  private Set<List<Object>> values(Batch batch, String groups, boolean withKey, boolean ofTopics) throws IOException {
    Router router = groups.startsWith("[murmur")
        ? new Router(Partitioner.named(groups.substring(1, 8)), Integer.parseInt(groups.replaceAll(".*_([0-9]+)\\(key\\)]", "$1")))
        : null;
    require(router != null || groups.equals(ofTopics ? "[identity(topic), identity(partition)]" : "[identity(partition)]"), groups);
    Set<List<Object>> values = new HashSet<>();
    for (InputPartition part : batch.planInputPartitions()) {
      PartlogInputPartition its = (PartlogInputPartition) part;
      List<Object> value = new ArrayList<>();
      for (int i = 0; i < its.partitionKey().numFields(); i++) {
        DataType type = its.partitionKey().numFields() == 2 && i == 0 ? ALL.apply("topic").dataType() : ALL.apply("partition").dataType();
        value.add(its.partitionKey().get(i, type).toString());
      }
      values.add(value);
      if (!withKey) {
        continue;
      }
      try (PartitionReader<ColumnarBatch> reader = batch.createReaderFactory().createColumnarReader(part)) {
        while (reader.next()) {
          for (int i = 0; i < reader.get().numRows(); i++) {
            require(value.equals(valueOf(reader.get(), i, router, ofTopics)),
                "a record in group " + value + " of " + groups + " is of " + valueOf(reader.get(), i, router, ofTopics));
          }
        }
      }
    }
    return values;
  }

  /** Null for a record that belongs to no group. */
  private static List<Object> valueOf(ColumnarBatch batch, int row, Router router, boolean ofTopics) {
    if (router != null) {
      int column = ALL.fieldIndex(Columns.KEY);
      if (batch.column(column).isNullAt(row)) {
        return null;
      }
      byte[] key = batch.column(column).getBinary(row);
      return List.of(Integer.toString(router.ofKey(key, 0, key.length)));
    }
    String partition = Integer.toString(batch.column(ALL.fieldIndex(Columns.PARTITION)).getInt(row));
    String topic = batch.column(ALL.fieldIndex(Columns.TOPIC)).getUTF8String(row).toString();
    return ofTopics ? List.of(topic, partition) : List.of(partition);
  }
}
