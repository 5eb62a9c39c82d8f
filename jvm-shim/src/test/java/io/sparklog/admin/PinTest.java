package io.sparklog.admin;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.kit.Writes;
import io.sparklog.log.Checkpoint;
import io.sparklog.log.Names;
import io.sparklog.log.Root;
import io.sparklog.log.Routing;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.partition.Pins;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.Piece;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Keys that are pinned to partitions, from the operator to the state that readers load. FORMAT.md sections 5, 6, 7 and 13. */
final class PinTest extends CommitsOverFaults {
  private static final ObjectMapper JSON = new ObjectMapper();

  private Administration administration() {
    return new Administration(new TopicWork(new TopicLog(store.store(), "t"), Clock.systemUTC(), random));
  }

  private static List<byte[]> keys(String... keys) {
    return Arrays.stream(keys).map(key -> key.getBytes(StandardCharsets.UTF_8)).toList();
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
    return state().routing().orElseThrow();
  }

  private JsonNode file(long version) throws IOException {
    return JSON.readTree(Files.readAllLines(root.resolve(version(version))).get(0));
  }

  private interface Planned {
    void run();
  }

  /** A write of records with the keys k0 to k199. */
  private Planned planned() throws IOException {
    LogStore place = Stores.open(root.toString());
    Root driver = new Root(place);
    TopicPlan plan = TopicPlan.of("t", driver.topic("t").latest(), Writes.config());
    String txn = Names.identity(random);
    List<List<Piece>> pieces = new Writes("x", 2, 300, 0, 1 << 14, 64 << 20, 0, 200).pieces(place, plan, txn);
    return () -> new TopicCommits(driver, txn, topic -> Once.NEVER, Clock.systemUTC(), random).commit(plan, pieces);
  }

  @Test
  void aPinIsARerouteOfItsKeyAlone() throws IOException {
    planned().run();
    assertEquals("[]", file(0).get("features").toString());
    int home = state().partition(key(1)).orElseThrow();
    int other = (home + 1) % 4;
    State was = state();
    Planned old = planned();

    Changed changed = administration().pin(keys("k1", "k1", "new"), other, false);
    assertEquals("[\"slots\",\"pins\"]", file(1).get("features").toString());
    JsonNode said = file(1).get("routing");
    assertEquals("[[\"6b31\"," + other + "],[\"6e6577\"," + other + "]]", said.get("pins").toString());
    assertEquals(List.of("1", "4096", "[]"),
        List.of(said.get("epoch").toString(), said.get("slots").toString(), said.get("moved").toString()));
    assertEquals(home, changed.was().partition(key(1)).orElseThrow());
    assertEquals(other, changed.is().partition(key(1)).orElseThrow());
    IntStream.range(2, 200).forEach(i -> assertEquals(was.partition(key(i)), state().partition(key(i)), "no other key moves"));
    assertFails("ROUTING_CHANGED", "in routing epoch 1", old::run);

    planned().run();
    for (int p = 0; p < 4; p++) {
      assertEquals(2, state().segments(p).size());
      assertEquals(p == home, state().mayHold(p, 0, key(1)), "before the pin");
      assertEquals(p == other, state().mayHold(p, 1, key(1)), "after it");
      assertTrue(state().segments(p).stream().allMatch(segment -> segment.routed()));
    }
    assertEquals("[\"slots\",\"pins\"]", file(2).get("features").toString());
    administration().pin(keys("k1", "new"), other, false);
    assertEquals(2, state().version(), "to repeat it changes nothing more");

    Checkpoint.write(store.store(), state(), Names.identity(random));
    State loaded = new Root(Stores.open(root.toString())).topic("t").newest().orElseThrow();
    assertEquals(2, loaded.checkpointVersion());
    assertEquals(routing().pins(), loaded.slots().pins());
    assertEquals(2, loaded.slots().pins().size());

    administration().unpin(keys("k1", "never had one"), false);
    assertEquals("[[\"6b31\",null]]", file(3).get("routing").get("pins").toString());
    assertEquals(home, state().partition(key(1)).orElseThrow());
    assertEquals(List.of(true, true, false, false), List.of(state().mayHold(home, 0, key(1)), state().mayHold(other, 1, key(1)),
        state().mayHold(home, 1, key(1)), state().mayHold(other, 2, key(1))));
    assertEquals("[\"slots\",\"pins\"]", file(3).get("features").toString());
  }

