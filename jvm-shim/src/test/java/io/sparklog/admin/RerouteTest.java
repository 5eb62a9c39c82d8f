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
import io.sparklog.log.NextVersion;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.routing.Routing;
import io.sparklog.routing.SlotTable;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.TaskWriter;
import io.sparklog.write.TopicBuffer;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Re-routes of a topic, from the operator to the state that readers load. FORMAT.md annex A. */
final class RerouteTest extends CommitsOverFaults {
  private static final ObjectMapper JSON = new ObjectMapper();

  private Administration administration(LogStore place) {
    return new Administration(new TopicWork(new TopicLog(place, "t"), Clock.systemUTC(), random));
  }

  private Administration administration() {
    return administration(store.store());
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

  private void write(int records) throws IOException {
    planned(new Writes("x", 2, records, 0, 1 << 14, 64 << 20, 0, 200)).run();
  }

  private interface Planned {
    void run();
  }

  private Planned planned(Writes writes) throws IOException {
    LogStore place = Stores.open(root.toString());
    Root driver = new Root(place);
    TopicPlan plan = TopicPlan.of("t", driver.topic("t").latest(), Writes.config());
    String txn = Names.identity(random);
    List<TopicReport> reports = writes.reports(place, plan, txn);
    return () -> new TopicCommits(driver, txn, topic -> Once.NEVER, Clock.systemUTC(), random).commit(plan, reports);
  }

  private JsonNode file(long version) throws IOException {
    return JSON.readTree(Files.readAllLines(root.resolve(version(version))).get(0));
  }

  /** All that a routing says, in words that can be compared. */
  private static String told(State state) {
    Routing routing = state.routing();
    List<String> past = routing.past()
        .stream()
        .map(one -> one.version() + " " + Arrays.toString(one.cut()) + " " + moves(one.moved()))
        .toList();
    return routing.epoch() + " " + Arrays.toString(routing.weights()) + " " + routing.table().crc() + " " + past + " "
        + state.segments()
            .stream()
            .flatMap(List::stream)
            .map(segment -> state.reroutesBefore(segment.partition(), segment.base()))
            .toList();
  }

  private static List<String> moves(List<SlotTable.SlotMoves> moves) {
    return moves.stream().map(move -> move.to() + ":" + Arrays.toString(move.slots())).toList();
  }

  @Test
  void aTopicHasSlotsAfterAReRouteThatMovesNone() throws IOException {
    write(300);
    administration().reroute(weights(0, 3, 1, 3, 2, 3, 3, 3), Administration.RerouteTime.NOW, false);
    assertFalse(routing().isModulo());
    assertEquals(List.of(), routing().past(), "no record is from before a cut");
    assertEquals("[{\"name\":\"routing.slots\",\"binds\":\"keyReaders\"}]", file(1).get("features").toString());
  }

  @Test
  void partitionsAreAddedClosedAndWeighedAndFewestSlotsMove() throws IOException {
    write(300);
    assertTrue(state().routing().isModulo());
    assertEquals("[]", file(0).get("features").toString());
    State first = state();

    Changed grown = administration().addPartitions(6, Administration.RerouteTime.NOW, false);
    assertEquals(List.of(new Changed.Slots(0, 1024, 683), new Changed.Slots(1, 1024, 683), new Changed.Slots(2, 1024, 683),
        new Changed.Slots(3, 1024, 683), new Changed.Slots(4, 0, 682), new Changed.Slots(5, 0, 682)), grown.slots());
    assertEquals(List.of(1, 6), List.of(routing().epoch(), state().partitions()));
    assertArrayEquals(new long[] {first.end(0), first.end(1), first.end(2), first.end(3), 0, 0}, routing().past().get(0).cut());
    write(300);
    for (int p = 0; p < 4; p++) {
      assertTrue(state().segments(p).stream().allMatch(Segment::routed));
      assertEquals(List.of(0, 1), state().segments(p).stream().map(each -> state().reroutesBefore(each.partition(), each.base())).toList());
    }
    assertTrue(state().end(4) > 0 && state().end(5) > 0);

    administration().addPartitions(9, Administration.RerouteTime.NOW, false);
    write(300);
    State nine = state();
    Changed closed = administration().closePartitions(List.of(1, 4, 6, 8), Administration.RerouteTime.NOW, false);
    assertEquals(IntStream.of(1, 4, 6, 8).map(p -> nine.routing().table().counts(9)[p]).sum(),
        closed.slots().stream().filter(slots -> slots.after() > slots.before()).mapToInt(Changed.Slots::moved).sum());
    write(300);
    for (int p : new int[] {1, 4, 6, 8}) {
      assertEquals(nine.end(p), state().end(p), "a closed partition gets no records");
    }
    administration().reroute(weights(0, 3), Administration.RerouteTime.NOW, false);
    int[] counts = routing().table().counts(9);
    assertArrayEquals(new int[] {1756, 0, 585, 585, 0, 585, 0, 585, 0}, counts);
    assertEquals("[{\"name\":\"routing.slots\",\"binds\":\"keyReaders\"}]", file(state().version()).get("features").toString());
    assertEquals(List.of(4, 9), List.of(routing().epoch(), state().partitions()));

    String replayed = told(state());
    Checkpoint.write(store.store(), state(), Names.identity(random));
    for (long version = 0; version < state().version(); version++) {
      Files.delete(root.resolve(version(version)));
    }
    assertEquals(replayed, told(state()), "a checkpoint says the same");
    write(10);
    assertEquals("[{\"name\":\"routing.slots\",\"binds\":\"keyReaders\"}]", file(state().version()).get("features").toString());

    administration().delete(false);
    State deleted = new TopicLog(Stores.open(root.toString()), "t").latest().orElseThrow();
    assertEquals("[]", file(deleted.version()).get("features").toString());
    write(10);
    assertTrue(state().routing().isModulo(), "the next topic of the name has no slots");
    assertEquals("[]", file(state().version()).get("features").toString());
  }

  @Test
  void aDryRunSaysTheSameAndChangesNothing() throws IOException {
    write(100);
    for (int step = 0; step < 3; step++) {
      long before = state().version();
      Changed told = change(step, true);
      assertEquals(before, state().version());
      Changed done = change(step, false);
      assertEquals(done.slots(), told.slots());
      assertEquals(before + 1, state().version());
      assertEquals(Arrays.toString(done.is().router().weights()), Arrays.toString(told.is().router().weights()));
      Changed again = change(step, false);
      assertEquals(before + 1, state().version(), "to repeat it changes nothing more");
      assertTrue(again.slots().stream().allMatch(slots -> slots.moved() == 0));
    }
  }

  private Changed change(int step, boolean dryRun) {
    return switch (step) {
      case 0 -> administration().addPartitions(6, Administration.RerouteTime.NOW, dryRun);
      case 1 -> administration().closePartitions(List.of(2, 5), Administration.RerouteTime.NOW, dryRun);
      default -> administration().reroute(weights(0, 2, 1, 7), Administration.RerouteTime.NOW, dryRun);
    };
  }

  @Test
  void aWriteThatWasPlannedBeforeIsRefused() throws IOException {
    write(100);
    for (int step = 0; step < 3; step++) {
      Planned write = planned(Writes.of("x", 2, 28, 0));
      change(step, false);
      long version = state().version();
      PartlogException refused = assertFails("ROUTING_CHANGED", write::run);
      assertTrue(refused.getMessage().contains("routing epoch " + (step + 1)), refused.getMessage());
      assertEquals(version, state().version());
      try (var folders = Files.list(root.resolve(TOPIC_FOLDER).resolve("data"))) {
        assertEquals(1 + step, folders.count(), "the files of refused writes are gone");
      }
      write(100);
    }
  }

  @Test
  void aReroutePlannedInAnotherRoutingEpochIsRefused() throws IOException {
    write(100);
    Administration other = administration(Stores.open(root.toString()));
    before("putIfAbsent " + version(1), 1, () -> other.reroute(weights(0, 5), Administration.RerouteTime.NOW, false));
    PartlogException refused = assertFails("REROUTED", () -> administration().addPartitions(6, Administration.RerouteTime.NOW, false));
    assertTrue(refused.getMessage().contains("4 partitions by murmur3 in routing epoch 1"), refused.getMessage());
    assertEquals(List.of(1, 4), List.of(routing().epoch(), state().partitions()));
  }

  @Test
  void aRerouteThatAnotherProgramMadeFirstIsDone() throws IOException {
    write(100);
    Administration other = administration(Stores.open(root.toString()));
    before("putIfAbsent " + version(1), 1, () -> other.addPartitions(8, Administration.RerouteTime.NOW, false));
    Changed changed = administration().addPartitions(6, Administration.RerouteTime.NOW, false);
    assertEquals(List.of(8, 1), List.of(changed.is().partitions(), routing().epoch()));
  }

  @Test
  void aWriteInBetweenMovesTheCut() throws IOException {
    write(100);
    before("putIfAbsent " + version(1), 1, () -> write(50));
    State before = administration().addPartitions(5, Administration.RerouteTime.NOW, false).was();
    assertEquals(1, before.version());
    assertArrayEquals(Arrays.copyOf(before.ends(), 5), routing().past().get(0).cut());
  }

  @Test
  void whatCannotBeIsRefusedAndChangesNothing() throws IOException {
    write(100);
    administration().closePartitions(List.of(3), Administration.RerouteTime.NOW, false);
    long version = state().version();
    for (TreeMap<Integer, Long> wrong : List.of(weights(0, 0), weights(0, -1), weights(1, 1_000_001), weights(3, 1))) {
      assertFails("OPTION_VALUE", () -> administration().reroute(wrong, Administration.RerouteTime.NOW, false));
    }
    assertFails("PARTITION_NOT_FOUND", () -> administration().reroute(weights(4, 1), Administration.RerouteTime.NOW, false));
    assertFails("PARTITION_NOT_FOUND", () -> administration().closePartitions(List.of(1, 4), Administration.RerouteTime.NOW, false));
    assertFails("PARTITION_NOT_FOUND", () -> administration().closePartitions(List.of(-1), Administration.RerouteTime.NOW, false));
    assertFails("OPTION_VALUE", () -> administration().closePartitions(List.of(), Administration.RerouteTime.NOW, false));
    assertFails("OPTION_VALUE", () -> administration().closePartitions(List.of(0, 1, 2), Administration.RerouteTime.NOW, false));
    assertFails("OPTION_VALUE", () -> administration().addPartitions(3, Administration.RerouteTime.NOW, false));
    assertFails("OPTION_VALUE", () -> administration().addPartitions(10_001, Administration.RerouteTime.NOW, false));
    PartlogException slots = assertFails("OPTION_VALUE", () -> administration().addPartitions(4098, Administration.RerouteTime.NOW, false));
    assertTrue(slots.getMessage().contains("has 4096 slots for its keys, and 4097 partitions would be open"), slots.getMessage());
    assertEquals(version, state().version());

    before("putIfAbsent " + version(version + 1), 1, () -> administration(Stores.open(root.toString())).delete(false));
    assertFails("TOPIC_RECREATED", () -> administration().addPartitions(6, Administration.RerouteTime.NOW, false));
    assertFails("TOPIC_NOT_FOUND", () -> administration().addPartitions(6, Administration.RerouteTime.NOW, false));
  }

  @Test
  void aClosedPartitionIsRefusedToRowsThatNameIt() throws IOException {
    write(100);
    administration().closePartitions(List.of(2), Administration.RerouteTime.NOW, false);
    TopicPlan plan = TopicPlan.of("t", new TopicLog(store.store(), "t").latest(), Writes.config());
    byte[] row = "value".getBytes(StandardCharsets.US_ASCII);
    try (TaskWriter writer = new TaskWriter(store.store(), Names.identity(random), 0, 1, 0, 1 << 14, 1 << 20)) {
      TopicBuffer topic = writer.topic(plan);
      topic.appendTo(1, 0, row, 0, -1, 0, row.length, null, TopicBuffer.NO_HEADERS_BYTES);
      assertFails("PARTITION_CLOSED", () -> topic.appendTo(2, 0, row, 0, -1, 0, row.length, null, TopicBuffer.NO_HEADERS_BYTES));
    }
  }

  /** Ten writes of rows without keys, after the topic had many: the new partition gets its share, a closed one nothing. */
  @Test
  void rowsWithoutKeysAreSharedOutSinceTheLastReroute() throws IOException {
    Writes keyless = new Writes("x", 2, 400, 0, 400, 64 << 20, 0, 0);
    for (int i = 0; i < 10; i++) {
      planned(keyless).run();
    }
    administration().addPartitions(5, Administration.RerouteTime.NOW, false);
    administration().closePartitions(List.of(0), Administration.RerouteTime.NOW, false);
    administration().reroute(weights(1, 3), Administration.RerouteTime.NOW, false);
    long[] before = state().ends();
    for (int i = 0; i < 10; i++) {
      planned(keyless).run();
    }
    long[] got = IntStream.range(0, 5).mapToLong(p -> state().end(p) - before[p]).toArray();
    assertEquals(0, got[0]);
    assertEquals(8000, Arrays.stream(got).sum());
    assertEquals(4000, got[1], 200, Arrays.toString(got));
    for (int p = 2; p < 5; p++) {
      assertEquals(8000 / 6.0, got[p], 200, Arrays.toString(got));
    }
  }

  /** A move of slots cuts two partitions, and the count of loads goes on. */
  @Test
  void rowsWithoutKeysStayLevelBesideMovesOfSlots() throws IOException {
    write(100);
    administration().reroute(weights(0, 2), Administration.RerouteTime.NOW, false);
    administration().reroute(weights(0, 1), Administration.RerouteTime.NOW, false);
    long[] before = state().ends();
    Writes keyless = new Writes("x", 1, 10, 0, 1 << 14, 64 << 20, 0, 0);
    for (int i = 0; i < 40; i++) {
      int from = i % 4;
      SlotTable table = routing().table();
      int slot = IntStream.range(0, table.slots()).filter(each -> table.partition(each) == from).findFirst().orElseThrow();
      administration().move(state(), new TreeMap<>(Map.of(slot, (i + 1) % 4)), false);
      planned(keyless).run();
    }
    State after = state();
    assertArrayEquals(new long[] {100, 100, 100, 100}, IntStream.range(0, 4).mapToLong(p -> after.end(p) - before[p]).toArray());
  }

  @Test
  void reroutesWithoutRecordsFromBeforeAreForgotten() throws IOException {
    write(100);
    administration().addPartitions(5, Administration.RerouteTime.NOW, false);
    write(100);
    administration().addPartitions(6, Administration.RerouteTime.NOW, false);
    assertEquals(2, routing().past().size());
    int crc = routing().table().crc();
    TreeMap<Integer, Long> toFirst = new TreeMap<>();
    long[] cut = routing().past().get(0).cut();
    IntStream.range(0, 5).forEach(p -> toFirst.put(p, cut[p]));
    administration().deleteRecords(toFirst, new TreeMap<>(), false);
    assertEquals(List.of(1L, 3L), List.of((long) routing().past().size(), routing().past().get(0).version()));
    IntStream.range(0, 6).forEach(p -> toFirst.put(p, -1L));
    administration().deleteRecords(toFirst, new TreeMap<>(), false);
    assertEquals(List.of(0, 2, crc), List.of(routing().past().size(), routing().epoch(), routing().table().crc()));
    administration().addPartitions(7, Administration.RerouteTime.NOW, false);
    assertEquals(List.of(), routing().past(), "nothing is before it");
    assertEquals(3, routing().epoch());
    String replayed = told(state());
    Checkpoint.write(store.store(), state(), Names.identity(random));
    assertEquals(replayed, told(state()));
  }

  @Test
  void mergesJoinNothingOverACut() throws IOException {
    for (int i = 0; i < 6; i++) {
      write(40);
    }
    administration().addPartitions(5, Administration.RerouteTime.NOW, false);
    for (int i = 0; i < 6; i++) {
      write(40);
    }
    new TopicWork(new TopicLog(store.store(), "t"), Clock.systemUTC(), random).merge(0);
    for (int p = 0; p < 4; p++) {
      long cut = routing().past().get(0).cut(p);
      assertEquals(List.of(0L, cut), state().segments(p).stream().map(Segment::base).toList());
      assertTrue(state().segments(p).stream().allMatch(Segment::routed));
    }
    assertEquals(1, state().segments(4).size());
  }

  /** One re-route more than fit into a state. The state is made by hand: thousands of versions would take a minute. */
  @Test
  void moreReroutesThanFitAreRefused() throws IOException {
    write(100);
    administration().reroute(weights(0, 2), Administration.RerouteTime.NOW, false);
    int[] slots = IntStream.range(0, 4096).toArray();
    assertTrue(routing().fits(4, List.of()));
    assertFalse(routing().fits(4, IntStream.range(0, 500).mapToObj(partition -> new SlotTable.SlotMoves(partition, slots)).toList()));
  }

  /** The next version of a state that has slots must say so, and one that adds partitions must be a re-route. */
  @Test
  void aVersionThatLosesTheSlotsIsCorrupt() throws IOException {
    write(100);
    administration().addPartitions(5, Administration.RerouteTime.NOW, false);
    Path newest = root.resolve(version(1));
    assertThrows(IllegalStateException.class, new NextVersion(state(), "alter").configure(Map.of("partitions", "6"))::preview);
    assertTrue(Files.readString(newest).contains("\"routing\":{\"epoch\":1,\"slots\":4096,\"weights\":[1,1,1,1,1],\"moved\":[[4,"));
  }
}
