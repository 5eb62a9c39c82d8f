package io.sparklog.sink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sparklog.admin.Administration;
import io.sparklog.log.Root;
import io.sparklog.segment.Names;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FarStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The plan of a write, without a session. */
final class WritePlanTest {
  private final Random random = new Random(1);

  private void commit(Root root, TopicPlan plan) {
    new TopicCommits(root, Names.identity(random), topic -> Once.NEVER, Clock.systemUTC(), random).commit(plan, List.of());
  }

  /** Rows name their topics: the topics of the root are asked for at once, also when they are loaded. */
  @Test
  @Timeout(300)
  void theTopicsOfAWriteAreAskedForAtOnce(@TempDir Path folder) throws IOException {
    Root near = new Root(Stores.open(folder.toString()));
    TopicPlan plan = TopicPlan.of("t", Optional.empty(), Options.of(Map.of("partitions", "1"), Options.Side.WRITE).topicConfig());
    int topics = 16;
    for (int n = 0; n < topics; n++) {
      commit(near, TopicPlan.of("t" + n, Optional.empty(), plan.config().entries()));
    }
    FarStore far = new FarStore(folder.toString(), topics);
    Root root = new Root(far.store());
    List<String> names = near.names();
    RowColumns named = RowColumns.of(new StructType().add("topic", DataTypes.StringType).add("value", DataTypes.StringType), false);
    for (String asked : List.of("^listing ", "^read ")) {
      far.awaitAtOnce(topics, asked);
      WritePlan many = WritePlan.of(root, Options.of(Map.of(), Options.Side.WRITE), named, Clock.systemUTC(), random, Existence.ANY,
          () -> names);
      assertEquals(topics, many.known().size());
      assertEquals(topics, far.take().stream().filter(request -> request.matches(asked + ".*")).distinct().count());
    }
  }

  /** Each epoch of a lone stream is planned after the re-route that waits for it, and none is refused. */
  @Test
  void whatIsAskedForIsDoneBeforeTheNextWriteIsPlanned(@TempDir Path folder) throws IOException {
    Root root = new Root(Stores.open(folder.toString()));
    Options options = Options.of(Map.of("topic", "t", "partitions", "2"), Options.Side.WRITE);
    commit(root, TopicPlan.of("t", Optional.empty(), options.topicConfig()));
    Administration operator = new Administration(new TopicWork(root.topic("t"), Clock.systemUTC(), random));
    RowColumns columns = RowColumns.of(new StructType().add("value", DataTypes.StringType), true);
    TopicPlan before = WritePlan
        .of(root, Options.of(Map.of("topic", "t"), Options.Side.WRITE), columns, Clock.systemUTC(), random, Existence.ANY, root::names)
        .topicPlan("t");
    operator.addPartitions(4, Administration.RerouteTime.NEXT_WRITE, false);
    assertEquals(List.of(2, 0), List.of(root.state("t").partitions(), root.state("t").routing().epoch()));
    commit(root, before);
    assertEquals(2, root.state("t").partitions());
    WritePlan plan = WritePlan.of(root, options, columns, Clock.systemUTC(), random, Existence.ANY, root::names);
    assertEquals(0, root.state("t").routing().epoch(), "a plan commits nothing");
    assertEquals(1, plan.applyPendingReroutes(root, Clock.systemUTC(), random).size());
    TopicPlan after = WritePlan.of(root, options, columns, Clock.systemUTC(), random, Existence.ANY, root::names).topicPlan("t");
    assertEquals(List.of(4, 1), List.of(root.state("t").partitions(), root.state("t").routing().epoch()));
    commit(root, after);
    operator.addPartitions(5, Administration.RerouteTime.NEXT_WRITE, false);
    Options more = Options.of(Map.of("topic", "t", "partitions", "7"), Options.Side.WRITE);
    PartlogException contradicts = assertThrows(PartlogException.class,
        () -> WritePlan.of(root, more, columns, Clock.systemUTC(), random, Existence.ANY, root::names));
    assertEquals("OPTION_CONTRADICTS_TOPIC", contradicts.id());
    assertEquals(1, root.state("t").routing().epoch(), "a write that is refused re-routes no topic");
    operator.closePartitions(List.of(0), Administration.RerouteTime.NEXT_WRITE, false);
    RowColumns named = RowColumns.of(new StructType().add("topic", DataTypes.StringType).add("value", DataTypes.StringType), false);
    Options contradicting = Options.of(Map.of("partitions", "7"), Options.Side.WRITE);
    assertEquals(List.of(), WritePlan.of(root, contradicting, named, Clock.systemUTC(), random, Existence.ANY, root::names)
        .applyPendingReroutes(root, Clock.systemUTC(), random));
    Options none = Options.of(Map.of(), Options.Side.WRITE);
    assertEquals(1,
        WritePlan.of(root, none, named, Clock.systemUTC(), random, Existence.ANY, root::names)
            .applyPendingReroutes(root, Clock.systemUTC(), random)
            .size());
    WritePlan last = WritePlan.of(root, none, named, Clock.systemUTC(), random, Existence.ANY, root::names);
    assertEquals(List.of(), last.applyPendingReroutes(root, Clock.systemUTC(), random));
    assertFalse(last.topicPlan("t").router().isOpen(0));
    assertEquals(Optional.empty(), root.state("t").pendingWeights());
  }

  @Test
  void rowsThatNameADeletedTopicBeginItAgain(@TempDir Path folder) throws IOException {
    Root root = new Root(Stores.open(folder.toString()));
    Options options = Options.of(Map.of(), Options.Side.WRITE);
    commit(root, TopicPlan.of("t", Optional.empty(), options.topicConfig()));
    String first = root.state("t").topicId();
    new Administration(new TopicWork(root.topic("t"), Clock.systemUTC(), random)).delete(false);
    StructType schema = new StructType().add("topic", DataTypes.StringType).add("value", DataTypes.StringType);
    TopicPlan plan = WritePlan.of(root, options, RowColumns.of(schema, false), Clock.systemUTC(), random, Existence.ANY, root::names)
        .topicPlan("t");
    assertNull(plan.topicId());
    assertEquals(2, plan.plannedVersion());
    commit(root, plan);
    assertEquals(2, root.state("t").version());
    assertNotEquals(first, root.state("t").topicId());
  }
}
