package io.sparklog.write;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.sparklog.admin.Administration;
import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.kit.Writes;
import io.sparklog.log.Checkpoint;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.routing.Bindings;
import io.sparklog.routing.Partitioner;
import io.sparklog.routing.Routing;
import io.sparklog.routing.SlotTable;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Slots that get a partition when they are first written. FORMAT.md section 7 and annex A. */
final class BindingTest extends CommitsOverFaults {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int KEYS = 40;
  private static final long FOR_EVER = 999_999_999_999_999_999L;
  private static final String SHARES = "placement.shares";

  private static TreeMap<String, String> config() {
    TreeMap<String, String> config = Writes.config();
    config.put("placement", "on_first_write");
    return config;
  }

  private Administration administration() {
    return new Administration(new TopicWork(new TopicLog(store.store(), "t"), Clock.systemUTC(), random));
  }

  /** Shares the slots that get a partition next in this way, in the routing epoch of now. */
  private void share(long untilMs, int... shares) {
    String listed = Arrays.stream(shares).mapToObj(Integer::toString).collect(Collectors.joining(","));
    administration().configure(Map.of(SHARES, routing().epoch() + ":" + untilMs + ":" + listed));
  }

  private static TreeMap<Integer, Long> byPartition(long... shares) {
    TreeMap<Integer, Long> all = new TreeMap<>();
    IntStream.range(0, shares.length).filter(p -> shares[p] > 0).forEach(p -> all.put(p, shares[p]));
    return all;
  }

  private interface Planned {
    void run();
  }

  /** A write of two tasks, planned at {@code nowMs} and staged, which commits when it runs. */
  private Planned planned(int keys, long nowMs) throws IOException {
    return planned(keys, nowMs, config());
  }

  private Planned planned(int keys, long nowMs, TreeMap<String, String> config) throws IOException {
    LogStore place = Stores.open(root.toString());
    Root driver = new Root(place);
    TopicPlan plan = TopicPlan.of("t", driver.topic("t").latest(), config, false, nowMs);
    String txn = Names.identity(random);
    List<TopicReport> reports = new Writes("x", 2, 2 * keys, 0, 1 << 14, 64 << 20, 0, keys).reports(place, plan, txn);
    return () -> new TopicCommits(driver, txn, topic -> Once.NEVER, Clock.systemUTC(), random).commit(plan, reports);
  }

  private void write(int keys) throws IOException {
    planned(keys, 0).run();
  }

