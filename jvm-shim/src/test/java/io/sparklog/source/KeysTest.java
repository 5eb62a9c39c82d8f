package io.sparklog.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.kit.Writes;
import io.sparklog.log.Committers;
import io.sparklog.log.Names;
import io.sparklog.log.Root;
import io.sparklog.log.Segment;
import io.sparklog.log.State;
import io.sparklog.merge.Merging;
import io.sparklog.read.Split;
import io.sparklog.spark.Columns;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.TaskWriter;
import io.sparklog.write.TopicBuffer;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Reads by key find all records of a key, and read no routed segment of another partition. */
final class KeysTest {
  private static final StructType COLUMNS = Columns.read(false);

  @TempDir
  Path directory;
  private final Random ids = new Random(1);

  private Root root() {
    return new Root(Stores.open(directory.toString()));
  }

  /** The number of a partition, or null: the partitioner chooses. */
  private record Given(String key, Integer partition) {}

  private void write(String topic, Map<String, String> config, int batchBytes, List<Given> records) throws IOException {
    Root root = root();
    TreeMap<String, String> all = Writes.config();
    all.putAll(config);
    TopicPlan plan = TopicPlan.of(topic, root.topic(topic).latest(), all);
    String txn = Names.identity(ids);
    try (TaskWriter writer = new TaskWriter(root.store(), txn, 0, 1, 0, batchBytes, 1 << 20)) {
      TopicBuffer buffer = writer.topic(plan);
      for (int i = 0; i < records.size(); i++) {
        Given record = records.get(i);
        byte[] key = record.key == null ? new byte[0] : record.key.getBytes(StandardCharsets.ISO_8859_1);
        byte[] row = Arrays.copyOf(key, key.length + 1);
        row[key.length] = 'x';
        int keyLength = record.key == null ? -1 : key.length;
        if (record.partition == null) {
          buffer.append(i % 4, row, 0, keyLength, key.length, i % 3 - 1, null, TopicBuffer.NO_HEADERS_BYTES);
        } else {
          buffer.appendTo(record.partition, i % 4, row, 0, keyLength, key.length, i % 3 - 1, null, TopicBuffer.NO_HEADERS_BYTES);
        }
      }
      new TopicCommits(root, txn, name -> Once.NEVER, Clock.systemUTC(), ids).commit(plan, List.of(writer.finish().get(topic)));
    }
  }

  private void addPartitions(String topic, int partitions) {
    new Administration(new TopicWork(root().topic(topic), Clock.systemUTC(), ids)).addPartitions(partitions);
  }

  private void merge(String topic) {
    new Merging(new Committers(root().topic(topic), Clock.systemUTC(), ids)).all();
  }

  private State state(String topic) {
    return root().topic(topic).newest().orElseThrow();
  }

  private static List<Given> routed(int records) {
    return IntStream.range(0, records).mapToObj(i -> new Given("k" + i % 50, null)).toList();
  }

  /** A record as {@link RandomPredicates} wants it. */
  private record Row(List<Object> values) {
    @Override
    public String toString() {
      return values.toString();
    }
  }

  private List<String> rows(Batch batch) throws IOException {
    List<String> rows = new ArrayList<>();
    for (Row row : read(batch)) {
      rows.add(row.toString());
    }
    return rows.stream().sorted().toList();
  }

  private List<Row> read(Batch batch) throws IOException {
    List<Row> rows = new ArrayList<>();
    for (InputPartition split : batch.planInputPartitions()) {
      try (PartitionReader<ColumnarBatch> reader = Reads.copy(batch.createReaderFactory()).createColumnarReader(Reads.copy(split))) {
        while (reader.next()) {
          for (int i = 0; i < reader.get().numRows(); i++) {
            rows.add(row(reader.get(), i));
          }
        }
      }
    }
    return rows;
  }

  private static Row row(ColumnarBatch batch, int i) {
    List<Object> values = new ArrayList<>();
    for (String name : RandomPredicates.COLUMNS) {
      ColumnVector column = batch.column(COLUMNS.fieldIndex(name));
      values.add(switch (name) {
        case "topic" -> column.getUTF8String(i).toString();
        case "partition" -> (long) column.getInt(i);
        case "offset", "timestamp" -> column.getLong(i);
        default -> column.isNullAt(i) ? null : new String(column.getBinary(i), StandardCharsets.ISO_8859_1);
      });
    }
    return new Row(values);
  }

  private static List<String> meeting(List<Row> rows, Predicate... predicates) {
    return rows.stream()
        .filter(row -> Arrays.stream(predicates).allMatch(one -> RandomPredicates.met(one, row.values.toArray()) == Boolean.TRUE))
        .map(Row::toString)
        .sorted()
        .toList();
  }

  private Reads reads() {
    return Reads.of(directory, "includeHeaders", "false");
  }

