package io.sparklog.admin;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.kit.Writes;
import io.sparklog.log.Checkpoint;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.routing.Routing;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FaultyStore;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.PendingReroute;
import java.io.IOException;
import java.time.Clock;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** A re-route that waits for the next write, until the write comes, another call takes its place, or it is taken back. FORMAT.md A.6. */
final class PendingRerouteTest extends CommitsOverFaults {
  private Administration administration() {
    return new Administration(new TopicWork(new TopicLog(store.store(), "t"), Clock.systemUTC(), random));
  }

  private static PartlogException assertFails(String id, Executable body) {
    PartlogException e = assertThrows(PartlogException.class, body);
    assertEquals(id, e.id(), e.getMessage());
    return e;
  }

  private Routing routing() {
    return state().routing();
  }

  private static TreeMap<Integer, Long> weights(int... partitionsAndWeights) {
    TreeMap<Integer, Long> weights = new TreeMap<>();
    for (int i = 0; i < partitionsAndWeights.length; i += 2) {
      weights.put(partitionsAndWeights[i], (long) partitionsAndWeights[i + 1]);
    }
    return weights;
  }

  private static String waiting(State state) {
    return state.pendingWeights().map(Arrays::toString).orElse("none");
  }

  @Test
  void aRerouteThatWaitsChangesNothingButIsKnown() throws IOException {
    commit(100, null);
    Changed told = administration().addPartitions(6, Administration.RerouteTime.NEXT_WRITE, true);
    assertEquals(0, state().version());
    assertEquals(told.slots(), administration().addPartitions(6, Administration.RerouteTime.NEXT_WRITE, false).slots());
    assertEquals(List.of(1L, 4L, true), List.of(state().version(), (long) state().partitions(), state().routing().isModulo()));
    administration().addPartitions(6, Administration.RerouteTime.NEXT_WRITE, false);
    assertEquals(1, state().version(), "to repeat it changes nothing more");
    Checkpoint.write(store.store(), state(), Names.identity(random));
    assertEquals("[1, 1, 1, 1, 1, 1]", waiting(state()));
  }

  /** Whichever calls it is about, the newest one counts, and it is about the partitions that there are. */
  @Test
  void aLaterCallTakesThePlaceOfARerouteThatWaits() throws IOException {
    commit(100, null);
    administration().addPartitions(800, Administration.RerouteTime.NEXT_WRITE, false);
    administration().addPartitions(5, Administration.RerouteTime.NEXT_WRITE, false);
    assertEquals("[1, 1, 1, 1, 1]", waiting(state()));
    assertFails("PARTITION_NOT_FOUND", () -> administration().closePartitions(List.of(4), Administration.RerouteTime.NEXT_WRITE, false));
    administration().reroute(weights(3, 3), Administration.RerouteTime.NEXT_WRITE, false);
    assertEquals("[1, 1, 1, 3]", waiting(state()));
    long version = state().version();
    administration().reroute(weights(3, 3), Administration.RerouteTime.NEXT_WRITE, false);
    assertEquals(version, state().version(), "to repeat it changes nothing more");
    administration().closePartitions(List.of(0), Administration.RerouteTime.NOW, false);
    assertEquals(List.of("none", 1), List.of(waiting(state()), routing().epoch()));
    assertArrayEquals(new int[] {0, 1, 1, 1}, routing().weights());
    administration().addPartitions(6, Administration.RerouteTime.NEXT_WRITE, false);
    administration().addPartitions(4, Administration.RerouteTime.NOW, false);
    assertEquals(List.of("none", 1, 4), List.of(waiting(state()), routing().epoch(), state().partitions()), "there are 4 already");
  }

  @Test
  void aRerouteThatWaitsIsTakenBack() throws IOException {
    commit(100, null);
    administration().addPartitions(6, Administration.RerouteTime.NEXT_WRITE, false);
    Changed told = administration().reroute(weights(), Administration.RerouteTime.NEVER, true);
    assertEquals("[1, 1, 1, 1, 1, 1]", waiting(state()));
    assertTrue(told.slots().stream().allMatch(slots -> slots.moved() == 0), told.slots().toString());
    administration().reroute(weights(), Administration.RerouteTime.NEVER, false);
    assertEquals(List.of("none", 2L), List.of(waiting(state()), state().version()));
    administration().closePartitions(List.of(), Administration.RerouteTime.NEVER, false);
    administration().addPartitions(1, Administration.RerouteTime.NEVER, false);
    assertEquals(2, state().version(), "to repeat it changes nothing more");
    administration().addPartitions(6, Administration.RerouteTime.NEXT_WRITE, false);
    administration().reroute(weights(0, 1), Administration.RerouteTime.NEXT_WRITE, false);
    assertEquals("none", waiting(state()), "one to the weights that there are");
  }

  @Test
  void aRerouteThatWaitsEndsWithTheNextOne() throws IOException {
    commit(100, null);
    administration().reroute(weights(0, 3), Administration.RerouteTime.NEXT_WRITE, false);
    administration().reroute(weights(0, 2), Administration.RerouteTime.NOW, false);
    assertEquals(List.of(1, "none"), List.of(routing().epoch(), waiting(state())), "the next write changes nothing more");
    assertArrayEquals(new int[] {2, 1, 1, 1}, routing().weights());
    administration().reroute(weights(0, 3), Administration.RerouteTime.NEXT_WRITE, false);
    long version = state().version();
    TreeMap<Integer, Integer> moves = new TreeMap<>(Map.of(1, 0));
    for (boolean dryRun : new boolean[] {true, false}) {
      PartlogException refused = assertFails("REROUTE_PENDING", () -> administration().move(state(), moves, dryRun));
      assertTrue(refused.getMessage().contains("to the weights [3, 1, 1, 1]"), refused.getMessage());
    }
    assertEquals(version, state().version());
  }

  @Test
  void aTopicThatCannotBeReadIsReroutedByALaterWrite() throws IOException {
    commit(100, null);
    administration().addPartitions(6, Administration.RerouteTime.NEXT_WRITE, false);
    store.fail("list " + TOPIC_FOLDER, 1, FaultyStore.When.BEFORE, new IOException("no"));
    TopicLog log = new TopicLog(store.store(), "t");
    assertTrue(PendingReroute.apply(log, Clock.systemUTC(), random).isPresent());
    assertEquals(4, state().partitions());
    assertTrue(PendingReroute.apply(log, Clock.systemUTC(), random).isPresent());
    assertEquals(6, state().partitions());
  }

  /** Thousands of numbers of one digit fit into a value, and as many of seven do not. */
  @Test
  void theWeightsOfManyPartitionsAreAskedFor() throws IOException {
    TreeMap<String, String> config = Writes.config();
    config.put("partitions", "4096");
    administration().create(TopicConfig.of(config), Names.identity(random));
    administration().closePartitions(List.of(7), Administration.RerouteTime.NEXT_WRITE, false);
    assertEquals(4096, state().pendingWeights().orElseThrow().length);
    TreeMap<Integer, Long> heavy = new TreeMap<>();
    IntStream.range(0, 4096).forEach(p -> heavy.put(p, 1_000_000L));
    PartlogException refused = assertFails("OPTION_VALUE",
        () -> administration().reroute(heavy, Administration.RerouteTime.NEXT_WRITE, false));
    assertTrue(refused.getMessage().contains("it must be now"), refused.getMessage());
  }
}
