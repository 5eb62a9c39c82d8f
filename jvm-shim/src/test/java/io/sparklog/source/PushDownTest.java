package io.sparklog.source;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.read.Split;
import io.sparklog.read.Times;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.aggregate.Sum;
import org.apache.spark.sql.connector.expressions.filter.AlwaysFalse;
import org.apache.spark.sql.connector.expressions.filter.And;
import org.apache.spark.sql.connector.expressions.filter.Not;
import org.apache.spark.sql.connector.expressions.filter.Or;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The source takes over parts of a query: it reads less, and gives the same. */
final class PushDownTest {
  @TempDir
  Path root;
  private WrittenTopic one;
  private WrittenTopic two;

  /** Two topics whose segments are large enough to be looked into. */
  @BeforeEach
  void write() throws IOException {
    one = new WrittenTopic(root, "one").segment(0, WrittenTopic.times(60, 70))
        .segment(1, 30, 1, 40)
        .commit()
        .segment(0, WrittenTopic.times(50, 80))
        .commit();
    two = new WrittenTopic(root, "two").with("message.timestamp.type", "LogAppendTime")
        .segment(0, WrittenTopic.times(60, 60))
        .segment(2, 3)
        .commit();
  }

  /** All records as a read gives them: the times of topic two are those of its batches. */
  private List<WrittenTopic.Row> rows() throws IOException {
    return Reads.of(root).rows();
  }

  private static Expression column(String name) {
    return Expressions.column(name);
  }

  private static LiteralValue<?> literal(String column, long value) {
    return switch (column) {
      case "topic" ->
        new LiteralValue<>(UTF8String.fromString(value % 3 == 0 ? "one" : value % 3 == 1 ? "two" : "three"), DataTypes.StringType);
      case "partition" -> new LiteralValue<>((int) value, DataTypes.IntegerType);
      case "offset" -> new LiteralValue<>(value, DataTypes.LongType);
      default -> new LiteralValue<>(value, DataTypes.TimestampType);
    };
  }

  private record Said(Predicate predicate, java.util.function.Predicate<WrittenTopic.Row> meets) {}

  private static Said comparison(String column, String name, long value, boolean turned) {
    LiteralValue<?> literal = literal(column, value);
    Expression[] operands = turned ? new Expression[] {literal, column(column)} : new Expression[] {column(column), literal};
    java.util.function.Predicate<WrittenTopic.Row> meets = row -> {
      int sign = compare(row, column, literal);
      return switch (name) {
        case "=", "<=>" -> sign == 0;
        case "<>" -> sign != 0;
        case "<" -> turned ? sign > 0 : sign < 0;
        case "<=" -> turned ? sign >= 0 : sign <= 0;
        case ">" -> turned ? sign < 0 : sign > 0;
        default -> turned ? sign <= 0 : sign >= 0;
      };
    };
    return new Said(new Predicate(name, operands), meets);
  }

  private static int compare(WrittenTopic.Row row, String column, LiteralValue<?> literal) {
    return switch (column) {
      case "topic" -> row.topic().compareTo(literal.value().toString());
      case "partition" -> Long.compare(row.partition(), ((Number) literal.value()).longValue());
      case "offset" -> Long.compare(row.offset(), ((Number) literal.value()).longValue());
      default -> Long.compare(row.timestampMs() * 1000, ((Number) literal.value()).longValue());
    };
  }

  private static long value(String column, Random random) {
    return switch (column) {
      case "partition", "topic" -> random.nextInt(4);
      case "offset" -> random.nextInt(12) == 0 ? Long.MIN_VALUE + random.nextInt(2) : random.nextInt(8300);
      // Also between two milliseconds.
      default -> 1000 * WrittenTopic.time(random.nextInt(8300)) + random.nextInt(3) - 1;
    };
  }