  private void change(String topic, Random random) throws IOException {
    int partitions = root().topic(topic).latest().map(State::partitions).orElse(2);
    switch (random.nextInt(9)) {
      case 0 -> addPartitions(topic, partitions + 1);
      case 1, 2 -> merge(topic);
      default -> {
        int kind = random.nextInt(4);
        List<Given> records = new ArrayList<>();
        for (int i = 1 + random.nextInt(20); i > 0; i--) {
          boolean isNull = kind == 1 && random.nextInt(3) == 0;
          String key = isNull ? null : RandomPredicates.KEYS[random.nextInt(RandomPredicates.KEYS.length)];
          records.add(new Given(key, kind == 2 && random.nextBoolean() ? (Integer) random.nextInt(partitions) : null));
        }
        write(topic, Map.of("partitions", "2", "partitioner", topic.equals("b") ? "murmur2" : "murmur3"), 100, records);
      }
    }
  }

  @Test
  void randomPredicatesGiveTheSameRecordsAsWithoutPushDown() throws IOException {
    long seed = System.nanoTime();
    System.out.println("seed " + seed);
    Random random = new Random(seed);
    RandomPredicates predicates = new RandomPredicates(seed);
    for (String topic : RandomPredicates.TOPICS) {
      write(topic, Map.of("partitions", "2", "partitioner", topic.equals("b") ? "murmur2" : "murmur3"), 100, routed(20));
    }
    int narrowed = 0;
    for (int round = 0; round < 25; round++) {
      for (String topic : RandomPredicates.TOPICS) {
        change(topic, random);
      }
      List<Row> all = read(reads().scan().toBatch());
      for (int i = 0; i < 40; i++) {
        Predicate predicate = predicates.predicate(3);
        Predicate later = predicates.predicate(2);
        PartlogScanBuilder builder = reads().with("minPartitions", Integer.toString(1 + random.nextInt(30))).builder();
        Predicate[] left = builder.pushPredicates(new Predicate[] {predicate});
        PartlogScan scan = (PartlogScan) builder.build();
        List<Row> found = read(scan.toBatch());
        assertEquals(meeting(all, predicate), meeting(found, left), () -> predicate + " is not right");

        List<Split> before = Reads.splits(scan);
        scan.filter(new Predicate[] {later});
        Batch batch = scan.toBatch();
        List<Row> fewer = read(batch);
        assertEquals(meeting(found, later), meeting(fewer, later), () -> later + " at run time, over " + predicate + ", is not right");
        assertTrue(found.stream().map(Row::toString).collect(Collectors.toSet()).containsAll(rows(batch)), "there are others");
        narrowed += batch.planInputPartitions().length < before.size() ? 1 : 0;
        assertEquals(before, Reads.splits(scan), "the filter is of one execution");
      }
    }
    assertTrue(narrowed > 20, narrowed + " reads lost a split to a filter at run time");
  }

  private static Predicate keyIs(String... keys) {
    return new Predicate("IN",
        Stream
            .concat(Stream.of(Expressions.column("key")),
                Arrays.stream(keys).map(key -> new LiteralValue<>(key.getBytes(StandardCharsets.UTF_8), DataTypes.BinaryType)))
            .toArray(Expression[]::new));
  }

  private List<Split> splits(Predicate... predicates) {
    PartlogScanBuilder builder = reads().builder();
    assertEquals(0, builder.pushPredicates(predicates).length, "some are left to Spark");
    return Reads.splits((PartlogScan) builder.build());
  }

  private static int home(State state, String key) {
    byte[] bytes = key.getBytes(StandardCharsets.UTF_8);
    return state.config().router().ofKey(bytes, 0, bytes.length);
  }

  @Test
  void onlyThePartitionOfTheKeyIsRead() throws IOException {
    for (String partitioner : List.of("murmur3", "murmur2")) {
      write(partitioner, Map.of("partitions", "8", "partitioner", partitioner), 1000, routed(400));
    }
    State three = state("murmur3");
    State two = state("murmur2");
    List<Split> splits = splits(keyIs("k7"));
    assertEquals(List.of("murmur2", home(two, "k7"), "murmur3", home(three, "k7")),
        splits.stream().flatMap(split -> Stream.<Object>of(split.topic(), split.partition())).toList());
    assertEquals(0, splits(new Predicate("IS_NULL", new Expression[] {Expressions.column("key")})).size());
    List<Split> present = splits(new Predicate("IS_NOT_NULL", new Expression[] {Expressions.column("key")}));
    assertEquals(splits().size(), present.size());
    assertTrue(present.stream().flatMap(split -> split.extents().stream()).noneMatch(extent -> extent.filtered()), "keys are looked at");
  }

  @Test
  void segmentsOfBeforePartitionsWereAddedAreAllReadAndLaterOnesAreNot() throws IOException {
    write("t", Map.of("partitions", "2"), 1000, routed(100));
    addPartitions("t", 8);
    write("t", Map.of(), 1000, routed(100));
    for (int round = 0; round < 2; round++) {
      State state = state("t");
      List<Split> splits = splits(keyIs("k7"));
      List<Segment> read = splits.stream().flatMap(split -> split.extents().stream()).map(extent -> extent.segment()).toList();
      long old = state.segments().stream().flatMap(List::stream).filter(segment -> !segment.routed()).count();
      assertEquals(2, old, "segments of before");
      boolean later = state.segments(home(state, "k7")).stream().anyMatch(Segment::routed);
      assertEquals(old + (later ? 1 : 0), read.size());
      merge("t");
    }
  }
}
