package io.sparklog.catalog;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.LogTool;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.OpenRoots;
import io.sparklog.log.Root;
import io.sparklog.spark.PartlogSparkException;
import io.sparklog.spec.Signature;
import io.sparklog.storage.FarStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Procedures as Spark calls them, without a session. */
final class ProceduresTest {
  @TempDir
  Path root;

  private void append(String topic) throws Exception {
    LogTool.main(new String[] {"append", "root=" + root, "topic=" + topic, "records=10", "tasks=1", "partitions=2"});
  }

  /** Text and maps become Spark's; the root comes first by itself, and what is left out at the end has its default. */
  private List<List<Object>> call(String procedure, Object... arguments) {
    List<Signature.Parameter> declared = Signature.all()
        .stream()
        .filter(each -> each.name().equals(procedure))
        .findFirst()
        .orElseThrow()
        .parameters();
    Object[] given = declared.stream().map(each -> "false".equals(each.defaultValue()) ? false : null).toArray();
    given[0] = UTF8String.fromString(root.toString());
    for (int i = 0; i < arguments.length; i++) {
      given[i + 1] = sql(arguments[i]);
    }
    Scan answer = Procedures.named(procedure).orElseThrow().call(new GenericInternalRow(given)).next();
    List<List<Object>> rows = new ArrayList<>();
    for (InternalRow row : ((LocalScan) answer).rows()) {
      rows.add(
          Arrays.stream(((GenericInternalRow) row).values()).map(cell -> cell instanceof UTF8String ? cell.toString() : cell).toList());
    }
    return rows;
  }

  private static Object sql(Object argument) {
    if (argument instanceof Map<?, ?> map) {
      Object[] values = map.values().stream().map(ProceduresTest::sql).toArray();
      return ArrayBasedMapData.apply(map.keySet().stream().map(ProceduresTest::sql).toArray(), values);
    }
    if (argument instanceof List<?> list) {
      return new GenericArrayData(list.toArray());
    }
    return argument instanceof String text ? UTF8String.fromString(text) : argument;
  }

  private String refused(String condition, String procedure, Object... arguments) {
    PartlogSparkException error = assertThrows(PartlogSparkException.class, () -> call(procedure, arguments));
    assertEquals("PARTLOG_" + condition, error.getCondition(), error.getMessage());
    return error.getMessage();
  }

  @Test
  void theTopicsAndTheirSegments() throws Exception {
    append("a");
    append("a");
    append("b");
    List<List<Object>> topics = call("topics");
    assertEquals(List.of("a", "b"), topics.stream().map(row -> row.get(0)).toList());
    assertEquals(List.of(2, 20L), topics.get(0).subList(2, 4));
    List<List<Object>> segments = call("segments", "a");
    assertEquals(topics.get(0).get(4), (long) segments.size());
    assertEquals(20L, segments.stream().mapToLong(row -> (Long) row.get(4)).sum());
    assertEquals(topics.get(0).get(6), segments.stream().mapToLong(row -> (Long) row.get(6)).sum());
  }

  /** In a store behind a network: one listing, and each topic is asked for once, sixteen of them at once. */
  @Test
  @Timeout(300)
  void theTopicsAreLookedAtAtOnce() throws Exception {
    append("t0");
    int topics = 40;
    for (int n = 1; n < topics; n++) {
      WrittenTopic written = new WrittenTopic(root, "t" + n);
      written.segment(0, n).commit();
    }
    Files.createDirectory(root.resolve("_partlog/nothing"));
    FarStore far = new FarStore(root.toString(), 16);
    Root kept = OpenRoots.over(far.store());
    far.awaitAtOnce(16, "^listing ");
    assertEquals(topics, call("topics").size());
    List<String> asked = far.take();
    assertEquals(1, asked.stream().filter("list _partlog"::equals).count(), asked::toString);
    assertTrue(asked.size() <= 2 + 4 * topics + 2, asked::toString); // two listings, a version, and the absent one after it
    far.awaitAtOnce(16, "^read ");
    assertEquals(topics, call("topics").size());
    asked = far.take();
    assertTrue(asked.size() <= 2 + 2 * topics + 2, asked::toString);
    assertEquals(topics, kept.topics().size());
  }