  private static Said any(Random random, int depth) {
    int kind = depth == 0 ? random.nextInt(3) : random.nextInt(7);
    String[] columns = {"topic", "partition", "offset", "timestamp", "offset", "timestamp"};
    String column = columns[random.nextInt(columns.length)];
    if (kind < 2) {
      String[] names = column.equals("topic") ? new String[] {"=", "<=>", "<>"} : new String[] {"=", "<=>", "<>", "<", "<=", ">", ">="};
      return comparison(column, names[random.nextInt(names.length)], value(column, random), random.nextBoolean());
    }
    if (kind == 2) {
      List<Said> members = new ArrayList<>();
      int count = 1 + random.nextInt(random.nextInt(5) == 0 ? 60 : 4);
      for (int i = 0; i < count; i++) {
        members.add(comparison(column, "=", value(column, random), false));
      }
      List<Expression> operands = new ArrayList<>(List.of(column(column)));
      members.forEach(member -> operands.add(member.predicate.children()[1]));
      return new Said(new Predicate("IN", operands.toArray(Expression[]::new)),
          row -> members.stream().anyMatch(member -> member.meets.test(row)));
    }
    Said left = any(random, depth - 1);
    if (kind == 3) {
      return new Said(new Not(left.predicate), left.meets.negate());
    }
    Said right = any(random, depth - 1);
    return kind % 2 == 0
        ? new Said(new And(left.predicate, right.predicate), left.meets.and(right.meets))
        : new Said(new Or(left.predicate, right.predicate), left.meets.or(right.meets));
  }

  @Test
  void predicatesGiveWhatTheySay() throws IOException {
    long seed = Seed.draw();
    System.out.println("seed " + seed);
    Random random = new Random(seed);
    List<WrittenTopic.Row> rows = rows();
    for (int i = 0; i < Seed.either(24, 60); i++) {
      Said said = any(random, 3);
      Reads reads = random.nextInt(3) == 0 ? Reads.of(root, "minPartitions", "11") : Reads.of(root);
      PartlogScanBuilder builder = reads.builder();
      assertEquals(0, builder.pushPredicates(new Predicate[] {said.predicate}).length, () -> "not taken: " + said.predicate);
      assertArrayEquals(new Predicate[] {said.predicate}, builder.pushedPredicates());
      List<WrittenTopic.Row> expected = rows.stream().filter(said.meets).toList();
      PartlogScan scan = (PartlogScan) builder.build();
      Reads.assertRows(expected, Reads.rows(scan), "seed " + seed + ": " + said.predicate);
      assertTrue(scan.estimateStatistics().numRows().orElseThrow() >= expected.size());
      if (builder.pushAggregation(aggregation(new Expression[0], new CountStar()))) {
        assertCount(expected.size(), Arrays.asList(((LocalScan) builder.build()).rows()), 0, "seed " + seed + ": " + said.predicate);
      }
      if (i % 4 > 0) {
        continue;
      }
      Predicate unknown = new Predicate("STARTS_WITH", new Expression[] {column("topic"), literal("topic", 0)});
      // A predicate that is not understood is left to Spark, and must not cost a record that Spark would keep.
      for (Predicate predicate : List.of(new And(unknown, said.predicate), new Or(said.predicate, unknown))) {
        PartlogScanBuilder partly = reads.builder();
        assertArrayEquals(new Predicate[] {predicate}, partly.pushPredicates(new Predicate[] {predicate}));
        Reads.assertRows(predicate instanceof And ? expected : rows, Reads.rows((PartlogScan) partly.build()),
            "seed " + seed + ": " + predicate);
      }
    }
  }

  /** Without files, and so with many more predicates; {@code make soak} takes 400,000. */
  @Test
  void predicatesAreTakenOverAsSqlMeansThem() {
    long seed = Seed.draw();
    System.out.println("seed " + seed);
    System.out.println(RandomPredicates.compared(seed, Seed.either(1_000, 3_000)));
  }

