package io.sparklog.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.RemoteReads;
import io.sparklog.kit.Writes;
import io.sparklog.log.Committers;
import io.sparklog.log.Names;
import io.sparklog.log.Root;
import io.sparklog.log.Segment;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.merge.Merging;
import io.sparklog.spec.Options;
import io.sparklog.storage.StoreRef;
import io.sparklog.storage.Stores;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
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
    commits.commit(plan, Writes.of("x" + records, 1, records, bytes).pieces(root.store(), plan, txn));
  }

  private State newest() {
    return root.newest("t").orElseThrow();
  }

  private List<Split> plan(long from, long to, long splitBytes) throws IOException {
    Map<String, String> options = Map.of("subscribe", "t", "startingOffsets", "{\"t\":{\"0\":" + from + "}}", "endingOffsets",
        "{\"t\":{\"0\":" + to + "}}");
    OffsetBounds.Range range = new OffsetBounds(root, Options.of(new TreeMap<>(options), Options.Side.READ))
        .resolve(List.of(new Subscription.Subscribed(newest(), new int[] {0})))
        .get(0);
    reads.clear();
    return new SplitPlanner(root, new SplitSize(splitBytes, splitBytes, 1, 1, Long.MAX_VALUE), true)
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

  @Test
  void aMergedSegment() throws IOException {
    append(RECORDS / 2, RECORD_BYTES);
    append(RECORDS / 2, RECORD_BYTES);
    new Merging(new Committers(log, Clock.systemUTC(), new Random())).all();
    assertEquals(1, newest().segments(0).size());
    assertReadByFewRequests(0);
  }
}
