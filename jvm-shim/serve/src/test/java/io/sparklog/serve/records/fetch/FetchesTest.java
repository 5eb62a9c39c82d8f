package io.sparklog.serve.records.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.feed.CommitWaits;
import io.sparklog.kit.RemoteReads;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Root;
import io.sparklog.log.TopicConfig;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.Stores;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Requests for the records of many partitions: their limits, their waits, and faults of one partition. */
final class FetchesTest {
  private static final long LONG_MS = TimeUnit.MINUTES.toMillis(10);
  private static final long WAIT_S = 120;
  private static final int MUCH = 1 << 20;

  @TempDir
  Path directory;

  private final ExecutorService work = Executors.newFixedThreadPool(2);
  private WrittenTopic topic;
  private CommitWaits commits;
  private PartitionReads reads;
  private Fetches fetches;

  @BeforeEach
  void open() throws Exception {
    topic = new WrittenTopic(directory, "t").with(TopicConfig.KAFKA_VIEW, "none");
    topic.padding = offset -> 3_000;
    topic.segment(0, 20, 20).segment(1, 20, 20).segment(2, 20).commit();
    commits = new CommitWaits(topic.root, work, Clock.systemUTC());
    reads = new PartitionReads(topic.root, Clock.systemUTC(), Long.MAX_VALUE);
    fetches = new Fetches(topic.root, reads, commits, work);
  }

  @AfterEach
  void close() {
    commits.close();
    work.shutdownNow();
  }

  private static PartitionFetch wanted(int partition, long offset) {
    return new PartitionFetch("t", null, partition, offset, MUCH);
  }

  private CompletableFuture<List<FetchedPartition>> ask(int bytesMin, int bytesMax, long waitMs, PartitionFetch... wanted) {
    return fetches.fetch(new Fetches.Fetch(List.of(wanted), bytesMin, bytesMax, waitMs));
  }

  private List<Integer> rows(List<FetchedPartition> found) throws Exception {
    List<Integer> rows = new ArrayList<>();
    for (int i = 0; i < found.size(); i++) {
      assertNull(found.get(i).failure());
      rows.add(Fetched.rows(topic, i, Fetched.bytes(found.get(i).parts())).size());
    }
    return rows;
  }

  @Test
  void partitionsAreReadInTheirOrderUntilTheBytesAreUsedUp() throws Exception {
    assertEquals(List.of(40, 40, 20), rows(ask(1, MUCH, 0, wanted(0, 0), wanted(1, 0), wanted(2, 0)).get(WAIT_S, TimeUnit.SECONDS)));
    assertEquals(List.of(20, 0, 0), rows(ask(1, 10, 0, wanted(0, 0), wanted(1, 0), wanted(2, 0)).get(WAIT_S, TimeUnit.SECONDS)));
    assertEquals(List.of(0, 40, 20), rows(ask(1, MUCH, 0, wanted(0, 40), wanted(1, 0), wanted(2, 0)).get(WAIT_S, TimeUnit.SECONDS)));
  }

  @Test
  void aRequestWaitsForItsLeastBytesOverAllPartitions() throws Exception {
    CompletableFuture<List<FetchedPartition>> asked = ask(100_000, MUCH, LONG_MS, wanted(0, 40), wanted(1, 20));
    while (commits.waiting("t") == 0) {
      Thread.onSpinWait();
    }
    assertFalse(asked.isDone());
    topic.segment(0, 5).commit();
    commits.committed("t");
    assertFalse(asked.isDone());
    topic.segment(0, 20).commit();
    assertEquals(List.of(25, 20), rows(asked.get(WAIT_S, TimeUnit.SECONDS)));
  }

  @Test
  void aRequestGetsTheBytesThatThereAreAfterItsTime() throws Exception {
    assertEquals(List.of(20), rows(ask(MUCH, MUCH, 1, wanted(0, 20)).get(WAIT_S, TimeUnit.SECONDS)));
  }