  @Test
  void whatIsNotUnderstoodIsLeftToSpark() {
    LiteralValue<?> five = literal("offset", 5);
    List<Predicate> others = List.of(
        new Predicate("=", new Expression[] {column("value"), new LiteralValue<>(new byte[] {1}, DataTypes.BinaryType)}),
        new Predicate("<>", new Expression[] {column("key"), new LiteralValue<>(new byte[] {1}, DataTypes.BinaryType)}),
        new Predicate("=", new Expression[] {column("offset"), new LiteralValue<Long>(null, DataTypes.LongType)}),
        new Predicate("IN", new Expression[] {column("offset"), five, new LiteralValue<Long>(null, DataTypes.LongType)}),
        new Predicate("=", new Expression[] {column("partition"), five}),
        new Predicate("=", new Expression[] {column("offset"), column("offset")}),
        new Predicate("<", new Expression[] {column("topic"), literal("topic", 1)}),
        new Predicate("IS_NOT_NULL", new Expression[] {column("value")}));
    PartlogScanBuilder builder = Reads.of(root).builder();
    Predicate mine = new Predicate(">", new Expression[] {column("offset"), five});
    List<Predicate> all = new ArrayList<>(others);
    all.add(mine);
    assertArrayEquals(others.toArray(), builder.pushPredicates(all.toArray(Predicate[]::new)));
    assertArrayEquals(new Predicate[] {mine}, builder.pushedPredicates());
    assertFalse(builder.pushAggregation(aggregation(new Expression[0], new Sum(column("offset"), false))));
    assertTrue(builder.build().description().endsWith(", filters: offset > 5"), builder.build().description());
  }

  private long bytesToRead(Said... said) {
    PartlogScanBuilder builder = Reads.of(root).builder();
    builder.pushPredicates(Arrays.stream(said).map(Said::predicate).toArray(Predicate[]::new));
    return Reads.splits((PartlogScan) builder.build()).stream().mapToLong(Split::bytesToRead).sum();
  }

  @Test
  void lessIsRead() {
    long whole = bytesToRead();
    assertEquals(0, bytesToRead(comparison("topic", "=", 2, false)));
    assertEquals(0, bytesToRead(new Said(new AlwaysFalse(), row -> false)));
    assertTrue(bytesToRead(comparison("partition", "=", 1, false)) < whole / 50);
    assertTrue(bytesToRead(comparison("topic", "=", 0, false), comparison("offset", ">=", 8000, false)) < whole / 20);
    assertTrue(bytesToRead(comparison("topic", "=", 0, false), comparison("offset", "=", 100, false)) < whole / 50);
    // Times rise with offsets: of the segments by their bounds, and of batches by the greatest time in their headers.
    assertTrue(
        bytesToRead(comparison("topic", "=", 0, false), comparison("timestamp", ">=", 1000 * WrittenTopic.time(8000), false)) < whole / 20);
    assertTrue(
        bytesToRead(comparison("topic", "=", 1, false), comparison("timestamp", "<", 1000 * WrittenTopic.time(100), false)) < whole / 20);
  }

  @Test
  void tasksStopAtTheLimit() throws IOException {
    PartlogScanBuilder builder = Reads.of(root, "subscribe", "one").builder();
    builder.pushPredicates(new Predicate[] {comparison("timestamp", "<>", 1000 * WrittenTopic.time(3), false).predicate});
    assertTrue(builder.pushLimit(75) && builder.isPartiallyPushed());
    PartlogScan scan = (PartlogScan) builder.build();
    List<WrittenTopic.Row> expected = new ArrayList<>(one.rows(0, 0, 76));
    expected.addAll(one.rows(1, 0, 71));
    expected.removeIf(row -> row.offset() == 3);
    Reads.assertRows(expected, Reads.rows(scan), "the first 75 of each partition");
    assertTrue(scan.description().endsWith(", limit: 75"), scan.description());
  }

  private static Aggregation aggregation(Expression[] groups, AggregateFunc... functions) {
    return new Aggregation(functions, groups);
  }

