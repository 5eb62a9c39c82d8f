package io.sparklog.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.kit.Seed;
import io.sparklog.log.State;
import io.sparklog.read.Split;
import io.sparklog.segment.Segment;
import io.sparklog.spark.Columns;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
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
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Reads by key find all records of a key, and read no routed segment of another partition. */
final class KeysTest {
  private static final StructType COLUMNS = Columns.read(false);

  /** The most bytes that a filter adds to a task: 64 KiB, and the names of its classes. */
  private static final int MOST = (64 << 10) + 2_000;

  @TempDir
  Path directory;
  private KeyedLog log;

  @BeforeEach
  void makesALog() {
    log = KeyedLog.withSlots(directory);
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

  @Test
  void randomPredicatesGiveTheSameRecordsAsWithoutPushDown() throws IOException {
    long seed = Seed.draw();
    System.out.println("seed " + seed);
    Random random = new Random(seed);
    RandomPredicates predicates = new RandomPredicates(seed);
    for (String topic : RandomPredicates.TOPICS) {
      log.write(topic, Map.of("partitions", "2", "partitioner", topic.equals("b") ? "murmur2" : "murmur3"), 100, KeyedLog.routed(20));
    }
    int narrowed = 0;
    int rounds = Seed.either(5, 25);
    for (int round = 0; round < rounds; round++) {
      for (String topic : RandomPredicates.TOPICS) {
        log.change(topic, random);
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
    assertTrue(narrowed >= rounds, narrowed + " reads lost a split to a filter at run time");
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

  @Test
  void onlyThePartitionOfTheKeyIsRead() throws IOException {
    for (String partitioner : List.of("murmur3", "murmur2")) {
      log.write(partitioner, Map.of("partitions", "8", "partitioner", partitioner), 1000, KeyedLog.routed(400));
    }
    State three = log.state("murmur3");
    State two = log.state("murmur2");
    List<Split> splits = splits(keyIs("k7"));
    assertEquals(List.of("murmur2", KeyedLog.home(two, "k7"), "murmur3", KeyedLog.home(three, "k7")),
        splits.stream().flatMap(split -> Stream.<Object>of(split.topic(), split.partition())).toList());
    assertEquals(0, splits(new Predicate("IS_NULL", new Expression[] {Expressions.column("key")})).size());
    List<Split> present = splits(new Predicate("IS_NOT_NULL", new Expression[] {Expressions.column("key")}));
    assertEquals(splits().size(), present.size());
    assertTrue(present.stream().flatMap(split -> split.extents().stream()).noneMatch(extent -> extent.filtered()), "keys are looked at");
  }

  @Test
  void aKeyIsReadWhereItsSlotWasInEachRoutingEpoch() throws IOException {
    log.write("t", Map.of("partitions", "2"), 1000, KeyedLog.routed(100));
    List<Integer> homes = new ArrayList<>(List.of(KeyedLog.home(log.state("t"), "k7")));
    log.of("t").addPartitions(8, Administration.RerouteTime.NOW, false);
    log.write("t", Map.of(), 1000, KeyedLog.routed(100));
    homes.add(KeyedLog.home(log.state("t"), "k7"));
    log.of("t").closePartitions(List.of(homes.get(1)), Administration.RerouteTime.NOW, false);
    log.write("t", Map.of(), 1000, KeyedLog.routed(100));
    homes.add(KeyedLog.home(log.state("t"), "k7"));
    assertNotEquals(homes.get(1), homes.get(2));
    for (int round = 0; round < 2; round++) {
      State state = log.state("t");
      List<Segment> read = splits(keyIs("k7")).stream().flatMap(split -> split.extents().stream()).map(extent -> extent.segment()).toList();
      List<String> expected = new ArrayList<>();
      for (int epoch = 0; epoch < 3; epoch++) {
        for (Segment segment : state.segments(homes.get(epoch))) {
          if (state.reroutesBefore(segment.partition(), segment.base()) == epoch) {
            expected.add(segment.toString());
          }
        }
      }
      assertEquals(expected.stream().sorted().toList(), read.stream().map(Segment::toString).sorted().toList());
      assertTrue(state.segments().stream().flatMap(List::stream).allMatch(Segment::routed));
      log.merge("t");
    }
  }

  private static Predicate amongKeys(int from, int to) {
    return keyIs(IntStream.range(from, to).mapToObj(i -> "k" + i).toArray(String[]::new));
  }

  /** {@code column IN (0, 2, 4, …)} */
  private static Predicate even(String column, DataType type, int count) {
    return new Predicate("IN",
        Stream.concat(Stream.of(Expressions.column(column)), IntStream.range(0, count).mapToObj(i -> new LiteralValue<>(2L * i, type)))
            .toArray(Expression[]::new));
  }

  private static Predicate anyOfKeys(int count) {
    Predicate any = keyIs("k0");
    for (int i = 1; i < count; i++) {
      any = new Predicate("OR", new Expression[] {any, keyIs("k" + i)});
    }
    return any;
  }

  private static int bytesOfLargestTask(Batch batch) throws IOException {
    int largest = 0;
    for (InputPartition task : batch.planInputPartitions()) {
      largest = Math.max(largest, Reads.bytes(task).length);
    }
    return largest;
  }

  /** Spark sends each task through the driver: 640 tasks with 100,000 keys would be gigabytes. */
  @Test
  void aTaskCarriesNoLongFilterAndNoRecordIsLost() throws IOException {
    log.write("routed", Map.of("partitions", "8"), 1000, KeyedLog.routed(60));
    log.write("loose", Map.of("partitions", "8"), 1000,
        IntStream.range(0, 60).mapToObj(i -> new KeyedLog.Given("k" + i % 50, i % 8)).toList());
    List<Row> all = read(reads().scan().toBatch());
    int without = bytesOfLargestTask(reads().scan().toBatch());
    List<Predicate[]> filters = List.of(new Predicate[] {amongKeys(25, 10_000)},
        new Predicate[] {amongKeys(25, 4_000), amongKeys(20, 4_100), amongKeys(0, 4_000)},
        new Predicate[] {even("offset", DataTypes.LongType, 6_000)}, new Predicate[] {even("timestamp", DataTypes.TimestampType, 6_000)},
        new Predicate[] {anyOfKeys(1_500)},
        new Predicate[] {new Predicate("OR", new Expression[] {amongKeys(25, 10_000), even("offset", DataTypes.LongType, 6_000)})},
        new Predicate[] {keyIs("k7", "k30"), amongKeys(25, 10_000), even("offset", DataTypes.LongType, 6_000)});
    for (Predicate[] asked : filters) {
      PartlogScanBuilder builder = reads().builder();
      Predicate[] left = builder.pushPredicates(asked);
      PartlogScan scan = (PartlogScan) builder.build();
      assertEquals(meeting(all, asked), meeting(read(scan.toBatch()), left));
      assertTrue(bytesOfLargestTask(scan.toBatch()) < without + MOST, () -> asked.length + " predicates");

      scan.filter(new Predicate[] {amongKeys(10, 9_000)});
      Batch narrowed = scan.toBatch();
      assertTrue(bytesOfLargestTask(narrowed) < without + MOST, "a task is too large with a filter at run time");
      List<Row> found = read(narrowed);
      List<Predicate> every = new ArrayList<>(List.of(asked));
      every.add(amongKeys(10, 9_000));
      List<Predicate> untested = new ArrayList<>(List.of(left));
      untested.add(amongKeys(10, 9_000));
      assertEquals(meeting(all, every.toArray(Predicate[]::new)), meeting(found, untested.toArray(Predicate[]::new)));
    }
  }

  @Test
  void longListsAreTestedBySpark() {
    PartlogScanBuilder builder = reads().builder();
    Predicate some = amongKeys(0, 1_000);
    Predicate many = amongKeys(0, 100_000);
    assertTrue(List.of(many).equals(List.of(builder.pushPredicates(new Predicate[] {some, many}))));
    assertTrue(List.of(some).equals(List.of(builder.pushedPredicates())));
    // Each has room alone; Spark tests the one that has no room beside the others.
    Predicate half = amongKeys(0, 4_000);
    Predicate other = amongKeys(1, 4_000);
    assertTrue(List.of(other).equals(List.of(builder.pushPredicates(new Predicate[] {half, other}))));
    // The place of a record takes no room: whether a partition is among them is known when the tasks are planned.
    Predicate partitions = new Predicate("IN",
        Stream
            .concat(Stream.of(Expressions.column("partition")),
                IntStream.range(0, 9_000).mapToObj(i -> new LiteralValue<>(2 * i, DataTypes.IntegerType)))
            .toArray(Expression[]::new));
    assertEquals(0, builder.pushPredicates(new Predicate[] {partitions}).length);
  }

  @Test
  void longListsStillLeaveOutPartitions() throws IOException {
    log.write("t", Map.of("partitions", "8"), 1000, KeyedLog.routed(400));
    State state = log.state("t");
    int home = KeyedLog.home(state, "k7");
    Predicate ofOne = keyIs(
        IntStream.range(0, 100_000).mapToObj(i -> "k" + i).filter(key -> KeyedLog.home(state, key) == home).toArray(String[]::new));
    PartlogScanBuilder builder = reads().builder();
    assertEquals(1, builder.pushPredicates(new Predicate[] {ofOne}).length);
    assertEquals(List.of(home), Reads.splits((PartlogScan) builder.build()).stream().map(Split::partition).distinct().toList());
    PartlogScan scan = reads().scan();
    scan.filter(new Predicate[] {ofOne});
    assertEquals(List.of(home), Reads.splits(scan).stream().map(Split::partition).distinct().toList());
  }

  /** Where the other side of a join has nearly all keys, a test of each record would cost more than it spares. */
  @Test
  void aFilterAtRunTimeThatLeavesOutLittleIsGivenUpAndOthersAreNot() throws IOException {
    log.write("t", Map.of("partitions", "1"), 1000, KeyedLog.routed(2_000));
    List<Row> all = read(reads().scan().toBatch());
    Predicate most = amongKeys(1, 50);
    Predicate few = amongKeys(0, 10);
    PartlogScan scan = reads().scan();
    scan.filter(new Predicate[] {most});
    List<Row> found = read(scan.toBatch());
    assertEquals(meeting(all, most), meeting(found, most));
    assertTrue(found.size() > meeting(all, most).size() && found.size() < all.size(), found.size() + " records");
    scan.filter(new Predicate[] {few});
    assertEquals(meeting(all, few).size(), read(scan.toBatch()).size());
    PartlogScanBuilder builder = reads().builder();
    assertEquals(0, builder.pushPredicates(new Predicate[] {most}).length);
    assertEquals(meeting(all, most).size(), read(((PartlogScan) builder.build()).toBatch()).size());
  }
}
