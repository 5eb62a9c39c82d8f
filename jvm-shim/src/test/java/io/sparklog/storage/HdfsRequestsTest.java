package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Writes;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.segment.Names;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.hadoop.fs.GlobalStorageStatistics;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * The calls of Hadoop's client of HDFS, which counts them for all of this JVM; {@code make test-stores} starts a real one. A file that is
 * created is written and closed by further requests, which no caller can spare.
 */
@EnabledIfSystemProperty(named = "stores.hdfs", matches = ".+")
@Timeout(300)
final class HdfsRequestsTest {
  private final StoreRef ref = StoreSettings.newRoot("stores.hdfs", Map.of());
  private final Random random = new Random(28);
  private final LogStore store = HdfsStore.open(ref);
  private final Root root = new Root(store);
  private Map<String, Long> before;

  @BeforeEach
  void begin() throws IOException {
    root.prepare();
    for (int n = 0; n < 3; n++) {
      commitSmall();
    }
    before = counters();
  }

  private static Map<String, Long> counters() {
    TreeMap<String, Long> counters = new TreeMap<>();
    GlobalStorageStatistics.INSTANCE.get("DFSOpsCountStatistics")
        .getLongStatistics()
        .forEachRemaining(each -> counters.put(each.getName().substring("op_".length()), each.getValue()));
    return counters;
  }

  /** How often each call was made since this was asked for last. */
  private Map<String, Long> counted() {
    Map<String, Long> after = counters();
    TreeMap<String, Long> counted = new TreeMap<>();
    after.forEach((call, count) -> {
      if (count > before.getOrDefault(call, 0L)) {
        counted.put(call, count - before.getOrDefault(call, 0L));
      }
    });
    before = after;
    return counted;
  }

  private TopicPlan plan() {
    return TopicPlan.of("t", root.topic("t").latest(), Writes.config());
  }

  private void commit(TopicPlan plan, String txn, List<TopicReport> reports) {
    assertTrue(new TopicCommits(root, txn, topic -> Once.NEVER, Clock.systemUTC(), random).commit(plan, reports).version().isPresent());
  }

  private void commitSmall() throws IOException {
    TopicPlan plan = plan();
    String txn = Names.identity(random);
    commit(plan, txn, Writes.of("x", 2, 3, 0).reports(store, plan, txn));
  }

  @Test
  void aCommitOfWhatTravelled() throws IOException {
    TopicPlan plan = plan();
    String txn = Names.identity(random);
    List<TopicReport> reports = Writes.of("x", 2, 3, 0).reports(store, plan, txn);
    counted();
    commit(plan, txn, reports);
    Map<String, Long> counted = counted();
    assertEquals(2, counted.remove("create"), "the pool is a file, too");
    counted.put("create", 1L);
    assertCommitted(counted);
  }

  /** One file is written and renamed. A look at a file takes a fraction of a millisecond here, so none is spared. */
  private static void assertCommitted(Map<String, Long> counted) {
    assertEquals(1, counted.get("create"), counted.toString());
    assertEquals(1, counted.get("rename"), counted.toString());
    assertTrue(counted.get("get_file_status") <= 24, counted.toString());
    assertTrue(counted.values().stream().mapToLong(each -> each).sum() <= 32, counted.toString());
  }

  @Test
  void aCommitOfTaskFiles() throws IOException {
    TopicPlan plan = plan();
    String txn = Names.identity(random);
    counted();
    List<TopicReport> reports = Writes.of("x", 3, 20_000, 0).reports(store, plan, txn);
    Map<String, Long> tasks = counted();
    commit(plan, txn, reports);
    assertEquals(Map.of("create", 3L), tasks);
    assertCommitted(counted());
  }

  @Test
  void anIdlePoll() {
    root.topic("t").latest();
    counted();
    root.topic("t").latest();
    assertEquals(Map.of("get_file_status", 2L), counted());
  }

  @Test
  void openingATopicAtItsCheckpoint() throws IOException {
    State state = root.topic("t").latest().orElseThrow();
    root.topic("t").writeCheckpoint(state, Names.identity(random));
    counted();
    assertEquals(state.version(), new Root(store).topic("t").latest().orElseThrow().version());
    assertEquals(Map.of("list_status", 1L, "get_file_status", 2L, "open", 2L), counted());
  }

  @Test
  void versionsThatAreRead() throws IOException {
    Root reader = new Root(store);
    reader.topic("t").latest();
    for (int n = 0; n < 3; n++) {
      commitSmall();
    }
    counted();
    reader.topic("t").latest();
    assertEquals(Map.of("get_file_status", 3 + 2L, "open", 3L), counted());
  }
}