  /** The topic that cannot be read is told, and the others are answered for. */
  @Test
  void aTopicThatCannotBeLookedAtKeepsNoneFromTheAnswer() throws Exception {
    append("a");
    append("b");
    Files.writeString(root.resolve("_partlog/a/00000000000000000000.json"), "{");
    Root kept = OpenRoots.over(new FarStore(root.toString(), 16).store());
    String error = refused("CALL_INCOMPLETE", "topics");
    assertTrue(error.contains("VERSION_CORRUPT") && error.contains("b"), error);
    assertEquals(2, kept.topics().size());
  }

  @Test
  void whatIsNotATopicIsRefused() throws Exception {
    append("a");
    assertTrue(refused("TOPIC_NOT_FOUND", "segments", "c").contains("Existing topics: a."));
    assertTrue(refused("TOPIC_NAME_ILLEGAL", "segments", "").contains("it is empty"));
    assertTrue(refused("ARGUMENT_VALUE", "segments", (Object) null)
        .contains("Argument `topic` of the procedure segments has the value NULL: it must have a value. "
            + "Call the procedure as segments(root, topic)."));
  }

  private long version(String topic) {
    return (Long) call("topics").stream().filter(row -> row.get(0).equals(topic)).findFirst().orElseThrow().get(9);
  }

