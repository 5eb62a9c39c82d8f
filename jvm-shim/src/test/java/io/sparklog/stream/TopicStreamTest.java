package io.sparklog.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.kit.StreamRuns;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.read.Selection;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.storage.CheckpointFolders;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.junit.jupiter.api.Test;

/** The next reads of a streaming query, without Spark. */
final class TopicStreamTest extends StreamRuns {
  @Test
  void startsAreResolvedOnce() throws IOException {
    topic.segment(0, 10).segment(1, 20).commit();
    assertEquals(topic.json(10, 20, 0), run("subscribe", "t").initial().json());
    topic.segment(0, 5).commit();
    // The same query, whatever its options say now.
    assertEquals(topic.json(10, 20, 0), run("subscribe", "t", "startingOffsets", "earliest").initial().json());
    assertEquals(topic.json(15, 20, 0), run("subscribe", "t").next(at(topic.json(10, 20, 0)), TriggerLimits.NONE).json());
  }

  @Test
  void aRestartTellsOfOptionsWithoutEffect() throws IOException {
    topic.segment(0, 10).commit();
    List<String> told = new ArrayList<>();
    AbstractAppender appender = new AbstractAppender("told", null, null, false, Property.EMPTY_ARRAY) {
      @Override
      public void append(LogEvent event) {
        told.add(event.getLevel() + " " + event.getMessage().getFormattedMessage());
      }
    };
    appender.start();
    Logger logger = (Logger) LogManager.getLogger(TopicStream.class);
    logger.addAppender(appender);
    logger.setLevel(Level.INFO);
    try {
      run("startingOffsets", "earliest").initial();
      run("subscribe", "t");
      assertEquals(List.of(), told);
      run("startingTimestamp", "7");
      assertEquals(List.of(
          "INFO the query goes on where its checkpoint " + folder + "/checkpoint/sources/0 says; without effect: " + "startingTimestamp"),
          told);
    } finally {
      logger.removeAppender(appender);
      logger.setLevel(null);
    }
  }

  @Test
  void partitionsThatAreAddedAreReadFromTheirBeginning() throws IOException {
    topic.segment(0, 10).segment(1, 20).commit();
    TopicStream running = run("startingOffsets", "latest");
    TopicStream assigned = run("assign", "{\"t\":[0,1,2]}");
    StreamOffsets from = running.initial();
    assertEquals(from, running.next(from, TriggerLimits.NONE));
    topic.partitions(5);
    // They have no records yet: to name them would look like something to read.
    assertEquals(from, running.next(from, TriggerLimits.NONE));
    assertEquals(topic.json(10, 20, 0, 0, 0), running.newest().json());
    topic.segment(0, 1).segment(4, 30).commit();
    StreamOffsets to = running.next(from, TriggerLimits.NONE);
    assertEquals("{\"t\":{\"0\":11,\"1\":20,\"2\":0,\"4\":30}}", to.json());
    List<Selection.OffsetRange> ranges = running.ranges(from, to).stream().filter(range -> range.end() > range.start()).toList();
    assertEquals(List.of("0: 10 to 11", "4: 0 to 30"),
        ranges.stream().map(range -> range.partition() + ": " + range.start() + " to " + range.end()).toList());
    assertEquals(to, running.next(to, TriggerLimits.NONE));
    assertEquals(to, run().next(from, TriggerLimits.NONE), "after a restart");
    assertEquals(topic.json(11, 20, 0), assigned.next(from, TriggerLimits.NONE).json());
  }

