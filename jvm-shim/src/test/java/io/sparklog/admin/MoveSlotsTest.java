package io.sparklog.admin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.kit.Seed;
import io.sparklog.kit.Writes;
import io.sparklog.log.Checkpoint;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.routing.Routing;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Slots that an operator moves, from the call to the state that readers load. FORMAT.md annex A. */
final class MoveSlotsTest extends CommitsOverFaults {
  private static final ObjectMapper JSON = new ObjectMapper();

  private Administration administration() {
    return new Administration(new TopicWork(new TopicLog(store.store(), "t"), Clock.systemUTC(), random));
  }

  private static byte[] key(int number) {
    return ("k" + number).getBytes(StandardCharsets.UTF_8);
  }

  private static void assertFails(String id, String part, Executable body) {
    PartlogException e = assertThrows(PartlogException.class, body);
    assertEquals(id, e.id(), e.getMessage());
    assertTrue(e.getMessage().contains(part), e.getMessage());
  }

  private Routing routing() {
    return state().routing();
  }

  private JsonNode file(long version) throws IOException {
    return JSON.readTree(Files.readAllLines(root.resolve(version(version))).get(0));
  }

  private interface Planned {
    void run();
  }

  /** A write of records with the keys k0 to k199. */
  private Planned planned(Map<String, String> config) throws IOException {
    LogStore place = Stores.open(root.toString());
    Root driver = new Root(place);
    TopicPlan plan = TopicPlan.of("t", driver.topic("t").latest(), config);
    String txn = Names.identity(random);
    List<TopicReport> reports = new Writes("x", 2, 300, 0, 1 << 14, 64 << 20, 0, 200).reports(place, plan, txn);
    return () -> new TopicCommits(driver, txn, topic -> Once.NEVER, Clock.systemUTC(), random).commit(plan, reports);
  }

  /** Moves the slots of keys. */
  private Changed move(int to, boolean dryRun, byte[]... keys) {
    State state = state();
    TreeMap<Integer, Integer> moves = new TreeMap<>();
    for (byte[] key : keys) {
      moves.put(state.routing().table().slot(state.config().partitioner(), key), to);
    }
    return administration().move(state, moves, dryRun);
  }

  private Changed move(int slot, int to, boolean dryRun) {
    return administration().move(state(), new TreeMap<>(Map.of(slot, to)), dryRun);
  }

  @Test
  void aMoveIsARerouteOfItsSlotsAlone() throws IOException {
    planned(Writes.config()).run();
    int home = state().partition(key(1)).orElseThrow();
    int other = (home + 1) % 4;
    int slot = state().routing().table().slot(state().config().partitioner(), key(1));
    State was = state();
    Planned old = planned(Writes.config());

    assertEquals(other, move(other, true, key(1), key(1)).is().partition(key(1)).orElseThrow());
    assertEquals(0, state().version(), "a dry run changes nothing");
    Changed changed = move(other, false, key(1), key(1));
    assertEquals("[{\"name\":\"routing.slots\",\"binds\":\"keyReaders\"}]", file(1).get("features").toString());
    JsonNode said = file(1).get("routing");
    assertEquals(List.of("1", "4096", "[1,1,1,1]", "[[" + other + "," + slot + "]]"),
        List.of(said.get("epoch").toString(), said.get("slots").toString(), said.get("weights").toString(), said.get("moved").toString()));
    assertEquals(home, changed.was().partition(key(1)).orElseThrow());
    assertEquals(other, changed.is().partition(key(1)).orElseThrow());
    IntStream.range(2, 200)
        .filter(i -> was.routing().table().slot(was.config().partitioner(), key(i)) != slot)
        .forEach(i -> assertEquals(was.partition(key(i)), state().partition(key(i)), "no other slot moves"));
    assertFails("ROUTING_CHANGED", "in routing epoch 1", old::run);

    planned(Writes.config()).run();
    for (int p = 0; p < 4; p++) {
      assertEquals(2, state().segments(p).size());
      assertEquals(p == home, state().home(0, key(1)) == p, "before the move");
      assertEquals(p == other, state().home(1, key(1)) == p, "after it");
      assertTrue(state().segments(p).stream().allMatch(segment -> segment.routed()));
    }
    move(other, false, key(1));
    assertEquals(2, state().version(), "to repeat it changes nothing more");
    TreeMap<Integer, Integer> both = new TreeMap<>(Map.of(slot, other, (slot + 4) % 4096, other));
    assertEquals(home, state().routing().table().partition((slot + 4) % 4096));
    administration().move(state(), both, false);
    assertEquals("[[" + other + "," + (slot + 4) % 4096 + "]]", file(3).get("routing").get("moved").toString(), "that moved before");
  }

