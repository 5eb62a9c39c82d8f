package io.sparklog.catalog;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.log.LogTool;
import io.sparklog.spark.PartlogSparkException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Procedures as Spark calls them, without a session. */
final class ProceduresTest {
  @TempDir
  Path root;

  private void append(String topic) throws Exception {
    LogTool.main(new String[] {"append", "root=" + root, "topic=" + topic, "records=10", "tasks=1", "partitions=2"});
  }

  /** Text and maps become Spark's; the root comes first by itself. */
  private List<List<Object>> call(String procedure, Object... arguments) {
    Object[] given = new Object[arguments.length + 1];
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

  @Test
  void whatIsNotATopicIsRefused() throws Exception {
    append("a");
    assertTrue(refused("TOPIC_NOT_FOUND", "segments", "c").contains("Existing topics: a."));
    assertTrue(refused("TOPIC_NAME_ILLEGAL", "segments", "").contains("it is empty"));
    assertTrue(refused("ARGUMENT_VALUE", "segments", (Object) null)
        .contains("Argument `topic` of the procedure segments has the value NULL: it must have a value. Correct the value. "
            + "The procedure is segments(root, topic)."));
  }
}