  @Test
  void everyWayToSayWhereToStart() throws IOException {
    topic.segment(0, 10).segment(1, 20).segment(2, 3).commit();
    Map<String[], String> cases = Map.of(new String[] {"startingOffsets", "latest"}, topic.json(10, 20, 3),
        new String[] {"startingOffsets", "earliest"}, topic.json(0, 0, 0), new String[] {"startingOffsets", topic.json(-1, -2, 1)},
        topic.json(10, 0, 1), new String[] {"startingTimestamp", Long.toString(WrittenTopic.time(5)), //
            "startingOffsetsByTimestampStrategy", "latest"},
        topic.json(5, 5, 3), new String[] {"startingOffsetsByTimestamp", topic.json(0, WrittenTopic.time(7), 0)}, topic.json(0, 7, 0));
    int query = 0;
    for (Map.Entry<String[], String> each : cases.entrySet()) {
      StreamStart start = new StreamStart(
          CheckpointFolders.open(folder.resolve("q" + query++).toString(), Map.<String, String>of()::entrySet), random);
      TopicStream stream = new TopicStream(topic.root, options(each.getKey()), start, clock);
      assertEquals(each.getValue(), stream.initial().json());
      assertEquals(each.getValue(), stream.initial().json());
    }
    assertFails("TIMESTAMP_NOT_FOUND", () -> run("startingTimestamp", Long.toString(WrittenTopic.time(15))).initial(), "topic t");
    assertFails("OFFSETS_OUT_OF_RANGE", () -> run("startingOffsets", topic.json(11, 0, 0)).initial(), "offset 11");
    assertFails("TOPIC_NOT_FOUND", () -> run("subscribe", "other").initial(), "Topic other");
  }

  @Test
  void whatIsOnlyOfABatchIsRefused() {
    assertFails("OPTION_VALUE", () -> options("endingOffsets", "latest"), "endingOffsets");
    assertFails("OPTION_VALUE", () -> TriggerLimits.of(options("minOffsetsPerTrigger", "5", "maxOffsetsPerTrigger", "4")),
        "minOffsetsPerTrigger");
    assertEquals(new TriggerLimits(7, 100, 5, 90_000), TriggerLimits
        .of(options("maxoffsetspertrigger", "7", "maxBytesPerTrigger", "100", "minOffsetsPerTrigger", "5", "maxTriggerDelay", "90s")));
    assertEquals(new TriggerLimits(Long.MAX_VALUE, Long.MAX_VALUE, 0, 900_000), TriggerLimits.of(options()));
    assertFails("OPTION_VALUE", () -> options("maxTriggerDelay", "soon"), "maxTriggerDelay");
  }

  @Test
  void minOffsetsWait() throws IOException {
    topic.segment(0, 10).commit();
    TriggerLimits limits = TriggerLimits.of(options("minOffsetsPerTrigger", "8", "maxTriggerDelay", "1m"));
    TopicStream stream = run("startingOffsets", "earliest");
    StreamOffsets start = stream.initial();
    // The first micro-batch of a run waits for nothing.
    StreamOffsets first = stream.next(start, limits);
    assertEquals(topic.json(10, 0, 0), first.json());
    topic.segment(1, 7).commit();
    nowMs += 59_999;
    assertEquals(first, stream.next(first, limits));
    topic.segment(1, 1).commit();
    StreamOffsets second = stream.next(first, limits);
    assertEquals(topic.json(10, 8, 0), second.json());
    topic.segment(2, 1).commit();
    nowMs += 59_999;
    assertEquals(second, stream.next(second, limits));
    nowMs += 1;
    assertEquals(topic.json(10, 8, 1), stream.next(second, limits).json());
  }

