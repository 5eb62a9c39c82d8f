package io.sparklog.sink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.sparklog.admin.Administration;
import io.sparklog.kit.Drivers;
import io.sparklog.log.Pace;
import io.sparklog.spec.Options;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.junit.jupiter.api.Test;

/** A write that re-routes a topic also does the upkeep of the re-route, without a session. */
final class UpkeepOfReroutesTest extends Drivers {
  private static final StructType OF_ONE_TOPIC = new StructType().add("value", DataTypes.StringType);
  private static final StructType WITH_TOPICS = OF_ONE_TOPIC.add("topic", DataTypes.StringType);

  /** Tells Spark's side of a write. */
  private record Info(String queryId, StructType schema, CaseInsensitiveStringMap options) implements LogicalWriteInfo {}

  /** A checkpoint is due with each version, so it shows whether there was an upkeep. */
  private void assertUpkeep(Map<String, String> options, StructType schema, Consumer<BatchWrite> end) throws IOException {
    pace = new Pace(1, 8, ms -> {});
    Driver driver = new Driver();
    driver.commit();
    new Administration(new TopicWork(driver.log(), clock(), random)).addPartitions(6, Administration.RerouteTime.NEXT_WRITE, false);
    List<String> before = checkpoints();
    BatchWrite write = new PartlogWrite(driver.root, Options.of(options, Options.Side.WRITE),
        new Info("q", schema, new CaseInsensitiveStringMap(options)), new SinkMetrics(), clock(), random).toBatch();
    assertEquals(1, state().routing().epoch());
    assertEquals(before, checkpoints(), "the tasks do not wait for a checkpoint");
    end.accept(write);
    assertNotEquals(before, checkpoints());
    assertEquals(1, state().routing().epoch());
  }

  private List<String> checkpoints() throws IOException {
    return files("_partlog/t", ".*checkpoint.*");
  }

  @Test
  void aWriteWithoutRecords() throws IOException {
    assertUpkeep(Map.of("topic", "t"), OF_ONE_TOPIC, write -> write.commit(new WriterCommitMessage[0]));
  }

  @Test
  void aWriteWithoutRecordsForTheTopic() throws IOException {
    assertUpkeep(Map.of(), WITH_TOPICS, write -> write.commit(new WriterCommitMessage[0]));
  }

  @Test
  void aWriteThatFails() throws IOException {
    assertUpkeep(Map.of("topic", "t"), OF_ONE_TOPIC, write -> write.abort(new WriterCommitMessage[0]));
  }
}