  /** Over a network, all records are copied. A segment has one batch of 20 records, some 60,000 bytes. */
  @Test
  void answersThatFillTheMemoryLeaveOneBatchForTheNext() throws Exception {
    Root root = new Root(new RemoteReads(Stores.open(directory.toString())).store());
    reads = new PartitionReads(root, Clock.systemUTC(), 130_000);
    fetches = new Fetches(root, reads, commits, work);
    List<List<FetchedPartition>> answers = new ArrayList<>();
    for (int records : List.of(40, 20, 20)) {
      answers.add(ask(1, MUCH, 0, wanted(0, 0), wanted(1, 40)).get(WAIT_S, TimeUnit.SECONDS));
      List<FetchedBytes> parts = answers.get(answers.size() - 1).get(0).parts();
      assertEquals(records / 20, parts.size());
    }
    assertTrue(reads.memory().free() < 0);
    answers.forEach(Fetches::close);
    assertEquals(130_000, reads.memory().free());
    assertEquals(List.of(40), rows(ask(1, MUCH, 0, wanted(0, 0)).get(WAIT_S, TimeUnit.SECONDS)));
    assertEquals(130_000, reads.memory().free(), "the parts are closed, and nothing is kept for the read");
  }

  @Test
  void aRequestThatIsCancelledLeavesNoFileOpen() throws Exception {
    for (int i = 0; i < 50; i++) {
      CompletableFuture<List<FetchedPartition>> asked = ask(1, MUCH, LONG_MS, wanted(0, 0), wanted(1, 0));
      if (i % 2 == 0) {
        Thread.onSpinWait();
      }
      if (!asked.cancel(false)) {
        Fetches.close(asked.get());
      }
    }
    ask(MUCH, MUCH, LONG_MS, wanted(0, 40)).cancel(false);
    work.shutdown();
    assertTrue(work.awaitTermination(WAIT_S, TimeUnit.SECONDS));
    assertEquals(0, reads.filesOpen());
    assertEquals(0, commits.waiting("t"));
  }

  @Test
  void aFaultOfAPartitionIsOfThatPartitionAlone() throws Exception {
    try (RandomAccessFile file = new RandomAccessFile(topic.dataFile(0, 0).toFile(), "rw")) {
      file.seek(file.length() - 10);
      file.write(1);
    }
    Files.delete(topic.dataFile(2, 0));
    List<FetchedPartition> found = ask(1, MUCH, LONG_MS, wanted(0, 20), wanted(1, 0), wanted(2, 0),
        new PartitionFetch("absent", null, 0, 0, MUCH), wanted(7, 0), new PartitionFetch("t", "another", 0, 0, MUCH))
        .get(WAIT_S, TimeUnit.SECONDS);
    List<String> faults = found.stream().map(one -> one.failure() == null ? "" : ((PartlogException) one.failure()).id()).toList();
    assertEquals(List.of("BATCH_CORRUPT", "", "SEGMENT_MISSING", "TOPIC_NOT_FOUND", "PARTITION_NOT_FOUND", "TOPIC_NOT_FOUND"), faults);
    assertEquals(40, Fetched.rows(topic, 1, Fetched.bytes(found.get(1).parts())).size());
    assertEquals(20,
        Fetched.rows(topic, 0, Fetched.bytes(ask(1, MUCH, 0, wanted(0, 0)).get(WAIT_S, TimeUnit.SECONDS).get(0).parts())).size(),
        "the batches before the damaged one are given");
  }

  @Test
  void aTopicThatIsDeletedEndsAWait() throws Exception {
    CompletableFuture<List<FetchedPartition>> asked = ask(1, MUCH, LONG_MS, new PartitionFetch("t", topic.state().topicId(), 0, 40, MUCH));
    topic.operator().delete(false);
    assertEquals("TOPIC_NOT_FOUND", ((PartlogException) asked.get(WAIT_S, TimeUnit.SECONDS).get(0).failure()).id());
  }
}