  @Test
  void limitsAreExactOverUnevenPartitions() throws IOException {
    System.out.println("seed " + seed);
    topic = new WrittenTopic(directory, "t").with("partitions", "8");
    int[] sizes = {5000, 1, 0, 300, 17, 2500, 40, 900};
    for (int p = 0; p < sizes.length; p++) {
      for (int left = sizes[p]; left > 0; left -= 700) {
        topic.segment(p, Math.min(left, 700));
      }
    }
    topic.commit();
    for (long most : new long[] {1000, 3, 8, 1}) {
      StreamStart start = new StreamStart(
          CheckpointFolders.open(folder.resolve("most" + most).toString(), Map.<String, String>of()::entrySet), random);
      TopicStream stream = new TopicStream(topic.root, options("startingOffsets", "earliest"), start, clock);
      StreamOffsets from = stream.initial();
      long[] waited = new long[8];
      for (int trigger = 0; trigger < 30; trigger++) {
        StreamOffsets to = stream.next(from, TriggerLimits.NONE.offsetsMax(most));
        long taken = 0;
        long left = 0;
        long waiting = 0;
        for (Selection.OffsetRange range : stream.ranges(from, to)) {
          boolean backlog = range.state().end(range.partition()) > range.start();
          waiting += backlog ? 1 : 0;
          waited[range.partition()] = backlog && range.end() == range.start() ? waited[range.partition()] + 1 : 0;
          taken += range.end() - range.start();
          left += range.state().end(range.partition()) - range.start();
        }
        assertEquals(Math.min(most, left), taken);
        for (long rounds : waited) {
          assertTrue(rounds < Math.max(1, (7 + most - 1) / most), "most " + most + ", " + waiting + " wait, trigger " + trigger);
        }
        from = to;
      }
    }
  }

  /** The bytes of the batches that hold offsets [{@code from}, {@code to}), by their true places, and the largest batch. */
  private long[] bytes(List<Selection.OffsetRange> ranges, Map<Integer, TreeMap<Long, Long>> batches) {
    long sum = 0;
    long largest = 0;
    for (Selection.OffsetRange range : ranges) {
      if (range.start() == range.end()) {
        continue;
      }
      TreeMap<Long, Long> of = batches.get(range.partition());
      assertTrue(of.containsKey(range.end()) || range.end() == range.state().end(range.partition()), "cut within a batch: " + range.end());
      for (long size : of.subMap(of.floorKey(range.start()), range.end()).values()) {
        sum += size;
        largest = Math.max(largest, size);
      }
    }
    return new long[] {sum, largest};
  }

  /** By partition and base offset, the bytes of each batch. */
  private Map<Integer, TreeMap<Long, Long>> batches(State state) throws IOException {
    Map<Integer, TreeMap<Long, Long>> batches = new TreeMap<>();
    for (int p = 0; p < state.partitions(); p++) {
      batches.put(p, new TreeMap<>());
      for (Segment segment : state.segments(p)) {
        byte[] file = Files.readAllBytes(directory.resolve("_partlog/t").resolve(segment.file()));
        long base = segment.base();
        for (int at = (int) segment.position(); at < segment.endPosition();) {
          int bytes = io.sparklog.format.BatchHeader.totalBytes(file, at);
          batches.get(p).put(base, (long) bytes);
          base += io.sparklog.format.BatchHeader.lastOffsetDelta(file, at) + 1;
          at += bytes;
        }
      }
    }
    return batches;
  }

  @Test
  void bytesAreExceededByLessThanABatch() throws IOException {
    System.out.println("seed " + seed);
    topic.with("index.interval.bytes", random.nextBoolean() ? "0" : "4096");
    topic.padding = offset -> random.nextInt(offset % 500 < 20 ? 4000 : 60);
    for (int commit = 0; commit < 4; commit++) {
      for (int p = 0; p < 3; p++) {
        if (random.nextInt(4) > 0) {
          topic.segment(p, random.ints(1 + random.nextInt(40), 1, 60).toArray());
        }
      }
      topic.segment(0, 100).commit();
    }
    State state = topic.root.state("t");
    Map<Integer, TreeMap<Long, Long>> batches = batches(state);
    long all = 0;
    for (TreeMap<Long, Long> of : batches.values()) {
      all += of.values().stream().mapToLong(Long::longValue).sum();
    }
    for (int i = 0; i < 30; i++) {
      long most = i == 0 ? 1 : 1 + random.nextLong(all + all / 4);
      TopicStream stream = run("startingOffsets", "earliest");
      // Often within a batch.
      StreamOffsets from = at(topic.json(random.nextInt(50), random.nextInt((int) state.end(1) + 1), 0));
      stream.initial();
      for (StreamOffsets to = null; !from.equals(to);) {
        from = to == null ? from : to;
        to = stream.next(from, TriggerLimits.NONE.bytesMax(most));
        List<Selection.OffsetRange> ranges = stream.ranges(from, to);
        long[] taken = bytes(ranges, batches);
        boolean done = ranges.stream().allMatch(range -> range.end() == range.state().end(range.partition()));
        assertTrue(taken[0] < most + taken[1] || taken[0] == 0, taken[0] + " bytes of " + most + ", largest batch " + taken[1]);
        assertTrue(done || taken[0] >= most, taken[0] + " bytes of " + most + " and more wait");
      }
      assertEquals(topic.json(topic.ends()), from.json());
    }
  }