  @Test
  void whatCannotBeIsRefusedAndNothingChanges() throws IOException {
    planned().run();
    administration().closePartitions(List.of(3), false, false);
    administration().pin(keys("k1", "k2"), 1, false);
    long version = state().version();
    for (boolean dryRun : new boolean[] {true, false}) {
      assertFails("PARTITION_CLOSED", "partition 3", () -> administration().pin(keys("k3"), 3, dryRun));
      assertFails("PARTITION_NOT_FOUND", "partition 4", () -> administration().pin(keys("k3"), 4, dryRun));
      assertFails("PARTITION_NOT_FOUND", "partition -1", () -> administration().pin(keys("k3"), -1, dryRun));
      assertFails("OPTION_VALUE", "1025 bytes", () -> administration().pin(List.of(new byte[1025]), 0, dryRun));
      assertFails("OPTION_VALUE", "it must name a key", () -> administration().pin(List.of(), 0, dryRun));
      assertFails("OPTION_VALUE", "it must name a key", () -> administration().unpin(List.of(), dryRun));
      assertFails("OPTION_VALUE", "partition 1 has 2 pinned keys", () -> administration().closePartitions(List.of(0, 1), false, dryRun));
      assertFails("OPTION_VALUE", "partition 1 has 2 pinned keys", () -> administration().closePartitions(List.of(1), true, dryRun));
      List<byte[]> many = IntStream.range(0, Pins.COUNT_MAX).mapToObj(PinTest::key).toList();
      assertFails("OPTION_VALUE", "would have 10001 pins", () -> {
        List<byte[]> more = new ArrayList<>(many);
        more.add(new byte[0]);
        administration().pin(more, 0, dryRun);
      });
    }
    administration().reroute(new TreeMap<>(Map.of(0, 3L)), true, false);
    assertFails("REROUTED", "is to be re-routed before the next write", () -> administration().pin(keys("k3"), 0, false));
    assertEquals(version + 1, state().version());
    assertEquals(2, routing().pins().size());
  }

  @Test
  void asManyPinsAsCanBe() throws IOException {
    planned().run();
    List<byte[]> many = IntStream.range(0, Pins.COUNT_MAX).mapToObj(PinTest::key).toList();
    administration().pin(many, 2, false);
    assertEquals(Pins.COUNT_MAX, routing().pins().size());
    assertArrayEquals(new int[] {0, 0, Pins.COUNT_MAX, 0}, routing().pins().counts(4));
    assertFails("OPTION_VALUE", "would have 10001 pins", () -> administration().pin(keys("one more"), 0, false));
    administration().pin(many.subList(0, 5000), 1, false);
    administration().unpin(many.subList(4000, 6000), false);
    administration().pin(keys("one more"), 0, false);
    assertArrayEquals(new int[] {1, 4000, 4000, 0}, routing().pins().counts(4));
  }

  @Test
  void aTopicThatBeginsAnewHasNoPins() throws IOException {
    planned().run();
    administration().pin(keys("k1"), 1, false);
    administration().delete(false);
    planned().run();
    assertTrue(state().routing().isEmpty());
    assertEquals("[]", file(state().version()).get("features").toString());
  }

  /** The partition of each key in each routing epoch that is remembered, beside a table of all of them that this test keeps. */
  @Test
  void aStateKnowsWhereEachKeyWas() throws IOException {
    for (int seed = 0; seed < 6; seed++) {
      Random random = new Random(seed);
      planned().run();
      List<int[]> known = new ArrayList<>(List.of(homes()));
      long version = state().version();
      for (int round = 0; round < 25; round++) {
        int open = random.nextInt(state().partitions());
        List<byte[]> some = IntStream.range(0, 1 + random.nextInt(8)).mapToObj(i -> key(random.nextInt(20))).toList();
        switch (random.nextInt(7)) {
          case 0 -> administration().addPartitions(state().partitions() + 1, false, false, false);
          case 1 -> administration().reroute(new TreeMap<>(Map.of(open, 1L + random.nextInt(5))), false, false);
          case 2 -> planned().run();
          case 3 -> Checkpoint.write(store.store(), state(), Names.identity(this.random));
          case 4 -> administration().unpin(some, false);
          case 5 -> {
            TreeMap<Integer, Long> offsets = new TreeMap<>();
            IntStream.range(0, state().partitions())
                .forEach(p -> offsets.put(p, state().start(p) + random.nextLong(state().end(p) - state().start(p) + 1)));
            administration().deleteRecords(offsets, new TreeMap<>(), false);
          }
          default -> administration().pin(some, open, false);
        }
        State is = state();
        if (is.slots().epoch() >= known.size()) {
          known.add(homes());
        }
        State read = new Root(Stores.open(root.toString())).topic("t").newest().orElseThrow();
        int remembered = read.slots().past().size();
        assertEquals(is.slots().past().size(), remembered);
        for (int after = 0; after <= remembered; after++) {
          int[] expected = known.get(known.size() - 1 - remembered + after);
          for (int i = 0; i < expected.length; i++) {
            for (int p = 0; p < read.partitions(); p++) {
              assertEquals(expected[i] == p, read.mayHold(p, after, key(i)), "seed " + seed + ", round " + round + ", key " + i);
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
