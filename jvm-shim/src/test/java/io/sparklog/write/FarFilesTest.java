package io.sparklog.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Writes;
import io.sparklog.segment.Names;
import io.sparklog.storage.FarStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The data files of a task in a store behind a network, where the bytes of a file are sent at its sync. */
final class FarFilesTest {
  private static final int PARTITIONS = 4;

  @TempDir
  Path root;
  private FarStore store;
  private String txn;

  @BeforeEach
  void open() {
    store = new FarStore(root.toString(), 16);
    txn = Names.identity(new Random(1));
  }

  private static TopicPlan plan(Map<String, String> config) {
    TreeMap<String, String> all = Writes.config();
    all.putAll(config);
    return TopicPlan.of("t", Optional.empty(), all);
  }

  /** Each partition gets more than 1 MiB, and so a file of its own. */
  private List<TopicReport> write(Map<String, String> config) throws IOException {
    return new Writes("w", 1, 4000, 2000, 1 << 14, 64 << 20, 0, 100).reports(store.store(), plan(config), txn);
  }

  /** Rows of 1,000 bytes, to each partition in turn. */
  private static void append(TopicBuffer topic, int rows) throws IOException {
    byte[] row = new byte[1000];
    for (int i = 0; i < rows; i++) {
      int partition = i % topic.plan().config().partitions();
      topic.appendTo(partition, 1_700_000_000_000L, row, 0, -1, 0, row.length, null, TopicBuffer.NO_HEADERS_BYTES);
    }
  }

  private long files() throws IOException {
    try (Stream<Path> all = Files.walk(root)) {
      return all.filter(file -> file.toString().endsWith(".log")).count();
    }
  }

  @Test
  void filesOfATaskAreSentAtOnce() throws IOException {
    store.awaitAtOnce(PARTITIONS, "^sync ");
    List<TopicReport> reports = write(Map.of());
    assertEquals(PARTITIONS, reports.get(0).pieces().size());
    assertEquals(4000, reports.get(0).records());
    List<String> made = store.take();
    assertEquals(PARTITIONS, made.stream().filter(request -> request.startsWith("sync ")).distinct().count());
    assertEquals(2 * PARTITIONS, made.size(), () -> "each file is created and synced once: " + made);
  }

  /** A file that has reached the length of a segment is sent while rows come for the next file. */
  @Test
  void aFileThatIsFullIsSentBesideTheRowsThatFollow() throws Exception {
    TopicPlan plan = plan(Map.of("partitions", "1", "segment.bytes", Integer.toString(2 << 20)));
    try (TaskWriter writer = new TaskWriter(store.store(), txn, 0, 1, 100, 1 << 14, 1 << 20)) {
      TopicBuffer topic = writer.topic(plan);
      store.awaitAtOnce(1, "^sync ");
      append(topic, 5000);
      store.awaitUnderWay();
      append(topic, 5000);
      TopicReport report = writer.finish().get("t");
      assertEquals(10_000, report.records());
      assertEquals(files(), report.pieces().size());
      List<String> made = store.take();
      assertEquals(2 * files(), made.size(), () -> "each file is created and synced once: " + made);
    }
  }

  @Test
  void aFileThatCannotBeSentFailsTheTask() throws IOException {
    store.fail("^sync .*/p2-");
    TopicPlan plan = plan(Map.of());
    try (TaskWriter writer = new TaskWriter(store.store(), txn, 0, 1, 100, 1 << 14, 64 << 20)) {
      TopicBuffer topic = writer.topic(plan);
      append(topic, 6000);
      IOException failed = assertThrows(IOException.class, writer::finish);
      assertTrue(failed.getMessage().startsWith("the store does not sync "), failed.getMessage());
      assertEquals(PARTITIONS, files());
      writer.abort();
      assertEquals(0, files());
    }
  }

  /** A store may carry out a request to send a file after the request to delete the file. */
  @Test
  @Timeout(120)
  void anAbortDeletesFilesOnlyAfterTheyWereSent() throws Exception {
    TopicPlan plan = plan(Map.of());
    TaskWriter writer = new TaskWriter(store.store(), txn, 0, 1, 100, 1 << 14, 64 << 20);
    append(writer.topic(plan), 6000);
    store.fail("^sync .*/p2-");
    store.awaitAtOnce(2, "^sync .*/p3-|^exists answered");
    assertThrows(IOException.class, writer::finish);
    while (store.take().stream().noneMatch(request -> request.matches("sync .*/p3-.*"))) {
      Thread.sleep(5);
    }
    Thread abort = new Thread(writer::abort);
    abort.start();
    while (abort.getState() != Thread.State.BLOCKED && abort.isAlive()) {
      Thread.sleep(5);
    }
    assertEquals(List.of(), store.take().stream().filter(request -> request.startsWith("delete ")).toList());
    store.store().exists("answered");
    abort.join();
    assertEquals(PARTITIONS, store.take().stream().filter(request -> request.startsWith("delete ")).count());
    assertEquals(0, files());
  }
}