  @Test
  void bytesAndOffsetsHoldBoth() throws IOException {
    topic.segment(0, WrittenTopic.times(20, 10)).segment(1, WrittenTopic.times(20, 10)).commit();
    TopicStream stream = run("startingOffsets", "earliest");
    StreamOffsets from = stream.initial();
    assertEquals(topic.json(8, 7, 0), stream.next(from, TriggerLimits.NONE.offsetsMax(15).bytesMax(1 << 20)).json());
    // One batch of ten records, of which five.
    assertEquals(5, stream.next(from, TriggerLimits.NONE.offsetsMax(5).bytesMax(1)).of("t").values().stream().mapToLong(n -> n).sum());
  }

  /** By a version, and not by hand. A query that reads all topics must not stumble over the name. */
  @Test
  void aTopicThatIsDeletedIsNotReadAndNotMissed() throws IOException {
    topic.segment(0, 10).commit();
    new WrittenTopic(directory, "u").segment(0, 5).commit();
    TopicStream all = run();
    StreamOffsets begun = all.initial();
    StreamOffsets read = at("{\"t\":{\"0\":10,\"1\":0,\"2\":0},\"u\":{\"0\":5,\"1\":0,\"2\":0}}");
    assertEquals(read, begun);
    String id = topic.root.state("t").topicId();
    new Administration(new TopicWork(new TopicLog(topic.store, "t"), clock, random)).delete(false);
    StreamOffsets others = at("{\"u\":{\"0\":5,\"1\":0,\"2\":0}}");
    for (boolean marked : new boolean[] {true, false}) {
      for (TopicStream run : List.of(all, run())) {
        nowMs += 2000;
        assertFails("STREAM_TOPIC_GONE", () -> run.next(read, TriggerLimits.NONE), id, "checkpoint/sources/0");
      }
      assertEquals(others, runOf("later" + marked).initial());
      assertFails("TOPIC_NOT_FOUND", () -> runOf("named" + marked, "subscribe", "t,u").initial(),
          "Existing topics: " + (marked ? "u" : ""));
      // As when a deletion has got no further than its version.
      Files.deleteIfExists(directory.resolve("_partlog/t/" + Names.deletionMarker(1)));
    }
    TopicStream later = runOf("later");
    assertEquals(others, later.initial());
    topic = new WrittenTopic(directory, "t").segment(0, 100).commit();
    nowMs += 2000;
    assertEquals(at("{\"t\":{\"0\":100},\"u\":{\"0\":5,\"1\":0,\"2\":0}}"), later.next(others, TriggerLimits.NONE));
    assertFails("STREAM_TOPIC_REPLACED", () -> all.next(read, TriggerLimits.NONE), id, topic.root.state("t").topicId());
    assertFails("STREAM_TOPIC_REPLACED", () -> run().next(read, TriggerLimits.NONE), id, topic.root.state("t").topicId());
  }

  private TopicStream runOf(String query, String... keysAndValues) throws IOException {
    StreamStart start = new StreamStart(CheckpointFolders.open(folder.resolve(query).toString(), Map.<String, String>of()::entrySet),
        random);
    return new TopicStream(new Root(Stores.open(directory.toString())), options(keysAndValues), start, clock);
  }
}
