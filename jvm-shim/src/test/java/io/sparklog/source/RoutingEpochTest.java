package io.sparklog.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.sparklog.admin.Administration;
import io.sparklog.kit.BrokenRule;
import io.sparklog.kit.Seed;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.State;
import io.sparklog.read.Split;
import io.sparklog.routing.Routing;
import io.sparklog.spark.Columns;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** The column {@code _routing_epoch}: with the offset, it tells the order of the records of a key. FORMAT.md section A.3. */
final class RoutingEpochTest {
  private static final int SEEDS = Seed.either(1, 40);

  @TempDir
  Path directory;

  private static List<Integer> epochs(State state, int partition) {
    Routing.RoutingEpochs epochs = state.routing().epochs(partition, 0, state.end(partition));
    return LongStream.range(0, state.end(partition)).mapToObj(epochs::at).toList();
  }

  @Test
  void theEpochRisesAtTheCutsOfAPartition() throws IOException {
    WrittenTopic topic = new WrittenTopic(directory, "t").with("partitions", "2");
    topic.segment(0, 2).segment(1, 1).commit();
    assertEquals(List.of(0, 0), epochs(topic.state(), 0), "without slots");
    int slot = IntStream.range(0, 4096).filter(each -> topic.state().routing().table().partition(each) == 1).findFirst().orElseThrow();
    topic.operator().addPartitions(3, Administration.RerouteTime.NOW, false);
    topic.segment(0, 1).segment(2, 1).commit();
    for (int to : List.of(2, 1)) {
      topic.operator().move(topic.state(), new TreeMap<>(Map.of(slot, to)), false);
    }
    topic.segment(0, 1).segment(1, 1).segment(2, 1).commit();
    assertEquals(List.of(0, 0, 3, 3), epochs(topic.state(), 0), "cut by the first re-route alone");
    assertEquals(List.of(0, 3), epochs(topic.state(), 1));
    assertEquals(List.of(1, 3), epochs(topic.state(), 2), "two cuts at one offset");
  }

  @Test
  void aTaskCarriesTheEpochsOfItsOffsetsAlone() throws IOException {
    WrittenTopic topic = new WrittenTopic(directory, "t").with("partitions", "2");
    for (int partitions = 3; partitions < 19; partitions++) {
      topic.segment(0, 10).commit();
      topic.operator().addPartitions(partitions, Administration.RerouteTime.NOW, false);
    }
    Reads reads = Reads.of(directory, "subscribe", "t", "maxRecordsPerPartition", "20");
    reads.splits().forEach(split -> assertNull(split.epochs()));
    PartlogScanBuilder builder = reads.builder();
    builder.pruneColumns(Columns.METADATA);
    List<Split> splits = Reads.splits((PartlogScan) builder.build());
    assertEquals(8, splits.size());
    for (int i = 0; i < splits.size(); i++) {
      Routing.RoutingEpochs epochs = splits.get(i).epochs();
      assertEquals(2 * i, epochs.first());
      assertEquals(1, epochs.rises().length);
    }
  }

  @Test
  void keysAreInOrderByEpochAndOffset() throws IOException {
    long first = Seed.draw();
    for (long seed = first; seed < first + SEEDS; seed++) {
      assertEquals("in order", EpochHistory.run(seed, directory.resolve("seed" + seed)), "seed " + seed);
    }
  }

  static final List<BrokenRule> BROKEN = List.of(
      new BrokenRule(1, "cuts within a split do not count", "routing/Routing.epochs", "past.get(i).cut(partition) < end", "false"),
      new BrokenRule(1, "the record at a cut is from before it", "routing/Routing.RoutingEpochs.at", "offset < rises[0]",
          "offset <= rises[0]"),
      new BrokenRule(0, "re-routes that are forgotten do not count", "routing/Routing.epochs", "int oldest = epoch - past.size();",
          "int oldest = 0;"),
      new BrokenRule(1, "a re-route does not cut the partitions that give slots", "routing/Routing.cut",
          "      givers.forEach(from -> cut[from] = ends[from]);\n", ""));

  @ParameterizedTest
  @FieldSource("BROKEN")
  @Tag("slow")
  void aBrokenRuleIsFound(BrokenRule broken) throws Throwable {
    broken.requireFound(EpochHistory.class, directory.resolve("mutated"));
  }
}