  private static int bytes(Object sent) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(sent);
    }
    return bytes.size();
  }

  private JsonNode routing(long version) throws IOException {
    return JSON.readTree(Files.readAllLines(root.resolve(version(version))).get(0)).path("routing");
  }

  private Routing routing() {
    return state().routing();
  }

  private int[] homes(int keys) {
    SlotTable table = routing().table();
    return IntStream.range(0, keys)
        .map(i -> table.partition(table.slot(Partitioner.MURMUR3, ("k" + i).getBytes(StandardCharsets.UTF_8))))
        .toArray();
  }

  private static long bound(State state) {
    SlotTable table = state.routing().table();
    return IntStream.range(0, table.slots()).filter(slot -> table.partition(slot) != SlotTable.UNBOUND).count();
  }

  private static void assertRefused(String id, org.junit.jupiter.api.function.Executable body) {
    PartlogException e = assertThrows(PartlogException.class, body);
    assertEquals(id, e.id(), e.getMessage());
  }

  @Test
  void theFirstWriteOfAKeyBindsItsSlotAndNoOther() throws IOException {
    write(10);
    assertEquals(65_536, routing().table().slots());
    assertEquals(10, bound(state()));
    int[] first = homes(10);
    write(KEYS);
    assertTrue(routing(1).path("binds").booleanValue());
    assertEquals(KEYS, bound(state()));
    assertArrayEquals(first, homes(10));
    write(KEYS);
    assertTrue(routing(2).isMissingNode(), "nothing is new");
    assertEquals(0, routing().epoch());
    assertTrue(routing().past().isEmpty(), "a binding cuts nothing");
    for (List<Segment> segments : state().segments()) {
      assertTrue(segments.stream().allMatch(Segment::routed));
    }
  }

  /** One bit for each slot of the topic is enough, however many a task has used; and four bytes for a single one. */
  @Test
  void theSlotsThatATaskHasUsedAreAShortReport() throws IOException {
    for (int keys : new int[] {1, 150_000}) {
      TopicPlan plan = TopicPlan.of("t", Optional.empty(), config(), false, 0);
      TopicReport report = new Writes("x", 1, keys, 0, 1 << 14, 64 << 20, 0, keys).reports(store.store(), plan, Names.identity(random))
          .get(0);
      int bytes = bytes(report.usedSlots());
      System.out.println("slots used by " + keys + " keys: " + bytes + " bytes");
      assertTrue(!report.usedSlots().isEmpty() && bytes < (keys == 1 ? 0 : 65_536 / 8) + 400, keys + " keys: " + bytes + " bytes");
    }
  }

  @Test
  void theStateIsThatOfACheckpointToo() throws IOException {
    write(10);
    administration().reroute(byPartition(3), Administration.RerouteTime.NOW, false);
    write(KEYS);
    share(FOR_EVER, 1, 0, 2, 0);
    write(KEYS + 5);
    State replayed = state();
    Checkpoint.write(store.store(), replayed, Names.identity(random));
    for (long gone = 0; gone < replayed.version(); gone++) {
      Files.delete(root.resolve(version(gone)));
    }
    State loaded = state();
    assertEquals(replayed.routing().table(), loaded.routing().table());
    assertArrayEquals(new int[] {1, 0, 2, 0}, loaded.shares(0).orElseThrow());
    assertEquals(replayed.routing().past().size(), loaded.routing().past().size());
    for (int slot = 0; slot < loaded.routing().table().slots(); slot++) {
      assertEquals(replayed.routing().table(0).partition(slot), loaded.routing().table(0).partition(slot));
    }
  }

  @Test
  void writersWithEqualSharesNeverContradict() throws IOException {
    write(5);
    Planned one = planned(KEYS, 0);
    Planned other = planned(KEYS + 10, 0);
    one.run();
    other.run();
    assertEquals(KEYS + 10, bound(state()));
    assertEquals(10, IntStream.range(0, routing(2).path("moved").size()).map(i -> {
      try {
        return routing(2).path("moved").get(i).size() - 1;
      } catch (IOException e) {
        throw new java.io.UncheckedIOException(e);
      }
    }).sum(), "the second binds only what the first has not");
  }

  /** A write chooses the partitions of its slots once, however many writers are before it: to be asked again takes no choice. */
  @Test
  void aLostRaceForAVersionCostsNoChoiceAgain() throws IOException {
    TreeMap<String, String> config = config();
    config.put("partitions", "500");
    planned(1, 0, config).run();
    TopicPlan plan = TopicPlan.of("t", Optional.of(state()), config, false, 0);
    BitSet slots = new BitSet();
    slots.set(0, 30_000);
    String txn = Names.identity(random);
    TopicReport one = new Writes("x", 1, 1, 0, 1 << 14, 64 << 20, 0, 1).reports(store.store(), plan, txn).get(0);
    TopicReport many = new TopicReport(one.pieces(), new Bindings.SlotSet(slots));
    Append append = new Append(new Root(store.store()), plan, txn, Once.NEVER, List.of(many), false, null, random);
    append.prepare();
    append.next(Optional.of(state()));
    ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    long again = Long.MAX_VALUE;
    for (int i = 0; i < 5; i++) { // The first may load classes.
      long begin = threads.getCurrentThreadCpuTime();
      append.next(Optional.of(state()));
      again = Math.min(again, threads.getCurrentThreadCpuTime() - begin);
    }
    long begin = threads.getCurrentThreadCpuTime();
    slots.stream().forEach(plan.router()::place);
    long choices = threads.getCurrentThreadCpuTime() - begin;
    System.out.println("asked again: " + again / 1000 + " us of the processor; the choices: " + choices / 1000 + " us");
    assertTrue(4 * again < choices, again + " ns beside " + choices + " ns for the choices");
  }

  @Test
  void writersThatCreateTheTopicAtOnce() throws IOException {
    Planned one = planned(KEYS, 0);
    Planned other = planned(KEYS, 0);
    one.run();
    other.run();
    assertEquals(KEYS, bound(state()));
    assertEquals(2 * 2 * 2 * KEYS, Arrays.stream(state().ends()).sum());
  }

  @Test
  void aTopicHasAsManySlotsAsItsCreatorSays() throws IOException {
    TreeMap<String, String> config = config();
    config.put("placement.slots", "1048576");
    Planned other = planned(KEYS, 0);
    planned(KEYS, 0, config).run();
    assertEquals(1 << 20, routing().table().slots());
    assertEquals(KEYS, bound(state()));
    assertRefused("ROUTING_CHANGED", other::run);
    write(2 * KEYS);
    assertEquals(2 * KEYS, bound(state()));
    State replayed = state();
    Checkpoint.write(store.store(), replayed, Names.identity(random));
    Files.delete(root.resolve(version(0)));
    assertEquals(replayed.routing().table(), state().routing().table());
    assertRefused("OPTION_VALUE", () -> administration().configure(Map.of("placement.slots", "65536")));
  }

  @Test
  void aWriterThatHasChosenOtherwiseIsRefusedAndLeavesNothing() throws IOException {
    write(5);
    Planned old = planned(KEYS, 0);
    share(FOR_EVER, 0, 0, 0, 1);
    write(KEYS);
    State before = state();
    assertRefused("ROUTING_CHANGED", old::run);
    assertEquals(before.version(), state().version());
    for (int i = 5; i < KEYS; i++) {
      assertEquals(3, homes(KEYS)[i]);
    }
    write(KEYS);
    assertEquals(KEYS, bound(state()));
  }

  @Test
  void sharesHaveEffectUntilTheirTime() throws IOException {
    write(1);
    long until = System.currentTimeMillis() + 3_600_000;
    share(until, 0, 1, 0, 0);
    planned(KEYS, until - 1).run();
    assertTrue(Arrays.stream(homes(KEYS)).skip(1).allMatch(home -> home == 1));
    planned(2 * KEYS, until).run();
    assertEquals(Set.of(0, 1, 2, 3), Set.copyOf(Arrays.stream(homes(2 * KEYS)).boxed().toList()));
    assertTrue(Arrays.stream(homes(KEYS)).skip(1).allMatch(home -> home == 1), "what is bound stays");
  }

  @Test
  void aRerouteMovesBoundSlotsAloneAndEndsTheShares() throws IOException {
    write(KEYS);
    share(FOR_EVER, 1, 0, 0, 0);
    Planned old = planned(KEYS + 5, 0);
    administration().addPartitions(5, Administration.RerouteTime.NOW, false);
    assertEquals(Optional.empty(), state().shares(0));
    assertEquals(KEYS, bound(state()));
    assertEquals(List.of(8, 8, 8, 8, 8), Arrays.stream(routing().table().counts(5)).boxed().toList());
    assertRefused("ROUTING_CHANGED", old::run);
    administration().closePartitions(Set.of(0), Administration.RerouteTime.NOW, false);
    write(4 * KEYS);
    assertEquals(0, routing().table().counts(5)[0]);
    assertEquals(4 * KEYS, bound(state()));
  }

  @Test
  void sharesEndNoRerouteThatWaits() throws IOException {
    write(1);
    administration().delete(false);
    write(KEYS);
    assertEquals(KEYS, bound(state()));
    administration().closePartitions(Set.of(1, 2), Administration.RerouteTime.NEXT_WRITE, false);
    share(FOR_EVER, 1, 1, 0, 0);
    assertArrayEquals(new int[] {1, 0, 0, 1}, state().pendingWeights().orElseThrow());
    assertArrayEquals(new int[] {1, 1, 0, 0}, state().shares(0).orElseThrow());
  }

  @Test
  void sharesThatHaveNoEffectAreRefused() throws IOException {
    write(KEYS);
    administration().closePartitions(Set.of(2), Administration.RerouteTime.NOW, false);
    State before = state();
    for (String shares : List.of("0:9:1,1,0,1", "2:9:1,1,0,1", "1:9:0,0,0,0", "1:9:1,1,1,1", "1:9:1,1,0", "1:9:1,1,0,1,1",
        "1:9:1000001,1,0,1", "1:9:1,-1,0,1", "1:9:01,1,0,1", "1:1,1,0,1", "1:9:", "nothing", "1:9:1,1,0,1 ")) {
      assertRefused("OPTION_VALUE", () -> administration().configure(Map.of(SHARES, shares)));
    }
    assertEquals(before.version(), state().version());
    administration().configure(Map.of(SHARES, "1:9:1,1,0,1"));
    administration().configure(Map.of(SHARES, "none"));
    assertEquals(before.version() + 2, state().version());
  }

  @Test
  void aTopicOfPlacementModuloHasNoShares() throws IOException {
    commit(10, null);
    assertRefused("OPTION_VALUE", () -> administration().configure(Map.of(SHARES, "0:9:1,1")));
    assertRefused("OPTION_VALUE", () -> administration().configure(Map.of("placement", "on_first_write")));
  }

  @Test
  void slotsAreThoseOfTheHashOfTheTopic() throws IOException {
    TreeMap<String, String> config = config();
    config.put("partitioner", "murmur2");
    planned(KEYS, 0, config).run();
    assertEquals(KEYS, bound(state()));
    SlotTable table = routing().table();
    for (int i = 0; i < KEYS; i++) {
      byte[] key = ("k" + i).getBytes(StandardCharsets.UTF_8);
      assertNotEquals(SlotTable.UNBOUND, table.partition(table.slot(Partitioner.MURMUR2, key)), "k" + i);
    }
  }
}
