package io.sparklog.stream;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.kit.BrokenRule;
import io.sparklog.kit.StreamRuns;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.commons.io.FileUtils;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** A stream over re-routes: a partition waits for the partitions that gave it slots, so each key comes in order. FORMAT.md section A.9. */
final class BarrierTest extends StreamRuns {
  @Test
  void aMicroBatchEndsAtTheCutsOfPartitionsThatTakeSlots() throws IOException {
    topic.segment(0, 10).segment(1, 20).segment(2, 5).commit();
    TopicStream stream = run("startingOffsets", "earliest");
    StreamOffsets from = stream.initial();
    topic.operator().addPartitions(5, Administration.RerouteTime.NOW, false);
    topic.segment(0, 3).segment(3, 4).commit();
    topic.operator().closePartitions(List.of(1), Administration.RerouteTime.NOW, false);
    topic.segment(0, 1).segment(4, 6).commit();
    List<String> ends = new ArrayList<>();
    for (int batch = 0; batch < 4; batch++) {
      from = stream.next(from, TriggerLimits.NONE);
      ends.add(from.json());
    }
    String all = "{\"t\":{\"0\":14,\"1\":20,\"2\":5,\"3\":4,\"4\":6}}";
    assertEquals(List.of(topic.json(13, 20, 5), all, all, all), ends);
  }

  /** Nothing is added before a cut: the rest there does not wait for as many offsets as a trigger shall have. */
  @Test
  void whatIsLeftBeforeACutDoesNotWait() throws IOException {
    topic.segment(0, 10).commit();
    TopicStream stream = run("startingOffsets", "earliest");
    TriggerLimits limits = TriggerLimits.of(options("minOffsetsPerTrigger", "8", "maxTriggerDelay", "1m"));
    StreamOffsets first = stream.next(stream.initial(), limits);
    topic.segment(0, 1).segment(1, 1).commit();
    topic.operator().closePartitions(List.of(1), Administration.RerouteTime.NOW, false);
    assertEquals(first, stream.next(first, limits));
    topic.segment(0, 7).commit();
    assertEquals(topic.json(11, 1, 0), stream.next(first, limits).json());
  }

  /** Slots move from partition 1 to partition 2 and back: partition 0 is read as if nothing had moved. */
  @Test
  void otherPartitionsAreNotCut() throws IOException {
    topic.segment(0, 10).segment(1, 10).segment(2, 10).commit();
    int slot = IntStream.range(0, 4096).filter(each -> each % 3 == 1).findFirst().orElseThrow();
    for (int n = 0; n < 10; n++) {
      topic.operator().move(topic.state(), new TreeMap<>(Map.of(slot, 2 - n % 2)), false);
      topic.segment(0, 1).segment(2 - n % 2, 1).commit();
    }
    TopicStream stream = run("startingOffsets", "earliest");
    StreamOffsets first = stream.next(stream.initial(), TriggerLimits.NONE);
    assertEquals(topic.json(20, 10, 10), first.json());
    StreamOffsets from = first;
    int batches = 1;
    for (StreamOffsets to = stream.next(from, TriggerLimits.NONE); !to.equals(from); to = stream.next(from, TriggerLimits.NONE)) {
      from = to;
      batches++;
    }
    assertEquals(List.of(topic.json(20, 15, 15), 11), List.of(from.json(), batches));
    assertArrayEquals(new long[] {0, 14, 15}, topic.state().routing().past().get(9).cut());
  }

  /** A partition that the query did not read before the cut, and will not read, keeps nothing from being read. */
  @Test
  void partitionsThatAreNotReadAreNotWaitedFor() throws IOException {
    topic.segment(0, 10).segment(1, 20).commit();
    topic.operator().addPartitions(5, Administration.RerouteTime.NOW, false);
    topic.segment(3, 4).commit();
    TopicStream assigned = run("assign", "{\"t\":[0,3]}", "startingOffsets", "latest");
    StreamOffsets from = assigned.initial();
    topic.segment(3, 2).commit();
    assertEquals("{\"t\":{\"0\":10,\"3\":6}}", assigned.next(from, TriggerLimits.NONE).json());
  }

  /** {@code mvn … -Dreroutes.seeds=20000 -Dreroutes.seed=0} takes more of them. */
  @Test
  void keysComeInOrderOverRandomReroutesWhileRecordsExpire() throws IOException {
    ReroutedHistory.overtaken = 0;
    ReroutedHistory.lost = 0;
    long first = Long.getLong("reroutes.seed", 0);
    int seeds = Integer.getInteger("reroutes.seeds", 6);
    for (long seed = first; seed < first + seeds; seed++) {
      Path its = folder.resolve("seed" + seed);
      assertEquals("in order", ReroutedHistory.run(seed, its), "seed " + seed);
      FileUtils.deleteDirectory(its.toFile());
      if ((seed + 1) % 100 == 0) {
        System.out.println(seed + ": " + ReroutedHistory.overtaken + " cuts overtaken, " + ReroutedHistory.lost + " records lost");
      }
    }
    assertTrue(ReroutedHistory.overtaken > 0);
    assertTrue(ReroutedHistory.lost > 0);
  }

  static final List<BrokenRule> BROKEN = List.of(
      new BrokenRule(0, "there is no barrier", "stream/TopicStream.found", "taken(Barrier.before(waiting), limits)",
          "taken(waiting, limits)"),
      new BrokenRule(0, "one partition that has passed is enough", "stream/Barrier.find", "from.stream().allMatch(",
          "from.stream().anyMatch("),
      new BrokenRule(0, "a micro-batch ends behind the cut", "stream/Barrier.find", "ends.putIfAbsent(partition, past.cut(partition))",
          "ends.putIfAbsent(partition, past.cut(partition) + 1)"),
      new BrokenRule(37, "a partition need not pass the re-routes that gave it slots before", "stream/Barrier.passes",
          " && !ends.containsKey(giver)", ""),
      new BrokenRule(0, "a re-route has no cut", "log/Replay.routing", "Arrays.copyOf(head.ends(), partitions)", "new long[partitions]"));

  @ParameterizedTest
  @FieldSource("BROKEN")
  @Tag("slow")
  void aBrokenRuleIsFound(BrokenRule broken) throws Throwable {
    broken.requireFound(ReroutedHistory.class, folder.resolve("mutated"));
  }
}
