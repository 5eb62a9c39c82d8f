package io.sparklog.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.RemoteReads;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.query.OffsetBounds;
import io.sparklog.query.Subscription;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.spec.Options;
import io.sparklog.storage.FarStore;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * In a store over a network, without an index, a scan reads no batch twice, and at most a tenth more than the batches that it needs and
 * the headers that lead to them.
 */
final class ScanBytesTest {
  private static final int HEADER = 61;
  private static final int SEGMENT_RECORDS = 40 * 80;
  private static final int LARGE = 2500;
  private static final int SMALL = 50;

  @TempDir
  Path root;
  private WrittenTopic topic;
  private RemoteReads reads;
  private Root remote;
  private State state;

  private record Batch(Segment segment, long position, long bytes, long base, long last) {}

  @BeforeEach
  void begin() {
    topic = new WrittenTopic(root, "t");
    reads = new RemoteReads(topic.store);
    remote = new Root(reads.store());
  }

  private static long time(long offset) {
    return 1_000_000 + offset;
  }

  /** Three segments with batches of 80 records. */
  private void write(int padding) throws IOException {
    topic.padding = offset -> padding;
    topic.times = ScanBytesTest::time;
    for (int segment = 0; segment < 3; segment++) {
      topic.segment(0, WrittenTopic.times(40, 80)).commit();
    }
    state = remote.newest("t").orElseThrow();
  }

  private List<Split> plan(Filter filter, int splitsMin, String... options) throws IOException {
    TreeMap<String, String> given = new TreeMap<>(Map.of("subscribe", "t"));
    for (int i = 0; i < options.length; i += 2) {
      given.put(options[i], options[i + 1]);
    }
    Selection.OffsetRange range = new OffsetBounds(remote, Options.of(given, Options.Side.READ))
        .resolve(List.of(new Subscription.Subscribed(state, new int[] {0})))
        .get(0);
    SplitPlanner.SplitSize size = new SplitPlanner.SplitSize(Long.MAX_VALUE, Long.MAX_VALUE, 1, splitsMin, Long.MAX_VALUE);
    return new SplitPlanner(remote, size, true).plan(Selection.of(List.of(range), filter));
  }

  /** How many records the splits return. */
  private long read(List<Split> splits, boolean offsetsOnly) throws IOException {
    long rows = 0;
    for (Split split : splits) {
      try (SplitReader reader = new SplitReader(remote, split, true, offsetsOnly, Long.MAX_VALUE)) {
        while (reader.next()) {
          rows += reader.records().rows();
        }
      }
    }
    return rows;
  }

  private List<Batch> batches() throws IOException {
    List<Batch> batches = new ArrayList<>();
    for (Segment segment : state.segments(0)) {
      try (SegmentFile file = topic.root.open("t", segment)) {
        for (BatchWalk walk = new BatchWalk(file); walk.next();) {
          batches.add(new Batch(segment, walk.position(), walk.bytes(), walk.base(), walk.last()));
        }
      }
    }
    return batches;
  }

  /** The bytes of the batches with these offsets, and of the headers of all. */
  private long needed(long start, long end) throws IOException {
    return batches().stream().mapToLong(batch -> batch.last >= start && batch.base < end ? batch.bytes : HEADER).sum();
  }

  private void assertNothingTwice(int from, int bytesMax) {
    assertTrue(reads.twice(from) <= bytesMax, () -> reads.twice(from) + " bytes are read twice: " + reads.spans());
  }

  private void assertAtMost(long bytes) {
    assertTrue(reads.bytes() <= 1.1 * bytes, reads.bytes() + " bytes were read, and " + bytes + " are needed: " + reads.spans());
  }

  @ParameterizedTest
  @ValueSource(ints = {SMALL, LARGE})
  void aWholeScan(int padding) throws IOException {
    write(padding);
    for (boolean offsetsOnly : new boolean[] {false, true}) {
      reads.clear();
      assertEquals(3 * SEGMENT_RECORDS, read(plan(Filter.ALL_RECORDS, 1), offsetsOnly));
      assertNothingTwice(0, 0);
      assertEquals(needed(0, Long.MAX_VALUE), reads.bytes());
    }
  }

  /** Each is one request: the version file says how long it is. */
  @Test
  void theNextSegmentsAreAskedForAtOnce() throws IOException {
    int segments = 20;
    for (int segment = 0; segment < segments; segment++) {
      topic.segment(0, 80).commit();
    }
    FarStore far = new FarStore(root.toString(), 16);
    remote = new Root(far.store());
    state = remote.newest("t").orElseThrow();
    List<Split> splits = plan(Filter.ALL_RECORDS, 1);
    far.take();
    far.awaitAtOnce(4, "^open .*[.]log$");
    assertEquals(segments * 80, read(splits, false));
    List<String> expected = state.segments(0).stream().map(segment -> "open " + Names.topicFile("t", segment.file())).sorted().toList();
    assertEquals(expected, far.take().stream().sorted().toList());
  }

