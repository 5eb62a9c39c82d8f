package io.sparklog.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.format.OffsetIndex;
import io.sparklog.kit.RemoteReads;
import io.sparklog.kit.Writes;
import io.sparklog.log.Committers;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.merge.Merging;
import io.sparklog.query.OffsetBounds;
import io.sparklog.query.Subscription;
import io.sparklog.segment.BatchPosition;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.Options;
import io.sparklog.storage.StoreRef;
import io.sparklog.storage.Stores;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.IntUnaryOperator;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** In a store without links, a large segment has an index behind it, by which a reader begins and a plan cuts, with few requests. */
final class IndexBehindSegmentTest {
  private static final int FIRST = 10;
  private static final int RECORDS = 4000;
  private static final int RECORD_BYTES = 2000;

  @TempDir
  Path directory;
  private RemoteReads reads;
  private Root root;
  private TopicLog log;
  private int appends;

  @BeforeEach
  void begin() {
    reads = new RemoteReads(Stores.open(new StoreRef(directory.toString())));
    root = new Root(reads.store());
    log = root.topic("t");
  }

  private void append(int records, int bytes) throws IOException {
    TreeMap<String, String> config = Writes.config();
    config.put("partitions", "1");
    Random random = new Random(++appends);
    String txn = Names.identity(random);
    TopicPlan plan = TopicPlan.of("t", log.newest(), config);
    TopicCommits commits = new TopicCommits(root, txn, topic -> Once.NEVER, Clock.systemUTC(), random);
    commits.commit(plan, Writes.of("x" + records, 1, records, bytes).reports(root.store(), plan, txn));
  }

  private State newest() {
    return root.newest("t").orElseThrow();
  }

  private List<Split> plan(long from, long to, long splitBytes) throws IOException {
    Map<String, String> options = Map.of("subscribe", "t", "startingOffsets", "{\"t\":{\"0\":" + from + "}}", "endingOffsets",
        "{\"t\":{\"0\":" + to + "}}");
    Selection.OffsetRange range = new OffsetBounds(root, Options.of(new TreeMap<>(options), Options.Side.READ))
        .resolve(List.of(new Subscription.Subscribed(newest(), new int[] {0})))
        .get(0);
    reads.clear();
    return new SplitPlanner(root, new SplitPlanner.SplitSize(splitBytes, splitBytes, 1, 1, Long.MAX_VALUE), true)
        .plan(Selection.of(List.of(range), Filter.ALL_RECORDS));
  }

  private long rows(List<Split> splits) throws IOException {
    long rows = 0;
    for (Split split : splits) {
      try (SplitReader reader = new SplitReader(root, split, true, false, Long.MAX_VALUE)) {
        while (reader.next()) {
          rows += reader.records().rows();
        }
      }
    }
    return rows;
  }

  private Segment last() {
    List<Segment> segments = newest().segments(0);
    return segments.get(segments.size() - 1);
  }

  private void assertReadByFewRequests(long first) throws IOException {
    assertTrue(last().indexBytes() > 0 && last().indexBytes() < last().bytes() / 1000, last()::toString);
    List<Split> middle = plan(first + RECORDS / 2, first + RECORDS / 2 + 20, Long.MAX_VALUE);
    assertEquals(20, rows(middle));
    assertTrue(reads.spans().size() <= 8 && reads.bytes() < last().bytes() / 8, () -> "read: " + reads.spans());
    List<Split> all = plan(first, first + RECORDS, 1 << 20);
    int planned = reads.spans().size();
    assertTrue(all.size() >= 6, () -> all.size() + " splits");
    assertTrue(planned <= 4 * all.size() && reads.bytes() < last().bytes() / 8, () -> "read for the plan: " + reads.spans());
    assertEquals(RECORDS, rows(all));
  }

  /** Most relative offsets of its batches could be absolute ones, too: more records are in it than before it. */
  @Test
  void aSegmentOfATask() throws IOException {
    append(FIRST, 10);
    append(RECORDS, RECORD_BYTES);
    assertReadByFewRequests(FIRST);
  }