  /** That Spark gets the number of records when it adds up a column, and 1 (or 0) when it does so for DISTINCT. */
  private static void assertCount(long records, List<InternalRow> rows, int column, String message) {
    assertEquals(records, rows.stream().mapToLong(row -> row.getLong(column)).sum(), message);
    assertEquals(Math.min(records, 1), rows.stream().mapToLong(row -> row.getLong(column)).distinct().sum(), message);
  }

  /** The rows of each group, which is what their first columns have; no query is known here, so they are for Spark to add up. */
  private static List<List<InternalRow>> counted(PartlogScanBuilder builder, Expression[] groups, AggregateFunc... functions) {
    assertFalse(builder.supportCompletePushDown(aggregation(groups, functions)), "count(*) may be count(DISTINCT 1)");
    assertTrue(builder.pushAggregation(aggregation(groups, functions)));
    InternalRow[] rows = assertInstanceOf(LocalScan.class, builder.build()).rows();
    assertEquals(0, rows.length % 3);
    List<List<InternalRow>> counted = new ArrayList<>();
    for (int row = 0; row < rows.length; row += 3) {
      counted.add(List.of(rows).subList(row, row + 3));
    }
    return counted;
  }

  @Test
  void countsAndBoundsComeFromTheState() throws IOException {
    for (WrittenTopic topic : List.of(one, two)) {
      Files.delete(topic.dataFile(0, 0));
    }
    AggregateFunc[] functions = {new CountStar(), new Min(column("offset")), new Max(column("offset")), new Max(column("partition")),
        new Min(column("topic")), new Count(column("topic"), false)};
    List<InternalRow> all = counted(Reads.of(root).builder(), new Expression[0], functions).get(0);
    assertCount(11_874, all, 0, "count(*)");
    assertCount(11_874, all, 5, "count(topic)");
    for (InternalRow row : all) {
      assertEquals(0, row.getLong(1));
      assertEquals(8199, row.getLong(2));
      assertEquals(2, row.getInt(3));
      assertEquals("one", row.getUTF8String(4).toString());
    }

    PartlogScanBuilder some = Reads.of(root, "subscribe", "one").builder();
    some.pushPredicates(
        new Predicate[] {new Not(comparison("offset", "<", 7, false).predicate), comparison("offset", "<>", 10, false).predicate});
    List<List<InternalRow>> groups = counted(some, new Expression[] {column("partition")}, functions);
    assertEquals(2, groups.size());
    for (int partition = 0; partition < 2; partition++) {
      assertCount(List.of(8200L - 8, 71L - 8).get(partition), groups.get(partition), 1, "count(*)");
      for (InternalRow row : groups.get(partition)) {
        assertEquals(partition, row.getInt(0));
        assertEquals(7, row.getLong(2));
        assertEquals(List.of(8199L, 70L).get(partition), row.getLong(3));
      }
    }

    PartlogScanBuilder none = Reads.of(root).builder();
    none.pushPredicates(new Predicate[] {comparison("offset", ">", 9000, false).predicate});
    List<InternalRow> empty = counted(none, new Expression[0], functions).get(0);
    assertCount(0, empty, 0, "count(*)");
    assertTrue(empty.stream().allMatch(row -> row.isNullAt(2) && row.isNullAt(4)));
    assertEquals(List.of(), counted(none, new Expression[] {column("topic")}, functions));
  }

  /** One record, and two: the parts of a small number are small too. */
  @Test
  void aCountOfFewRecordsIsRightForDistinctToo() throws IOException {
    for (long records = 1; records < 4; records++) {
      PartlogScanBuilder few = Reads.of(root, "subscribe", "one").builder();
      few.pushPredicates(
          new Predicate[] {comparison("partition", "=", 0, false).predicate, comparison("offset", "<", records, false).predicate});
      assertCount(records, counted(few, new Expression[0], new CountStar()).get(0), 0, records + " records");
    }
  }