  /** The first request has the records, and the segment is many times as long. */
  @Test
  void aLimitOfRowsAsksForFewBytes() throws IOException {
    topic.padding = offset -> 10_000;
    topic.segment(0, WrittenTopic.times(80, 80)).commit();
    FarStore far = new FarStore(root.toString(), 16);
    remote = new Root(far.store());
    state = remote.newest("t").orElseThrow();
    assertTrue(state.segments(0).get(0).bytes() > 32 << 20);
    List<Split> splits = plan(Filter.ALL_RECORDS, 1);
    far.take();
    for (long rowsMax : new long[] {10, 79, Long.MAX_VALUE}) {
      long rows = 0;
      try (SplitReader reader = new SplitReader(remote, splits.get(0), true, false, rowsMax)) {
        while (rows < 79 && reader.next()) {
          rows += reader.records().rows();
        }
      }
      assertTrue(rows >= Math.min(rowsMax, 79));
      long requests = far.take().stream().filter(request -> request.startsWith("open ")).count();
      if (rowsMax < Long.MAX_VALUE) {
        assertEquals(1, requests, "a limit of " + rowsMax);
      } else {
        assertTrue(requests > 1, "a scan asks for more than one request");
      }
    }
  }

  /** A cursor that gives a MiB at a time does not ask for the segment. */
  @Test
  void aCursorAsksForTheBytesThatItGives() throws IOException {
    topic.padding = offset -> 10_000;
    topic.segment(0, WrittenTopic.times(80, 80)).commit();
    FarStore far = new FarStore(root.toString(), 16);
    remote = new Root(far.store());
    try (PartitionCursor cursor = PartitionCursor.open(remote, "t", 0, 0)) {
      far.take();
      assertEquals(1, cursor.next(1 << 20).size());
      long requests = far.take().stream().filter(request -> request.startsWith("open ")).count();
      assertTrue(requests <= 3, requests + " requests, each of a MiB");
      long batches = 1;
      for (List<PartitionCursor.Batches> given = cursor.next(1 << 20); !given.isEmpty(); given = cursor.next(1 << 20)) {
        batches += given.size();
      }
      assertEquals(80, batches);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {SMALL, LARGE})
  void aRangeOfOffsets(int padding) throws IOException {
    write(padding);
    List<Split> splits = plan(Filter.ALL_RECORDS, 1, "startingOffsets", topic.json(2001), "endingOffsets", topic.json(8003));
    int planned = reads.spans().size();
    assertEquals(6002, read(splits, false));
    assertNothingTwice(planned, 0);
    // Where headers are near each other, all bytes up to the start are read, once, to find it.
    assertAtMost(padding == LARGE ? needed(2001, 8003) : needed(0, 8003));
    assertNothingTwice(0, padding == LARGE ? HEADER : 64 << 10);
  }

  @ParameterizedTest
  @ValueSource(ints = {SMALL, LARGE})
  void aRangeOfTimes(int padding) throws IOException {
    write(padding);
    List<Split> splits = plan(Filter.ALL_RECORDS, 1, "startingTimestamp", Long.toString(time(2001)));
    int planned = reads.spans().size();
    assertEquals(3 * SEGMENT_RECORDS - 2001, read(splits, false));
    assertNothingTwice(planned, 0);
    if (padding == LARGE) {
      assertAtMost(needed(2001, Long.MAX_VALUE) + needed(2001, 2002) / 2);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {SMALL, LARGE})
  void timesThatAreFilteredBy(int padding) throws IOException {
    write(padding);
    Intervals micros = Intervals.of(1000 * time(4000), 1000 * time(4500));
    List<Split> splits = plan(Filter.time(micros), 1);
    read(splits, false);
    assertAtMost(padding == LARGE ? needed(4000, 4501) : needed(SEGMENT_RECORDS, 2 * SEGMENT_RECORDS));
    assertNothingTwice(0, HEADER);
  }

  /** As on a disk: what is not cut does not fill a split that has half of the room for it. */
  @Test
  void asManySplitsOfWholeSegmentsAsAskedFor() throws IOException {
    topic.padding = offset -> LARGE;
    for (int segment = 0; segment < 8; segment++) {
      topic.segment(0, 80).commit();
    }
    state = remote.newest("t").orElseThrow();
    for (int splitsMin = 1; splitsMin <= 8; splitsMin++) {
      List<Split> splits = plan(Filter.ALL_RECORDS, splitsMin);
      assertTrue(splits.size() >= splitsMin, splits.size() + " splits, and " + splitsMin + " were asked for");
      assertEquals(8 * 80, read(splits, false));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {SMALL, LARGE})
  void severalSplitsOfASegment(int padding) throws IOException {
    write(padding);
    List<Split> splits = plan(Filter.ALL_RECORDS, 11);
    int planned = reads.spans().size();
    assertEquals(padding == LARGE, splits.size() >= 11, "small batches are not worth the reads that lead to a cut");
    assertEquals(3 * SEGMENT_RECORDS, read(splits, false));
    assertNothingTwice(planned, 0);
    assertNothingTwice(0, HEADER);
    assertAtMost(needed(0, Long.MAX_VALUE));
  }
}