  @Test
  void moveThatCannotBeIsRefusedAndNothingChanges() throws IOException {
    planned(Writes.config()).run();
    administration().closePartitions(List.of(3), Administration.RerouteTime.NOW, false);
    for (boolean dryRun : new boolean[] {true, false}) {
      assertFails("PARTITION_CLOSED", "partition 3", () -> move(0, 3, dryRun));
      assertFails("PARTITION_NOT_FOUND", "partition 4", () -> move(0, 4, dryRun));
      assertFails("PARTITION_NOT_FOUND", "partition -1", () -> move(0, -1, dryRun));
      assertFails("OPTION_VALUE", "has the slots 0 to 4095", () -> move(4096, 0, dryRun));
      assertFails("OPTION_VALUE", "has the slots 0 to 4095", () -> move(-1, 0, dryRun));
      assertFails("OPTION_VALUE", "it must name a slot", () -> administration().move(state(), new TreeMap<>(), dryRun));
    }
    State before = state();
    administration().reroute(new TreeMap<>(Map.of(0, 3L)), Administration.RerouteTime.NEXT_WRITE, false);
    assertFails("REROUTE_PENDING", "waits for the next write", () -> move(0, false, key(3)));
    administration().reroute(new TreeMap<>(Map.of(0, 2L)), Administration.RerouteTime.NOW, false);
    assertFails("REROUTED", "in routing epoch 2", () -> administration().move(before, new TreeMap<>(Map.of(0, 2)), false));
    assertEquals(3, state().version());
  }

  @Test
  void aMoveIsForTheSlotsThatItWasPlannedFor() throws IOException {
    TreeMap<String, String> config = Writes.config();
    config.put("partitions", "3");
    planned(config).run();
    State before = state();
    administration().addPartitions(4, Administration.RerouteTime.NOW, false);
    long version = state().version();
    for (int slot : List.of(4097, 4, 1)) {
      TreeMap<Integer, Integer> moves = new TreeMap<>(Map.of(slot, 0));
      assertFails("REROUTED", "in routing epoch 1", () -> administration().move(before, moves, false));
    }
    assertFails("OPTION_VALUE", "has the slots 0 to 4097", () -> administration().move(before, new TreeMap<>(Map.of(-1, 0)), false));
    assertEquals(version, state().version());
  }

  @Test
  void slotWithoutAPartitionCannotMove() throws IOException {
    TreeMap<String, String> config = new TreeMap<>(Writes.config());
    config.put("placement", "on_first_write");
    config.put("placement.slots", "65536");
    planned(config).run();
    int home = state().partition(key(1)).orElseThrow();
    move((home + 1) % 4, false, key(1));
    assertEquals((home + 1) % 4, state().partition(key(1)).orElseThrow());
    byte[] unknown = IntStream.range(200, 300)
        .mapToObj(MoveSlotsTest::key)
        .filter(key -> state().partition(key).isEmpty())
        .findAny()
        .orElseThrow();
    assertFails("OPTION_VALUE", "has no partition yet", () -> move(0, false, unknown));
  }

  /** The partition of each key in each routing epoch that is remembered, beside a table of all of them that this test keeps. */
  @Test
  void aStateKnowsWhereEachKeyWas() throws IOException {
    for (int seed = 0; seed < Seed.either(2, 6); seed++) {
      Random random = new Random(seed);
      planned(Writes.config()).run();
      List<int[]> known = new ArrayList<>(List.of(homes()));
      long version = state().version();
      for (int round = 0; round < 25; round++) {
        int open = random.nextInt(state().partitions());
        byte[][] some = IntStream.range(0, 1 + random.nextInt(8)).mapToObj(i -> key(random.nextInt(20))).toArray(byte[][]::new);
        switch (random.nextInt(6)) {
          case 0 -> administration().addPartitions(state().partitions() + 1, Administration.RerouteTime.NOW, false);
          case 1 -> administration().reroute(new TreeMap<>(Map.of(open, 1L + random.nextInt(5))), Administration.RerouteTime.NOW, false);
          case 2 -> planned(Writes.config()).run();
          case 3 -> Checkpoint.write(store.store(), state(), Names.identity(this.random));
          case 4 -> {
            TreeMap<Integer, Long> offsets = new TreeMap<>();
            IntStream.range(0, state().partitions())
                .forEach(p -> offsets.put(p, state().start(p) + random.nextLong(state().end(p) - state().start(p) + 1)));
            administration().deleteRecords(offsets, new TreeMap<>(), false);
          }
          default -> move(open, false, some);
        }
        State is = state();
        if (is.routing().epoch() >= known.size()) {
          known.add(homes());
        }
        State read = new Root(Stores.open(root.toString())).topic("t").newest().orElseThrow();
        int remembered = read.routing().past().size();
        assertEquals(is.routing().past().size(), remembered);
        for (int after = 0; after <= remembered; after++) {
          int[] expected = known.get(known.size() - 1 - remembered + after);
          for (int i = 0; i < expected.length; i++) {
            for (int p = 0; p < read.partitions(); p++) {
              assertEquals(expected[i] == p, read.home(after, key(i)) == p, "seed " + seed + ", round " + round + ", key " + i);
            }
          }
        }
      }
      assertFalse(version == state().version());
      administration().delete(false);
    }
  }

  /** Where the keys k0 to k19 go now. */
  private int[] homes() {
    return IntStream.range(0, 20).map(i -> state().partition(key(i)).orElseThrow()).toArray();
  }
}
