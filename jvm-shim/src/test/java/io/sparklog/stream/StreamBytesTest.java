package io.sparklog.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.RemoteReads;
import io.sparklog.kit.StreamRuns;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Root;
import io.sparklog.read.Filter;
import io.sparklog.read.Selection;
import io.sparklog.read.Split;
import io.sparklog.read.SplitPlanner;
import io.sparklog.read.SplitReader;
import io.sparklog.segment.Segment;
import io.sparklog.storage.CheckpointFolders;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A stream that takes a small part of large segments per micro-batch, in a store over a network, where there is no index. */
final class StreamBytesTest extends StreamRuns {
  private static final int HEADER = 61;
  private static final int BATCHES = 160;
  private static final int RECORDS = 80;
  private static final int LARGE = 2500;
  private static final int SMALL = 50;

  /** A walk reads as much at once if batches are small, and a task reads at most as far beyond an estimate. */
  private static final int AHEAD = 64 << 10;

  /** A header is read once to find its batch, and again a few times per micro-batch, but never from the segment's start on. */
  @ParameterizedTest
  @CsvSource({SMALL + ",maxOffsetsPerTrigger", LARGE + ",maxOffsetsPerTrigger", SMALL + ",maxBytesPerTrigger",
      LARGE + ",maxBytesPerTrigger"})
  void microBatchesReadWhatTheyNeed(int padding, String limit) throws IOException {
    topic.padding = offset -> padding;
    topic.segment(0, WrittenTopic.times(BATCHES, RECORDS)).segment(0, WrittenTopic.times(BATCHES, RECORDS)).commit();
    long bytes = topic.root.state("t").segments(0).stream().mapToLong(Segment::bytes).sum();
    int parts = 80;
    long most = limit.equals("maxBytesPerTrigger") ? bytes / parts : 2 * BATCHES * RECORDS / parts;
    RemoteReads reads = new RemoteReads(topic.store);
    Root remote = new Root(reads.store());
    StreamStart start = new StreamStart(
        CheckpointFolders.open("file:" + folder.resolve("checkpoint/sources/0"), Map.<String, String>of()::entrySet), random);
    TopicStream stream = new TopicStream(remote, options("startingOffsets", "earliest"), start, clock);
    TriggerLimits limits = TriggerLimits.of(options(limit, Long.toString(most)));
    StreamOffsets at = stream.initial();
    int triggers = 0;
    long rows = 0;
    for (StreamOffsets next; (next = stream.next(at, limits)) != at; at = next, triggers++) {
      rows += read(remote, stream, at, next);
    }
    assertEquals(2L * BATCHES * RECORDS, rows);
    assertTrue(triggers >= parts / 2, triggers + " micro-batches");
    // The batches at both ends of a micro-batch, which a limit of offsets cuts, are read by two.
    long batch = bytes / (2 * BATCHES);
    long headers = padding == LARGE ? 2 * BATCHES * HEADER + triggers * 10L * HEADER : bytes + triggers * 5L * AHEAD;
    long needed = bytes + headers + triggers * (2 * batch + AHEAD);
    assertTrue(reads.bytes() <= needed, reads.bytes() + " bytes were read in " + triggers + " micro-batches; needed: " + needed);
    assertTrue(reads.spans().size() <= 2 * BATCHES + triggers * 16, reads.spans().size() + " reads in " + triggers + " micro-batches");
  }

  private static long read(Root remote, TopicStream stream, StreamOffsets from, StreamOffsets to) throws IOException {
    List<Selection.OffsetRange> ranges = stream.ranges(from, to);
    SplitPlanner.SplitSize size = new SplitPlanner.SplitSize(Long.MAX_VALUE, Long.MAX_VALUE, 1, 1, Long.MAX_VALUE);
    long rows = 0;
    for (Split split : new SplitPlanner(remote, size, true, stream.walked()).plan(Selection.of(ranges, Filter.ALL_RECORDS))) {
      try (SplitReader reader = new SplitReader(remote, split, true, false, Long.MAX_VALUE)) {
        while (reader.next()) {
          rows += reader.records().rows();
        }
      }
    }
    return rows;
  }
}
