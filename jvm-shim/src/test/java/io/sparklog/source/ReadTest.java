package io.sparklog.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan.ColumnarSupportMode;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The rows that a read gives for its options. */
final class ReadTest {
  @TempDir
  Path root;

  private WrittenTopic topic() throws IOException {
    return new WrittenTopic(root, "t").segment(0, 3, 4, 1, 5).segment(1, 2).segment(0, 6).commit().segment(0, 1).segment(1, 7, 7).commit();
  }

  private PartlogException refused(Reads reads) {
    PartlogException error = assertThrows(PartlogException.class, () -> reads.scan().toBatch().planInputPartitions());
    assertInstanceOf(SparkThrowable.class, error);
    return error;
  }

  @ParameterizedTest
  @ValueSource(strings = {"none", "gzip", "snappy", "lz4", "zstd"})
  void givesAllRecords(String codec) throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").with("compression.type", codec)
        .segment(0, 50, 500)
        .segment(2, 700)
        .commit()
        .segment(0, 1)
        .commit();
    assertEquals(topic.allRows(), Reads.of(root, "subscribe", "t").rows());
  }

  @Test
  void givesEveryRangeOfOffsets() throws IOException {
    WrittenTopic topic = topic();
    for (int start = 0; start <= 20; start++) {
      for (int end = start; end <= 20; end++) {
        Reads reads = Reads.of(root, "subscribe", "t", "startingOffsets", topic.json(start, -2, 0), "endingOffsets",
            topic.json(end, 2, -1));
        List<WrittenTopic.Row> expected = new ArrayList<>(topic.rows(0, start, end));
        expected.addAll(topic.rows(1, 0, 2));
        assertEquals(expected, reads.rows(), start + " to " + end);
      }
    }
  }

  @Test
  void givesAnyColumns() throws IOException {
    WrittenTopic topic = topic();
    StructType all = Reads.of(root).builder().build().readSchema();
    assertEquals("key,value,topic,partition,offset,timestamp,timestampType,headers", String.join(",", all.fieldNames()));
    for (String name : all.fieldNames()) {
      PartlogScanBuilder builder = Reads.of(root).builder();
      builder.pruneColumns(new StructType().add(all.apply(name)));
      List<WrittenTopic.Row> found = Reads.rows((PartlogScan) builder.build());
      List<WrittenTopic.Row> expected = topic.allRows().stream().map(row -> only(name, row)).toList();
      assertEquals(expected, found, name);
    }
    PartlogScanBuilder counting = Reads.of(root).builder();
    counting.pruneColumns(new StructType());
    assertEquals(topic.allRows().size(), Reads.rows((PartlogScan) counting.build()).size());
    assertEquals(ColumnarSupportMode.SUPPORTED, Reads.of(root).scan().columnarSupportMode());
  }

  private static WrittenTopic.Row only(String name, WrittenTopic.Row row) {
    return new WrittenTopic.Row(name.equals("topic") ? row.topic() : null, name.equals("partition") ? row.partition() : -1,
        name.equals("offset") ? row.offset() : -1, name.equals("timestamp") ? row.timestampMs() : -1, name.equals("key") ? row.key() : null,
        name.equals("value") ? row.value() : null, name.equals("headers") ? row.headers() : null);
  }

  @Test
  void leavesHeadersOutOnRequest() throws IOException {
    WrittenTopic topic = topic();
    Reads reads = Reads.of(root, "subscribe", "t", "includeHeaders", "false");
    assertEquals(7, reads.scan().readSchema().length());
    assertEquals(topic.allRows().size(), reads.rows().size());
  }

  @Test
  void givesTheTimeOfAppending() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").with("message.timestamp.type", "LogAppendTime").segment(0, 9).commit();
    long greatest = topic.rows.get(0).stream().mapToLong(WrittenTopic.Row::timestampMs).max().orElseThrow();
    assertEquals(List.of(greatest), Reads.of(root).rows().stream().map(WrittenTopic.Row::timestampMs).distinct().toList());
  }

  @Test
  void findsTopicsByNamePatternAndAssignment() throws IOException {
    WrittenTopic orders = new WrittenTopic(root, "orders").segment(0, 3).segment(1, 2).commit();
    WrittenTopic refunds = new WrittenTopic(root, "refunds").segment(0, 1).segment(2, 4).commit();
    List<WrittenTopic.Row> both = new ArrayList<>(orders.allRows());
    both.addAll(refunds.allRows());
    assertEquals(both, Reads.of(root).rows());
    assertEquals(both, Reads.of(root, "subscribe", "refunds, orders,orders").rows());
    assertEquals(refunds.allRows(), Reads.of(root, "topic", "refunds").rows());
    assertEquals(refunds.allRows(), Reads.of(root, "subscribePattern", "r.*").rows());
    assertEquals(List.of(), Reads.of(root, "subscribePattern", "fund").rows(), "the whole name must match");
    assertEquals(refunds.rows(2, 0, 4), Reads.of(root, "assign", "{\"refunds\":[2]}").rows());
    assertEquals(orders.rows(1, 1, 2),
        Reads
            .of(root, "assign", "{\"orders\":[1]}", "startingOffsets", "{\"orders\":{\"1\":1}}", "endingOffsets", "{\"orders\":{\"1\":-1}}")
            .rows());
  }

  @Test
  void sharesReadEachPartitionOnce() throws IOException {
    WrittenTopic orders = new WrittenTopic(root, "orders").segment(0, 3).segment(1, 2).commit();
    WrittenTopic refunds = new WrittenTopic(root, "refunds").segment(0, 1).segment(2, 4).commit();
    List<WrittenTopic.Row> second = new ArrayList<>(orders.rows.get(1));
    second.addAll(refunds.rows.get(1));
    assertEquals(second, Reads.of(root, "share", "2/2").rows());
    for (int parts : new int[] {1, 2, 3, 7}) {
      List<WrittenTopic.Row> found = new ArrayList<>();
      for (int place = 1; place <= parts; place++) {
        found.addAll(Reads.of(root, "share", place + "/" + parts).rows());
      }
      assertEquals(orders.allRows().size() + refunds.allRows().size(), found.size());
      assertEquals(Set.copyOf(Reads.of(root).rows()), Set.copyOf(found));
    }
    PartlogException error = assertThrows(PartlogException.class,
        () -> Reads.of(root, "assign", "{\"orders\":[1]}", "share", "1/2").rows());
    assertEquals("OPTION_CONFLICT", error.id());
  }

  @Test
  void refusesWhatIsNotThere() throws IOException {
    assertEquals("ROOT_NOT_FOUND", refused(Reads.of(root.resolve("none"), "subscribe", "t")).id());
    assertEquals("ROOT_WITHOUT_LOG", refused(Reads.of(root)).id(), "a directory that nobody made a root");
    assertEquals("ROOT_WITHOUT_LOG", refused(Reads.of(root, "subscribe", "t")).id());
    Files.writeString(root.resolve("file"), "");
    assertEquals("ROOT_NOT_A_DIRECTORY", refused(Reads.of(root.resolve("file"), "subscribe", "t")).id());
    topic();
    PartlogException error = refused(Reads.of(root, "subscribe", "t,u"));
    assertEquals("TOPIC_NOT_FOUND", error.id());
    assertEquals("t", error.parameters().get("topics"));
    assertEquals("TOPIC_NAME_ILLEGAL", refused(Reads.of(root, "subscribe", "../t")).id());
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {"assign          | {\"t\":[0,3]}                          | PARTITION_NOT_FOUND",
      "assign          | {\"t\":[0,-1]}                         | OPTION_VALUE",
      "assign          | {\"t\":[]}                             | OPTION_VALUE",
      "assign          | {\"t\":0}                              | OPTION_VALUE",
      "assign          | {\"t\":[0],\"t\":[1]}                  | OPTION_VALUE",
      "assign          | {\"t\":[0]                             | OPTION_VALUE",
      "assign          | {\"u\":[0]}                            | TOPIC_NOT_FOUND",
      "share           | 0/2                                    | OPTION_VALUE",
      "share           | 3/2                                    | OPTION_VALUE",
      "share           | 1/0                                    | OPTION_VALUE",
      "share           | two                                    | OPTION_VALUE",
      "startingOffsets | {\"t\":{\"0\":0,\"1\":0}}              | OPTION_VALUE",
      "startingOffsets | {\"t\":{\"0\":0,\"1\":0,\"2\":0,\"3\":0}} | PARTITION_NOT_FOUND",
      "startingOffsets | {\"t\":{\"0\":0,\"1\":0,\"2\":0},\"u\":{\"0\":1}} | OPTION_VALUE",
      "startingOffsets | {\"t\":{\"0\":-1,\"1\":0,\"2\":0}}     | OPTION_VALUE",
      "startingOffsets | {\"t\":{\"0\":-3,\"1\":0,\"2\":0}}     | OPTION_VALUE",
      "startingOffsets | {\"t\":{\"0\":1.5,\"1\":0,\"2\":0}}    | OPTION_VALUE",
      "startingOffsets | {\"t\":{\"x\":1,\"1\":0,\"2\":0}}      | OPTION_VALUE",
      "startingOffsets | latest                                 | OPTION_VALUE",
      "startingOffsets | {\"t\":{\"0\":21,\"1\":0,\"2\":0}}     | OFFSETS_OUT_OF_RANGE",
      "endingOffsets   | {\"t\":{\"0\":21,\"1\":0,\"2\":0}}     | OFFSETS_OUT_OF_RANGE",
      "endingOffsets   | {\"t\":{\"0\":-2,\"1\":0,\"2\":0}}     | OPTION_VALUE",
      "endingOffsets   | earliest                               | OPTION_VALUE",
      "startingTimestamp | 9000000                              | TIMESTAMP_NOT_FOUND",
      "startingOffsetsByTimestamp | {\"t\":{\"0\":-1,\"1\":0,\"2\":0}} | OPTION_VALUE",})
  void refusesOptions(String option, String value, String id) throws IOException {
    topic();
    Reads reads = option.equals("assign") ? Reads.of(root) : Reads.of(root, "subscribe", "t");
    PartlogException error = assertThrows(PartlogException.class, () -> reads.with(option, value).scan().toBatch().planInputPartitions());
    assertEquals(id, error.id(), error.getMessage());
    if (id.startsWith("O")) {
      assertEquals(option, error.parameters().get("option"));
    }
  }

  @Test
  void readsNothingBackwards() throws IOException {
    WrittenTopic topic = topic();
    Reads reads = Reads.of(root, "subscribe", "t", "startingOffsets", topic.json(5, 0, 0), "endingOffsets", topic.json(4, -1, -1));
    PartlogException error = refused(reads);
    assertEquals("OFFSETS_BACKWARDS", error.id());
    assertEquals(
        "[PARTLOG_OFFSETS_BACKWARDS] The read of topic t, partition 0 under " + root
            + " ends before it starts: `startingOffsets` gives offset 5, `endingOffsets` offset 4.",
        error.getMessage().substring(0, error.getMessage().indexOf(" Give")));
    assertEquals(topic.rows.get(1), reads.with("failOnDataLoss", "false").rows());
    assertEquals("OFFSETS_OUT_OF_RANGE",
        refused(Reads.of(root, "subscribe", "t", "startingOffsets", topic.json(21, 0, 0), "endingOffsets", topic.json(4, -1, -1))).id());
    Reads times = Reads.of(root, "assign", "{\"t\":[0]}", "startingTimestamp", "" + WrittenTopic.time(10), "endingTimestamp",
        "" + WrittenTopic.time(3));
    error = refused(times);
    assertEquals("OFFSETS_BACKWARDS", error.id());
    assertEquals(List.of("startingTimestamp", "endingTimestamp"),
        List.of(error.parameters().get("starting"), error.parameters().get("ending")));
    Reads late = Reads.of(root, "assign", "{\"t\":[0]}", "startingTimestamp", "9000000", "endingOffsets", "{\"t\":{\"0\":4}}");
    assertEquals(List.of(), late.with("startingOffsetsByTimestampStrategy", "latest").rows(),
        "a partition without such a time is read as nothing");
  }

  @Test
  void takesWhatIsThereWhenToldTo() throws IOException {
    WrittenTopic topic = topic();
    Reads reads = Reads.of(root, "subscribe", "t", "startingOffsets", topic.json(0, 100, 0), "endingOffsets", topic.json(1000, 1000, -1),
        "failOnDataLoss", "false");
    assertEquals(topic.rows.get(0), reads.rows());
    topic.expire(0);
    assertEquals("OFFSETS_OUT_OF_RANGE", refused(Reads.of(root, "subscribe", "t", "startingOffsets", topic.json(12, 0, 0))).id());
    assertEquals(topic.rows(0, 13, 20),
        Reads.of(root, "assign", "{\"t\":[0]}", "startingOffsets", "{\"t\":{\"0\":0}}", "failOnDataLoss", "false").rows());
    assertEquals(topic.rows(0, 13, 20), Reads.of(root, "assign", "{\"t\":[0]}").rows(), "earliest is the log start");
  }

  @Test
  void startsAndEndsByTime() throws IOException {
    WrittenTopic topic = topic();
    List<WrittenTopic.Row> rows = topic.rows.get(0);
    for (long time = WrittenTopic.time(0) - 600; time < WrittenTopic.time(19) + 700; time += 5) {
      long wanted = time;
      int first = (int) rows.stream().takeWhile(row -> row.timestampMs() < wanted).count();
      Reads starting = Reads.of(root, "assign", "{\"t\":[0]}", "startingTimestamp", Long.toString(time));
      if (first == rows.size()) {
        assertEquals("TIMESTAMP_NOT_FOUND", refused(starting).id());
        starting.with("startingOffsetsByTimestampStrategy", "latest");
      }
      assertEquals(rows.subList(first, rows.size()), starting.rows(), "from " + time);
      Reads ending = Reads.of(root, "assign", "{\"t\":[0]}", "endingOffsetsByTimestamp", "{\"t\":{\"0\":" + time + "}}");
      assertEquals(rows.subList(0, first), ending.rows(), "to " + time);
    }
  }

  @Test
  void takesOneTimeBeforeTimesBeforeOffsets() throws IOException {
    WrittenTopic topic = topic();
    Reads reads = Reads.of(root, "subscribe", "t", "startingOffsets", topic.json(20, 16, 0), "startingOffsetsByTimestampStrategy",
        "latest");
    assertEquals(0, reads.rows().size());
    reads.with("startingOffsetsByTimestamp", topic.json(0, 9_000_000, 0));
    assertEquals(topic.rows.get(0), reads.rows());
    reads.with("startingTimestamp", "9000000");
    assertEquals(0, reads.rows().size());
  }

  @Test
  void readsOneSnapshot() throws IOException {
    WrittenTopic topic = topic();
    List<WrittenTopic.Row> before = List.copyOf(topic.allRows());
    PartlogScan scan = Reads.of(root).scan();
    assertEquals(before.size(), scan.estimateStatistics().numRows().orElseThrow());
    topic.segment(0, 5).commit();
    assertEquals(before, Reads.rows(scan));
    assertTrue(scan.estimateStatistics().sizeInBytes().orElseThrow() > before.size() * 40L);
  }

  /** Compaction leaves gaps, whose offsets stay used. */
  @Test
  void givesWhatIsThereWhereOffsetsHaveGaps() throws IOException {
    WrittenTopic topic = topic();
    topic.tiled(0, 100, topic.gappyBatch(0, 20, 3, 9), topic.gappyBatch(0, 30, 2, 29), topic.gappyBatch(0, 60, 4, 39));
    List<WrittenTopic.Row> rows = topic.rows.get(0);
    assertEquals(29, rows.size());
    for (String splits : List.of("1", "4")) {
      for (int start = 0; start <= 100; start += Seed.either(7, 3)) {
        for (int end = start; end <= 100; end += Seed.either(3, 2)) {
          int from = start;
          int to = end;
          Reads reads = Reads.of(root, "assign", "{\"t\":[0]}", "startingOffsets", "{\"t\":{\"0\":" + start + "}}", "endingOffsets",
              "{\"t\":{\"0\":" + end + "}}");
          List<WrittenTopic.Row> expected = rows.stream().filter(row -> row.offset() >= from && row.offset() < to).toList();
          Reads.assertRows(expected, reads.with("minPartitions", splits).rows(), start + " to " + end);
          assertEquals(expected.stream().map(WrittenTopic.Row::offset).toList(), reads.offsets(), start + " to " + end);
        }
      }
    }
    Reads.assertRows(rows, Reads.of(root, "assign", "{\"t\":[0]}", "maxRecordsPerPartition", "7").rows(), "splits of 7");
    PartlogScanBuilder counting = Reads.of(root).builder();
    assertFalse(counting.pushAggregation(new Aggregation(new AggregateFunc[] {new CountStar()}, new Expression[0])),
        "offsets do not give a count");
    Reads timed = Reads.of(root, "assign", "{\"t\":[0]}", "startingTimestamp", Long.toString(WrittenTopic.time(41)));
    Reads.assertRows(rows.subList(25, 29), timed.rows(), "offsets without a record have no time");
  }

  @Test
  void saysWhatItReads() throws IOException {
    topic();
    assertEquals("partlog[subscribe=t] " + root, Reads.of(root, "topic", "t").scan().description());
    assertEquals("partlog[all topics] " + root, Reads.of(root).scan().description());
  }

  /** As imported records may have them; a version can only say -1 of such a segment. */
  @Test
  void timesBeforeMinusOneAreFound() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").with("partitions", "1");
    topic.times = offset -> offset % 3 == 0 ? -5000 - offset : offset % 3 == 1 ? -1 : 7;
    topic.segment(0, 6);
    topic.times = offset -> -100;
    topic.segment(0, 2).commit();
    assertEquals(List.of(3L), at("=", -5003));
    assertEquals(List.of(0L, 3L), at("<", -1000));
    assertEquals(List.of(1L, 4L), at("=", -1));
    assertEquals(List.of(1L, 2L, 4L, 5L), at(">=", -1));
    assertEquals(List.of(6L, 7L), at("=", -100));
    assertEquals(List.of(0L, 1L, 3L, 4L, 6L, 7L), at("<=", -1));
  }

  private List<Long> at(String comparison, long ms) throws IOException {
    PartlogScanBuilder builder = Reads.of(root, "subscribe", "t").builder();
    builder.pushPredicates(new Predicate[] {new Predicate(comparison,
        new Expression[] {Expressions.column("timestamp"), new LiteralValue<>(1000 * ms, DataTypes.TimestampType)})});
    return Reads.rows((PartlogScan) builder.build()).stream().map(WrittenTopic.Row::offset).toList();
  }
}