  /** Nothing but a count can have lost a word. */
  @Test
  void boundsNeedNoMoreWork() {
    PartlogScanBuilder builder = Reads.of(root).builder();
    Aggregation bounds = aggregation(new Expression[] {column("topic")}, new Min(column("offset")), new Count(column("topic"), false));
    assertTrue(builder.supportCompletePushDown(bounds) && builder.pushAggregation(bounds));
    assertEquals(2, assertInstanceOf(LocalScan.class, builder.build()).rows().length);
  }

  @Test
  void otherAggregatesAreLeftToSpark() {
    PartlogScanBuilder builder = Reads.of(root).builder();
    assertFalse(builder.pushAggregation(aggregation(new Expression[0], new Count(column("value"), false))));
    assertFalse(builder.pushAggregation(aggregation(new Expression[0], new Count(column("partition"), true))));
    assertFalse(builder.pushAggregation(aggregation(new Expression[0], new Max(column("timestamp")))));
    assertFalse(builder.pushAggregation(aggregation(new Expression[] {column("offset")}, new CountStar())));
    builder.pushPredicates(new Predicate[] {comparison("timestamp", ">", 5, false).predicate});
    assertFalse(builder.pushAggregation(aggregation(new Expression[0], new CountStar())));
    assertInstanceOf(PartlogScan.class, builder.build());
  }

  @Test
  void partitionsAndOrderAreReported() {
    PartlogScan single = Reads.of(root, "subscribe", "one", "minPartitions", "5").scan();
    KeyGroupedPartitioning keys = assertInstanceOf(KeyGroupedPartitioning.class, single.outputPartitioning());
    assertEquals("[identity(partition)]", Arrays.toString(keys.keys()));
    assertEquals(2, keys.numPartitions());
    assertEquals("[partition ASC NULLS FIRST, offset ASC NULLS FIRST]", Arrays.toString(single.outputOrdering()));
    assertTrue(Arrays.stream(single.toBatch().planInputPartitions())
        .map(PartlogReaderFactory.PartlogInputPartition.Grouped.class::cast)
        .allMatch(part -> part.partitionKey().getInt(0) == part.splits().get(0).partition()));

    PartlogScan several = Reads.of(root).scan();
    keys = assertInstanceOf(KeyGroupedPartitioning.class, several.outputPartitioning());
    assertEquals("[identity(topic), identity(partition)]", Arrays.toString(keys.keys()));
    assertEquals(4, keys.numPartitions());
    assertTrue(Arrays.stream(several.toBatch().planInputPartitions())
        .map(PartlogReaderFactory.PartlogInputPartition.Grouped.class::cast)
        .allMatch(part -> part.partitionKey().getUTF8String(0).toString().equals(part.splits().get(0).topic())));
  }

  @Test
  void equalReadsAreKnownToBeEqual() throws IOException {
    Predicate five = comparison("offset", ">", 5, false).predicate;
    List<PartlogScan> scans = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      scans.add(Reads.of(root, "topic", "one").scan());
      scans.add(Reads.of(root, "subscribe", "one", "startingOffsets", one.json(1, 0, 0)).scan());
      PartlogScanBuilder filtered = Reads.of(root, "subscribe", "one").builder();
      filtered.pushPredicates(new Predicate[] {five});
      scans.add((PartlogScan) filtered.build());
      PartlogScanBuilder limited = Reads.of(root, "subscribe", "one").builder();
      limited.pushLimit(3);
      scans.add((PartlogScan) limited.build());
      PartlogScanBuilder pruned = Reads.of(root, "subscribe", "one").builder();
      pruned.pruneColumns(new StructType().add("offset", DataTypes.LongType));
      scans.add((PartlogScan) pruned.build());
    }
    for (int i = 0; i < 10; i++) {
      for (int j = 0; j < 10; j++) {
        assertEquals(i % 5 == j % 5, scans.get(i).equals(scans.get(j)), i + " and " + j);
      }
    }
    one.segment(0, 1).commit();
    assertFalse(scans.get(0).equals(Reads.of(root, "topic", "one").scan()), "another snapshot");
  }
}