  /** Also if the records of one half of the segment are ten times as large, so that no estimate by offsets is right. */
  @Test
  void aRangeInTheMiddleTakesItsBytesAndFewRequests() throws IOException {
    int wanted = 64 << 20;
    append(10_000, 600);
    append(20_000, 6000);
    append(10_000, 600);
    new Merging(new Committers(log, Clock.systemUTC(), new Random())).all();
    assertEquals(1, newest().segments(0).size());
    assertTrue(last().bytes() > 120 << 20, last()::toString);
    long records = wanted / 6040;
    for (long first : new long[] {5_000, 14_000, 24_000}) {
      long small = Math.max(0, 10_000 - first) + Math.max(0, first + records - 30_000);
      long bytes = small * 640 + (records - small) * 6040;
      List<Split> splits = plan(first, first + records, 1 << 30);
      int planned = reads.spans().size();
      assertEquals(records, rows(splits));
      System.out.println(first + ": " + bytes + " " + reads.bytes() + " " + planned + " " + reads.spans());
      assertTrue(reads.bytes() <= 1.2 * bytes, () -> reads.bytes() + " bytes are read, and " + bytes + " are asked for: " + reads.spans());
      assertTrue(reads.spans().size() <= 12, () -> reads.spans().size() + " requests, " + planned + " for the plan: " + reads.spans());
    }
  }

  /** As many requests as for the same segment if it had no index: such a segment is read from its start, and is not cut. */
  private void assertReadWithoutTheIndex() throws IOException {
    List<Split> all = plan(FIRST, FIRST + RECORDS, 1 << 20);
    assertTrue(reads.spans().size() <= 4, () -> "read for the plan: " + reads.spans());
    assertEquals(RECORDS, rows(all));
    assertEquals(20, rows(plan(FIRST + RECORDS / 2, FIRST + RECORDS / 2 + 20, Long.MAX_VALUE)));
  }

  @Test
  void anIndexThatTheStoreDoesNotReadIsNone() throws IOException {
    append(FIRST, 10);
    append(RECORDS, RECORD_BYTES);
    reads.failFrom(last().endPosition());
    assertReadWithoutTheIndex();
  }

  @Test
  void aWrongIndexCostsAPlanFewRequests() throws IOException {
    append(FIRST, 10);
    append(RECORDS, RECORD_BYTES);
    Segment segment = last();
    Path file = directory.resolve(Names.topicFile("t", segment.file()));
    for (IntUnaryOperator wrong : List.<IntUnaryOperator>of(position -> position + 1, position -> Integer.MAX_VALUE)) {
      try (RandomAccessFile data = new RandomAccessFile(file.toFile(), "rw")) {
        for (long at = segment.endPosition() + Integer.BYTES; at < segment.endOfIndex(); at += OffsetIndex.ENTRY_BYTES) {
          data.seek(at);
          int position = data.readInt();
          data.seek(at);
          data.writeInt(wrong.applyAsInt(position));
        }
      }
      assertReadWithoutTheIndex();
    }
  }

  /** The Kafka view is not asked for another index. */
  @Test
  void aSegmentWhoseIndexIsCutOffHasNone() throws IOException {
    append(FIRST, 10);
    append(RECORDS, RECORD_BYTES);
    Segment segment = last();
    try (RandomAccessFile data = new RandomAccessFile(directory.resolve(Names.topicFile("t", segment.file())).toFile(), "rw")) {
      data.setLength(segment.endPosition());
    }
    List<String> asked = new ArrayList<>();
    ReadableTopics topics = (ReadableTopics) Proxy.newProxyInstance(ReadableTopics.class.getClassLoader(),
        new Class<?>[] {ReadableTopics.class}, (proxy, method, arguments) -> {
          asked.add(method.getName());
          return method.invoke(root, arguments);
        });
    try (BatchLocator locator = new BatchLocator(topics, "t", segment, new WalkedSegments())) {
      BatchPosition found = locator.atOffset(FIRST + RECORDS / 2);
      assertTrue(found.offset() <= FIRST + RECORDS / 2 && found.offset() > FIRST + RECORDS / 2 - 20, found::toString);
    }
    assertTrue(asked.contains("open") && !asked.contains("index"), asked::toString);
  }

  /** The batch after another is found by its header, and the index is not read for it. */
  @Test
  void theNextBatchTakesOneRequest() throws IOException {
    append(FIRST, 10);
    append(RECORDS, RECORD_BYTES);
    reads.clear();
    try (BatchLocator locator = new BatchLocator(root, "t", last(), new WalkedSegments())) {
      assertTrue(locator.next(BatchPosition.startOf(last())).offset() > FIRST);
    }
    assertEquals(1, reads.spans().size(), () -> "read: " + reads.spans());
    assertTrue(reads.spans().get(0).to() <= last().endPosition(), () -> "read: " + reads.spans());
  }

  @Test
  void aMergedSegment() throws IOException {
    append(RECORDS / 2, RECORD_BYTES);
    append(RECORDS / 2, RECORD_BYTES);
    new Merging(new Committers(log, Clock.systemUTC(), new Random())).all();
    assertEquals(1, newest().segments(0).size());
    assertReadByFewRequests(0);
  }
}