  @Test
  void offsetsAreCheckedAsOptionsAre() throws Exception {
    append("a");
    for (String bad : List.of("", "  ")) {
      assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", bad, false).contains("it "));
    }
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "{\"0\":1", false).contains("it is not valid JSON"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "{\"0\":1} x", false).contains("it is not valid JSON"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "{\"0\":1,\"0\":2}", false)
        .contains("it is not valid JSON: the name 0 is there twice"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "{}", false).contains("it must be an object by partition"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "[1]", false).contains("it must be an object by partition"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "{\"a\":{\"0\":1}}", false).contains("\"a\" is not a partition number"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "{\"00\":1}", false).contains("\"00\" is not a partition number"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "{\"-1\":1}", false).contains("\"-1\" is not a partition number"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "{\"0\":1.5}", false).contains("1.5 for partition 0 is not an integer"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "{\"0\":\"1\"}", false).contains("is not an integer"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "{\"0\":null}", false).contains("is not an integer"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "{\"0\":9223372036854775808}", false).contains("is not an integer"));
    assertTrue(refused("PARTITION_NOT_FOUND", "delete_records", "a", "{\"2\":0}", false).contains("which has partitions 0 to 1"));
    assertTrue(refused("OFFSETS_OUT_OF_RANGE", "delete_records", "a", "{\"0\":-2}", false).contains("offset -2"));
    assertTrue(refused("OFFSETS_OUT_OF_RANGE", "delete_records", "a", "{\"0\":11}", false).contains("offset 11"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", null, false).contains("`offsets`"));
    assertTrue(refused("ARGUMENT_VALUE", "delete_records", "a", "{\"0\":1}", null).contains("`dry_run`"));
    assertEquals(0, version("a"));
  }

  @Test
  void whatIsKeptIsCheckedBeforeAnythingIsDeleted() throws Exception {
    for (String topic : List.of("a", "b", "0")) {
      for (int i = 0; i < 3; i++) {
        append(topic);
      }
    }
    for (String bad : List.of("", "{}", "{\"a\":{}}", "{\"a\":[0]}", "{\"a\":{\"0\":1.5}}", "{\"a\":{\"0\":1},\"0\":1}", "[1]", "17")) {
      refused("ARGUMENT_VALUE", "expire", "a", false, bad, null, 0L);
      refused("ARGUMENT_VALUE", "expire", null, false, bad, null, 0L);
      refused("ARGUMENT_VALUE", "delete_records", "a", "{\"0\":1}", false, bad);
    }
    assertTrue(refused("ARGUMENT_VALUE", "expire", null, false, "{\"0\":1}", null, 0L).contains("it must be an object by topic"));
    for (String topic : Arrays.asList("a", null)) {
      assertTrue(refused("TOPIC_NOT_FOUND", "expire", topic, false, "{\"a\":{\"0\":1},\"c\":{\"0\":1}}", null, 0L).contains("0, a, b."));
    }
    assertTrue(refused("ARGUMENT_VALUE", "expire", "a", false, "{\"0\":-1}", null, 0L)
        .contains("`keep` of the procedure expire has the value -1"));
    assertTrue(
        refused("ARGUMENT_VALUE", "expire", "a", false, "{\"0\":99}", null, 0L).contains("has the value 99: partition 0 of topic a has"));
    assertTrue(refused("PARTITION_NOT_FOUND", "expire", "a", false, "{\"2\":0}", null, 0L).contains("`keep` names partition 2"));
    assertTrue(refused("PARTITION_NOT_FOUND", "delete_records", "a", "{\"0\":1}", true, "{\"2\":0}").contains("`keep`"));
    refused("ARGUMENT_VALUE", "expire", "a", false, null, -2L, null);
    refused("ARGUMENT_VALUE", "expire", "a", false, null, null, -2L);
    assertEquals(List.of(2L, 2L, 2L), List.of(version("a"), version("b"), version("0")));

    for (String keep : List.of("{\"0\":4}", "{\"a\":{\"0\":4},\"b\":{\"0\":0}}")) {
      List<Object> row = call("delete_records", "a", "{\"0\":6}", true, keep).get(0);
      assertEquals(Arrays.asList("a", 0, 0L, 4L), row.subList(0, 4));
      assertEquals(List.of(4L, 4L), row.subList(5, 7));
    }
    assertEquals(Arrays.asList(6L, null), call("delete_records", "a", "{\"0\":6}", true, "{\"b\":{\"0\":4}}").get(0).subList(5, 7));
    assertEquals(0L, sum(call("expire", null, true), "a"), "it is for ever");
    List<List<Object>> told = call("expire", null, true, "{\"a\":{\"0\":0,\"1\":0},\"0\":{\"0\":0}}", null, 0L);
    assertEquals(0L, sum(told, "a"));
    assertTrue(sum(told, "b") > 0 && sum(told, "0") > 0, told.toString());
    assertEquals(Arrays.asList(0L, null, 0L, 0L, null, null), told.stream().map(row -> row.get(6)).toList());
    assertEquals(told, call("expire", null, false, "{\"a\":{\"0\":0,\"1\":0},\"0\":{\"0\":0}}", null, 0L));
    assertEquals(List.of(2L, 3L, 3L), List.of(version("a"), version("b"), version("0")));
  }

  @Test
  void partitionsAndConfigurationsAreCheckedAsOptionsAre() throws Exception {
    append("a");
    for (long bad : new long[] {Long.MIN_VALUE, -1, 0, 10_001, 1L << 32}) {
      assertTrue(refused("ARGUMENT_VALUE", "add_partitions", "a", bad, "now", false).contains("it must be from 1 to 10000"));
    }
    assertTrue(refused("ARGUMENT_VALUE", "add_partitions", "a", 1L, "now", false).contains("topic a has 2 partitions"));
    assertTrue(refused("ARGUMENT_VALUE", "set_config", "a", Map.of()).contains("it must name what to change"));
    assertTrue(refused("ARGUMENT_VALUE", "set_config", "a", Collections.singletonMap("retention.ms", null)).contains("NULL"));
    assertTrue(refused("OPTION_UNKNOWN", "set_config", "a", Map.of("retention.msec", "1")).contains("Did you mean `retention.ms`?"));
    assertTrue(refused("OPTION_UNKNOWN", "set_config", "a", Map.of("batch.size", "1000")).contains("Option `batch.size` is unknown"));
    assertTrue(refused("OPTION_UNKNOWN", "set_config", "a", Map.of("comment", "x")).contains("Option `comment` is unknown"));
    assertTrue(refused("OPTION_VALUE", "set_config", "a", Map.of("retention.ms", "1h")).contains("it must be"));
    assertTrue(refused("OPTION_VALUE", "set_config", "a", Map.of("retention.ms", "-2")).contains("it must be"));
    assertTrue(refused("OPTION_VALUE", "set_config", "a", Map.of("compression.type", "brotli")).contains("it must be"));
    assertTrue(refused("OPTION_VALUE", "set_config", "a", Map.of("partitions", "4")).contains("CALL partlog.add_partitions"));
    assertTrue(refused("OPTION_VALUE", "set_config", "a", Map.of("partitioner", "murmur2")).contains("fixed when a topic is created"));
    assertEquals(0, version("a"));
    assertEquals(List.of(List.of("a", "compression.type", "none", "zstd")), call("set_config", "a", Map.of("compression.type", "ZSTD")));
    List<List<Object>> moved = List.of(List.of("a", 2, 3, 0, 2048, 1366, 682), List.of("a", 2, 3, 1, 2048, 1365, 683),
        List.of("a", 2, 3, 2, 0, 1365, 1365));
    assertEquals(moved, call("add_partitions", "a", 3L, "now", true));
    assertEquals(1, version("a"));
    assertEquals(moved, call("add_partitions", "a", 3L, "now", false));
    assertEquals(2, version("a"));
  }

  @Test
  void slotsAreGivenToOtherPartitions() throws Exception {
    append("a");
    for (boolean dryRun : new boolean[] {true, false}) {
      assertEquals(List.of(List.of("a", 0, 3, 2048, 3072, 1024), List.of("a", 1, 1, 2048, 1024, 1024)),
          call("reroute", "a", "{\"0\":3}", "now", dryRun));
      assertEquals(dryRun ? 0 : 1, version("a"));
    }
    for (boolean dryRun : new boolean[] {true, false}) {
      assertEquals(List.of(List.of("a", 0, 0, 3072, 0, 3072), List.of("a", 1, 1, 1024, 4096, 3072)),
          call("close_partitions", "a", List.of(0), "now", dryRun));
      assertEquals(dryRun ? 1 : 2, version("a"));
    }
    assertTrue(
        refused("ARGUMENT_VALUE", "close_partitions", "a", List.of(1), "now", false).contains("one partition at least must stay open"));
    assertTrue(refused("ARGUMENT_VALUE", "close_partitions", "a", List.of(), "now", false).contains("it must name partitions"));
    assertTrue(refused("ARGUMENT_VALUE", "close_partitions", "a", Collections.singletonList(null), "now", false).contains("NULL"));
    assertTrue(refused("PARTITION_NOT_FOUND", "close_partitions", "a", List.of(2), "now", false).contains("names partition 2 of topic a"));
    assertTrue(refused("PARTITION_NOT_FOUND", "reroute", "a", "{\"2\":1}", "now", false).contains("names partition 2 of topic a"));
    assertTrue(refused("ARGUMENT_VALUE", "reroute", "a", "{\"0\":1}", "now", false).contains("partition 0 is closed, and stays so"));
    for (String weight : List.of("0", "-1", "1000001", "1.5", "\"1\"")) {
      refused("ARGUMENT_VALUE", "reroute", "a", "{\"1\":" + weight + "}", "now", false);
    }
    assertEquals(2, version("a"));
  }

  @Test
  void aDryRunChangesNothing() throws Exception {
    append("a");
    List<List<Object>> told = call("delete_records", "a", "{\"0\":-1,\"1\":-1}", true);
    List<List<Object>> toldOfTopic = call("delete_topic", "a", true);
    assertEquals(0, version("a"));
    assertEquals(toldOfTopic, call("delete_topic", "a", true));
    assertEquals(told, call("delete_records", "a", "{\"0\":-1,\"1\":-1}", false));
    assertEquals(10L, told.stream().mapToLong(row -> (Long) row.get(5)).sum());
    assertEquals(1, version("a"));
    List<List<Object>> again = call("delete_records", "a", "{\"0\":-1,\"1\":0}", false);
    assertEquals(0L, again.stream().mapToLong(row -> (Long) row.get(5)).sum());
    assertEquals(1, version("a"));
    call("delete_topic", "a", false);
    assertEquals(List.of(), call("topics"));
    assertEquals(0L, call("delete_topic", "a", false).get(0).get(3));
    assertTrue(refused("TOPIC_NOT_FOUND", "delete_topic", "b", false).contains("Existing topics: none."));
    assertTrue(refused("TOPIC_NOT_FOUND", "delete_records", "a", "{\"0\":0}", false).contains("Existing topics: none."));
  }

  @Test
  void whatIsDueIsMergedAndExpires() throws Exception {
    for (int i = 0; i < 6; i++) {
      append("a");
      append("b");
    }
    long before = (Long) call("topics").get(0).get(4);
    List<Object> would = call("merge", "a", false, true).get(0);
    assertEquals(before, (Long) call("topics").get(0).get(4));
    List<Object> merged = call("merge", "a", false).get(0);
    assertEquals(would, merged);
    assertEquals(List.of("a", before, 2L), merged.subList(0, 3));
    assertEquals(merged.get(5), merged.get(6));
    assertEquals(merged.get(6), merged.get(7));
    List<List<Object>> toRebatch = call("merge", null, true, true);
    assertEquals(Arrays.asList("a", 2L, null), toRebatch.get(0).subList(0, 3));
    assertEquals(List.of(merged.get(6), toRebatch.get(1).get(5)), toRebatch.stream().map(row -> row.get(7)).toList());
    assertTrue(refused("ARGUMENT_VALUE", "merge", "a", false, false, 1000L).contains("needs rebatch => true"));
    assertTrue(refused("ARGUMENT_VALUE", "merge", "a", true, false, 0L).contains("from 1 to 1073741824"));
    List<List<Object>> rebatched = call("merge", null, true);
    assertEquals(List.of(List.of("a", 2L, 2L), List.of("b", before, 2L)), rebatched.stream().map(row -> row.subList(0, 3)).toList());
    assertEquals(List.of(2L, 2L), rebatched.stream().map(row -> row.get(4)).toList());
    long version = version("a");
    assertEquals(0L, call("merge", "a", true).get(0).get(7));
    assertEquals(version, version("a"));

    append("a");
    call("set_config", "a", Map.of("retention.bytes", "0"));
    version = version("a");
    List<List<Object>> told = call("expire", null, true);
    assertEquals(version, version("a"));
    assertEquals(told, call("expire", null, false));
    assertEquals(List.of(60L, 0L), List.of(sum(told, "a"), sum(told, "b")));
    assertEquals(version + 1, version("a"));
    assertEquals(0L, sum(call("expire", "a", false), "a"));
    assertEquals(10L, call("topics").get(0).get(3));
  }

  @Test
  void whatDeadWritersLeftIsVacuumed() throws Exception {
    append("a");
    append("b");
    Path left = root.resolve("_partlog/a/data/00000000000000000001-c9Uau9icSBmvDvtokvlNaA/t1-1.log");
    Files.createDirectories(left.getParent());
    Files.write(left, new byte[100]);
    long day = Duration.ofDays(1).toNanos() / 1000;
    assertTrue(refused("ARGUMENT_VALUE", "vacuum", "a", day / 24 - 1, false).contains("it must be at least PT1H"));
    assertTrue(refused("ARGUMENT_VALUE", "vacuum", "a", -day, false).contains("it must be at least PT1H"));
    assertEquals(List.of(List.of("a", 0L, 0L, 0L, 0L), List.of("b", 0L, 0L, 0L, 0L)), call("vacuum", null, day, false));
    for (Path each : List.of(left, left.getParent())) {
      Files.setLastModifiedTime(each, FileTime.from(Instant.now().minus(Duration.ofHours(25))));
    }
    assertEquals(List.of(List.of("a", 1L, 100L, 0L, 2L)), call("vacuum", "a", day, true));
    assertTrue(Files.exists(left));
    assertEquals(0, version("a"));
    assertEquals(List.of(List.of("a", 1L, 100L, 0L, 2L)), call("vacuum", "a", day, false));
    assertFalse(Files.exists(left));
    assertEquals(1, version("a"));
    assertEquals(List.of(List.of("a", 0L, 0L, 2L, 2L)), call("vacuum", "a", day, false));
    assertEquals(10L, call("topics").get(0).get(3));
  }

  private static long sum(List<List<Object>> rows, String topic) {
    return rows.stream().filter(row -> row.get(0).equals(topic)).mapToLong(row -> (Long) row.get(5)).sum();
  }
}
