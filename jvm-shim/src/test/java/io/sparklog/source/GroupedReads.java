package io.sparklog.source;

import static io.sparklog.kit.Wrong.require;

import io.sparklog.admin.Administration;
import io.sparklog.kit.Wrong;
import io.sparklog.log.State;
import io.sparklog.read.Split;
import io.sparklog.routing.PastReroute;
import io.sparklog.segment.Segment;
import io.sparklog.spark.Columns;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
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

/**
 * Random reads of random topics: the groups that a scan reports hold what they say, record by record, and are by key where they can be.
 * Scans that report the same function put a key into the same group. Topics of odd seeds get slots.
 */
final class GroupedReads {
  private static final String CORES = "spark.sql.files.minPartitionNum";
  private static final StructType ALL = Columns.read(false);

  private final Random random;
  private final RandomPredicates predicates;
  private final Path directory;
  private final KeyedLog log;

  /** By function, the group in which each key was found by any scan. */
  private final Map<String, Map<String, Integer>> groupsOfKeys = new HashMap<>();

  /** How many scans were grouped by key, and how many otherwise. */
  private int byKey;
  private int otherwise;

  private GroupedReads(long seed, Path directory) {
    this.random = new Random(seed);
    this.predicates = new RandomPredicates(seed);
    this.directory = directory;
    this.log = seed % 2 == 0 ? new KeyedLog(directory) : KeyedLog.withSlots(directory);
  }

  /** The fault that the seed finds; otherwise how many scans were grouped by key, and how many not. @param directory an empty one */
  static String run(long seed, Path directory) throws IOException {
    GroupedReads reads = new GroupedReads(seed, directory);
    try {
      for (String topic : RandomPredicates.TOPICS) {
        Map<String, String> config = Map.of("partitions", reads.oneIn(2) ? "4" : Integer.toString(1 + reads.random.nextInt(8)),
            "partitioner", topic.equals("b") ? "murmur2" : "murmur3");
        reads.log.write(topic, config, 100, KeyedLog.routed(reads.random.nextInt(60) + 1));
        if (seed % 2 != 0) {
          reads.log.of(topic)
              .addPartitions(reads.log.state(topic).partitions() + 1 + reads.random.nextInt(2), Administration.RerouteTime.NOW, false);
          reads.log.write(topic, Map.of(), 100, KeyedLog.routed(reads.random.nextInt(60) + 1));
        }
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
    Map<String, Integer> epochs = epochs(states);
    Reads reads = Reads.of(directory, "includeHeaders", "false", "minPartitions", Integer.toString(1 + random.nextInt(50)))
        .with("subscribe", states.stream().map(State::topic).collect(Collectors.joining(",")))
        .with("startingOffsets", offsets(states, epochs, this::start))
        .with("endingOffsets", offsets(states, epochs, GroupedReads::end));
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
    boolean expected = ofCatalog && withKey && routed && enough && isAlike(splits);
    check(scan, expected, withKey, states.size() > 1);
  }

  /** The routing epoch of the state, from 0 on, that a read of each topic begins with and ends with; −1 if it reads all. */
  private Map<String, Integer> epochs(List<State> states) {
    Map<String, Integer> epochs = new HashMap<>();
    for (State state : states) {
      int reroutes = state.routing().past().size();
      epochs.put(state.topic(), oneIn(4) ? -1 : random.nextInt(reroutes + 1));
    }
    return epochs;
  }

  /** The offset of a partition at which the read of a routing epoch begins, or ends. */
  private interface Edge {
    long of(State state, int partition, int epoch);
  }

  private static String offsets(List<State> states, Map<String, Integer> epochs, Edge edge) {
    List<String> topics = new ArrayList<>();
    for (State state : states) {
      List<String> all = new ArrayList<>();
      for (int p = 0; p < state.partitions(); p++) {
        long offset = edge.of(state, p, epochs.get(state.topic()));
        all.add("\"" + p + "\":" + Math.min(state.end(p), Math.max(state.start(p), offset)));
      }
      topics.add("\"" + state.topic() + "\":{" + String.join(",", all) + "}");
    }
    return topics.stream().collect(Collectors.joining(",", "{", "}"));
  }

  /** In a part of the reads a topic is read from offsets in its middle: what lies before them does not matter. */
  private long start(State state, int partition, int epoch) {
    List<Segment> segments = state.segments(partition);
    long afterOther = segments.stream()
        .filter(segment -> !segment.routed() && segment.end() <= end(state, partition, epoch))
        .mapToLong(Segment::end)
        .max()
        .orElse(0);
    long cut = epoch > 0 ? state.routing().past().get(epoch - 1).cut(partition) : 0;
    long start = oneIn(6) ? cut : Math.max(cut, afterOther);
    return start - (oneIn(20) ? 1 : 0);
  }

  private static long end(State state, int partition, int epoch) {
    List<PastReroute> past = state.routing().past();
    return epoch < 0 || epoch == past.size() ? state.end(partition) : past.get(epoch).cut(partition);
  }

  /** Whether no topic of the splits has slots, and all have the same hash and as many partitions. */
  private boolean isAlike(List<Split> splits) {
    List<State> states = splits.stream().map(Split::topic).distinct().map(log::state).toList();
    return states.stream().allMatch(state -> state.routing().isModulo() && state.router().admits(states.get(0).router()));
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
    String function = groups.startsWith("[murmur") ? groups.substring(1, groups.indexOf("(key)]")) : null;
    require(function != null || groups.equals(ofTopics ? "[identity(topic), identity(partition)]" : "[identity(partition)]"), groups);
    Set<List<Object>> values = new HashSet<>();
    for (InputPartition part : batch.planInputPartitions()) {
      PartlogReaderFactory.PartlogInputPartition.Grouped its = (PartlogReaderFactory.PartlogInputPartition.Grouped) part;
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
            require(function == null ? value.equals(valueOf(reader.get(), i, ofTopics)) : isOfGroup(reader.get(), i, function, value),
                "a record is in group " + value + " of " + groups);
          }
        }
      }
    }
    return values;
  }

  /** Whether the function puts the key of a record into the group, and no scan has found the key in another one. */
  private boolean isOfGroup(ColumnarBatch batch, int row, String function, List<Object> group) {
    int column = ALL.fieldIndex(Columns.KEY);
    if (batch.column(column).isNullAt(row)) {
      return false;
    }
    byte[] key = batch.column(column).getBinary(row);
    KeyRouting its = (KeyRouting) KeyRouting.named(function).orElseThrow();
    int value = its.produceResult(new GenericInternalRow(new Object[] {key}));
    Integer before = groupsOfKeys.computeIfAbsent(function, f -> new HashMap<>()).putIfAbsent(Arrays.toString(key), value);
    return group.equals(List.of(Integer.toString(value))) && (before == null || before == value);
  }

  private static List<Object> valueOf(ColumnarBatch batch, int row, boolean ofTopics) {
    String partition = Integer.toString(batch.column(ALL.fieldIndex(Columns.PARTITION)).getInt(row));
    String topic = batch.column(ALL.fieldIndex(Columns.TOPIC)).getUTF8String(row).toString();
    return ofTopics ? List.of(topic, partition) : List.of(partition);
  }
}
