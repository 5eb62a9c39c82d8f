package io.sparklog.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.StreamRuns;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.State;
import io.sparklog.partition.Router;
import io.sparklog.read.OffsetBounds;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** A stream over re-routes: no micro-batch goes over one, and so each key comes in order. FORMAT.md section 9. */
final class BarrierTest extends StreamRuns {
  private static final int KEYS = 25;

  @Test
  void aMicroBatchEndsAtTheCutOfEveryPartition() throws IOException {
    topic.segment(0, 10).segment(1, 20).segment(2, 5).commit();
    TopicStream stream = run("startingOffsets", "earliest");
    StreamOffsets from = stream.initial();
    topic.operator().addPartitions(5, false, false, false);
    topic.segment(0, 3).segment(3, 4).commit();
    topic.operator().closePartitions(List.of(1), false, false);
    topic.segment(0, 1).segment(4, 6).commit();
    List<String> ends = new ArrayList<>();
    for (int batch = 0; batch < 4; batch++) {
      from = stream.next(from, TriggerLimits.NONE);
      ends.add(from.json());
    }
    assertEquals(List.of(topic.json(10, 20, 5), "{\"t\":{\"0\":13,\"1\":20,\"2\":5,\"3\":4}}",
        "{\"t\":{\"0\":14,\"1\":20,\"2\":5,\"3\":4,\"4\":6}}", "{\"t\":{\"0\":14,\"1\":20,\"2\":5,\"3\":4,\"4\":6}}"), ends);
  }

  /** Nothing is added before a cut: the rest there does not wait for as many offsets as a trigger shall have. */
  @Test
  void whatIsLeftBeforeACutDoesNotWait() throws IOException {
    topic.segment(0, 10).commit();
    TopicStream stream = run("startingOffsets", "earliest");
    TriggerLimits limits = TriggerLimits.of(options("minOffsetsPerTrigger", "8", "maxTriggerDelay", "1m"));
    StreamOffsets first = stream.next(stream.initial(), limits);
    topic.segment(0, 1).commit();
    topic.operator().addPartitions(5, false, false, false);
    assertEquals(first, stream.next(first, limits));
    topic.segment(0, 7).commit();
    assertEquals(topic.json(11, 0, 0), stream.next(first, limits).json());
  }

  /** A partition that the query did not read before the cut, and will not read, keeps nothing from being read. */
  @Test
  void partitionsThatAreNotReadAreNotWaitedFor() throws IOException {
    topic.segment(0, 10).segment(1, 20).commit();
    topic.operator().addPartitions(5, false, false, false);
    topic.segment(3, 4).commit();
    TopicStream assigned = run("assign", "{\"t\":[0,3]}", "startingOffsets", "latest");
    StreamOffsets from = assigned.initial();
    topic.segment(3, 2).commit();
    assertEquals("{\"t\":{\"0\":10,\"3\":6}}", assigned.next(from, TriggerLimits.NONE).json());
  }

  @Test
  void keysComeInOrderOverRandomReroutes() throws IOException {
    System.out.println("seed " + seed);
    for (int round = 0; round < 30; round++) {
      topic = new WrittenTopic(directory, "t" + round);
      new History("t" + round).run();
    }
  }

  /** A topic whose records have keys and numbers that rise for each key, and a query that reads it while it is written. */
  private final class History {
    private final String name;
    private final List<List<int[]>> records = new ArrayList<>();
    private final int[] written = new int[KEYS];
    private final int[] read = new int[KEYS];
    private StreamOffsets from;
    private TopicStream stream;

    private History(String name) throws IOException {
      this.name = name;
      write();
      start();
      from = stream.initial();
    }

    private void start() throws IOException {
      StreamStart start = new StreamStart(
          io.sparklog.storage.CheckpointFolders.open("file:" + folder.resolve("checkpoint/" + name), Map.<String, String>of()::entrySet),
          random);
      stream = new TopicStream(topic.root,
          options(from == null ? new String[] {"subscribe", name, "startingOffsets", "earliest"} : new String[] {"subscribe", name}), start,
          clock);
    }

    private void run() throws IOException {
      for (int step = 0; step < 60; step++) {
        switch (random.nextInt(6)) {
          case 0, 1 -> write();
          case 2 -> reroute();
          case 3 -> start();
          default -> micro(random.nextBoolean() ? TriggerLimits.NONE : TriggerLimits.NONE.offsetsMax(1 + random.nextInt(40)));
        }
      }
      StreamOffsets before = null;
      while (!from.equals(before)) {
        before = from;
        micro(TriggerLimits.NONE);
      }
      for (int key = 0; key < KEYS; key++) {
        assertEquals(written[key], read[key], "of key " + key);
      }
    }

    private void write() throws IOException {
      Router router = topic.root.topic(name).newest().map(State::router).orElse(new Router(io.sparklog.partition.Partitioner.MURMUR3, 3));
      TreeMap<Integer, Integer> counts = new TreeMap<>();
      for (int i = random.nextInt(60); i >= 0; i--) {
        int key = random.nextInt(KEYS);
        byte[] bytes = ("key " + key).getBytes(StandardCharsets.UTF_8);
        int partition = router.ofKey(bytes, 0, bytes.length);
        while (records.size() <= partition) {
          records.add(new ArrayList<>());
        }
        records.get(partition).add(new int[] {key, ++written[key]});
        counts.merge(partition, 1, Integer::sum);
      }
      for (Map.Entry<Integer, Integer> each : counts.entrySet()) {
        topic.segment(each.getKey(), each.getValue());
      }
      topic.commit();
    }

    private void reroute() {
      State state = topic.state();
      List<Integer> open = IntStream.range(0, state.partitions()).filter(state.router()::isOpen).boxed().toList();
      int one = open.get(random.nextInt(open.size()));
      switch (random.nextInt(3)) {
        case 0 -> topic.operator().addPartitions(state.partitions() + 1 + random.nextInt(3), false, false, false);
        case 1 -> topic.operator().reroute(new TreeMap<>(Map.of(one, 1L + random.nextInt(4))), false, false);
        default -> {
          if (open.size() > 1) {
            topic.operator().closePartitions(List.of(one), false, false);
          }
        }
      }
    }

    /** Reads a micro-batch: of each key, from one partition, what comes next. */
    private void micro(TriggerLimits limits) throws IOException {
      StreamOffsets to = stream.next(from, limits);
      Map<Integer, Set<Integer>> partitions = new HashMap<>();
      for (OffsetBounds.Range range : stream.ranges(from, to)) {
        for (long offset = range.start(); offset < range.end(); offset++) {
          int[] record = records.get(range.partition()).get((int) offset);
          partitions.computeIfAbsent(record[0], key -> new HashSet<>()).add(range.partition());
          assertEquals(read[record[0]] + 1, record[1], "of key " + record[0] + ", at " + range.partition() + ":" + offset);
          read[record[0]]++;
        }
      }
      assertTrue(partitions.values().stream().allMatch(its -> its.size() == 1), () -> "a key comes from several partitions: " + partitions);
      from = to;
    }
  }
}
