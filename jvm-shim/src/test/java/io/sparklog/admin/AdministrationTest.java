package io.sparklog.admin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.kit.Writes;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FaultyStore.When;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** The changes that an operator makes to a topic. FORMAT.md sections 5 and 7. */
final class AdministrationTest extends CommitsOverFaults {
  private Administration administration() {
    return administration(store.store());
  }

  private Administration administration(LogStore place) {
    return new Administration(new TopicWork(new TopicLog(place, "t"), Clock.systemUTC(), random));
  }

  private static TreeMap<Integer, Long> offsets(long... partitionsAndOffsets) {
    TreeMap<Integer, Long> offsets = new TreeMap<>();
    for (int i = 0; i < partitionsAndOffsets.length; i += 2) {
      offsets.put((int) partitionsAndOffsets[i], partitionsAndOffsets[i + 1]);
    }
    return offsets;
  }

  private static PartlogException assertFails(String id, Executable body) {
    PartlogException e = assertThrows(PartlogException.class, body);
    assertEquals(id, e.id(), e.getMessage());
    return e;
  }

  private State latest() {
    return new TopicLog(Stores.open(root.toString()), "t").latest().orElseThrow();
  }

  @Test
  void aTopicIsDeletedWhereThereIsNoKafkaView() throws IOException {
    commit(store.withoutLinks(), 5, null);
    administration(store.withoutLinks()).delete(false);
    assertTrue(latest().isDeleted());
  }

  /** A write that is planned now, and commits when it is run. */
  private Executable planned() throws IOException {
    LogStore place = Stores.open(root.toString());
    Root driver = new Root(place);
    TopicPlan plan = TopicPlan.of("t", driver.topic("t").latest(), Writes.config());
    String txn = Names.identity(random);
    List<TopicReport> reports = Writes.of("x", 2, 28, 0).reports(place, plan, txn);
    return () -> new TopicCommits(driver, txn, topic -> Once.NEVER, Clock.systemUTC(), random).commit(plan, reports);
  }

  private int used() {
    return IntStream.range(0, 4).filter(p -> state().end(p) > 0).findFirst().orElseThrow();
  }

  @Test
  void recordsBelowAnOffsetAreDeleted() throws IOException {
    commit(28, null);
    commit(28, null);
    int p = used();
    long end = state().end(p);
    Changed cut = administration().deleteRecords(offsets(p, end / 2 + 1), offsets(), false);
    assertEquals(List.of(0L, end / 2 + 1, end), List.of(cut.was().start(p), cut.is().start(p), cut.is().end(p)));
    assertEquals(2, state().version());
    assertEquals(end / 2 + 1, state().start(p));
    assertEquals(List.of(end / 2), state().segments(p).stream().map(Segment::base).toList(), "a segment that it cuts stays");

    Changed lower = administration().deleteRecords(offsets(p, 1), offsets(), false);
    assertEquals(lower.was(), lower.is());
    assertEquals(2, state().version(), "nothing to do puts no version");

    for (long[] keptAndStart : new long[][] {{0, end / 2 + 1}, {end / 2 + 3, end / 2 + 3}, {end, end}}) {
      TreeMap<Integer, Long> all = offsets(p, -1);
      Changed kept = administration().deleteRecords(all, offsets(p, keptAndStart[0]), true);
      assertEquals(keptAndStart[1], kept.is().start(p), "what is kept stays");
    }
    for (long bad : new long[] {-1, end + 1}) {
      PartlogException e = assertFails("OPTION_VALUE", () -> administration().deleteRecords(offsets(p, -1), offsets(p, bad), false));
      assertTrue(
          e.getMessage().contains("Option `keep` has the value " + bad + ": partition " + p + " of topic t has offsets from 0 to " + end),
          e.getMessage());
    }
    assertFails("PARTITION_NOT_FOUND", () -> administration().deleteRecords(offsets(p, -1), offsets(4, 0), false));
    assertEquals(2, state().version());

    Changed would = administration().deleteRecords(offsets(0, -1, 1, -1, 2, -1, 3, -1), offsets(), true);
    assertEquals(List.of(end, 3L), List.of(would.is().start(p), would.is().version()));
    assertEquals(2, state().version(), "a dry run puts nothing");

    administration().deleteRecords(offsets(0, -1, 1, -1, 2, -1, 3, -1), offsets(), false);
    State empty = state();
    for (int each = 0; each < 4; each++) {
      assertEquals(empty.end(each), empty.start(each));
      assertEquals(List.of(), empty.segments(each));
    }
    commit(28, null);
    assertEquals(end + end / 2, state().end(p), "offsets go on");
  }

  @Test
  void offsetsThatAreNotThereAreRefused() throws IOException {
    commit(28, null);
    int p = used();
    PartlogException beyond = assertFails("OFFSETS_OUT_OF_RANGE",
        () -> administration().deleteRecords(offsets(p, state().end(p) + 1), offsets(), false));
    assertEquals(Long.toString(state().end(p)), beyond.parameters().get("end"));
    assertFails("OFFSETS_OUT_OF_RANGE", () -> administration().deleteRecords(offsets(p, -2), offsets(), false));
    assertFails("PARTITION_NOT_FOUND", () -> administration().deleteRecords(offsets(4, 0), offsets(), false));
    assertEquals(0, state().version());
  }

  /** Records that come in while it is decided are not meant. */
  @Test
  void theEndIsThatOfTheCall() throws IOException {
    commit(28, null);
    int p = used();
    long end = state().end(p);
    before("putIfAbsent " + version(1), 1, () -> commit(Stores.open(root.toString()), 28, null));
    administration().deleteRecords(offsets(p, -1), offsets(), false);
    assertEquals(2, state().version());
    assertEquals(List.of(end, 2 * end), List.of(state().start(p), state().end(p)));
  }

  @Test
  void partitionsAreAdded() throws Throwable {
    commit(28, null);
    assertTrue(state().segments(used()).stream().allMatch(Segment::routed));
    Executable write = planned();
    Changed added = administration().addPartitions(6, Administration.RerouteTime.NOW, false);
    assertEquals(List.of(4, 6), List.of(added.was().partitions(), added.is().partitions()));
    State state = state();
    assertEquals(List.of(0L, 0L, 0L, 0L), List.of(state.start(4), state.end(4), state.start(5), state.end(5)));
    assertTrue(state.segments(used()).stream().allMatch(Segment::routed));
    assertFails("ROUTING_CHANGED", write);
    commit(280, null);
    assertTrue(state().end(4) + state().end(5) > 0);
    State after = state();
    assertTrue(after.segments().stream().flatMap(List::stream).allMatch(Segment::routed));

    Path foreign = root.resolve("t-7/00000000000000000000.log");
    Files.createDirectories(foreign.getParent());
    Files.writeString(foreign, "of somebody else");
    PartlogException refused = assertFails("FOREIGN_SEGMENTS",
        () -> administration().addPartitions(8, Administration.RerouteTime.NOW, false));
    assertEquals(List.of("7", foreign.toString()), List.of(refused.parameters().get("partitions"), refused.parameters().get("file")));
    assertEquals("of somebody else", Files.readString(foreign));

    for (int wrong : new int[] {5, 1, 0, -1, 10_001}) {
      assertFails("OPTION_VALUE", () -> administration().addPartitions(wrong, Administration.RerouteTime.NOW, false));
    }
    assertEquals(2, state().version());
  }

  @Test
  void theConfigurationIsChanged() throws IOException {
    commit(28, null);
    Changed changed = administration().configure(Map.of("segment.bytes", "2048", "retention.ms", "5000000000000"));
    assertEquals(List.of("1073741824", "2048"),
        List.of(changed.was().config().get("segment.bytes"), changed.is().config().get("segment.bytes")));
    assertEquals(List.of(2048, 5_000_000_000_000L), List.of(state().config().segmentBytes(), state().config().retentionMs()));
    // -1 is what retention.bytes is without the key.
    administration().configure(Map.of("segment.bytes", "2048", "retention.bytes", "-1"));
    assertEquals(1, state().version());
    assertFails("OPTION_VALUE", () -> administration().configure(Map.of("segment.bytes", "10")));
    PartlogException partitions = assertFails("OPTION_VALUE", () -> administration().configure(Map.of("partitions", "8")));
    assertTrue(partitions.getMessage().contains("CALL partlog.add_partitions"), partitions.getMessage());
    assertFails("OPTION_VALUE", () -> administration().configure(Map.of("partitioner", "murmur2")));
    administration().configure(Map.of("max.message.bytes", Integer.toString(65 << 20)));
    assertFails("OPTION_VALUE", () -> administration().configure(Map.of("max.message.bytes", Integer.toString((65 << 20) - 1))));
    assertEquals(2, state().version());
  }

  private List<String> files() throws IOException {
    try (Stream<Path> files = Files.walk(root)) {
      return files.filter(Files::isRegularFile).map(file -> root.relativize(file).toString()).sorted().toList();
    }
  }

  @Test
  void aTopicIsDeletedAndBeginsAgain() throws Throwable {
    Executable beforeThereWasOne = planned();
    commit(28, 3L);
    commit(28, 4L);
    State first = state();
    assertTrue(viewed() > 0);
    Executable write = planned();
    assertEquals(first.version() + 1, administration().delete(true).is().version());
    assertEquals(1, state().version());

    Changed deleted = administration().delete(false);
    assertEquals(List.of(false, true), List.of(deleted.was().isDeleted(), deleted.is().isDeleted()));
    assertEquals(List.of(), new Root(store.store()).topics());
    assertEquals(List.of("t"), new Root(store.store()).names());
    assertEquals(Optional.empty(), new TopicLog(store.store(), "t").newest());
    assertEquals(List.of(3L, 2L, 0L), List.of(latest().horizon(), latest().boundary(), latest().liveSegments()));
    assertEquals(1, files().stream().filter(file -> file.matches(".*/0{19}2\\.checkpoint-.*")).count());
    assertEquals(List.of(TOPIC_FOLDER + "/00000000000000000002.deleted", version(2)),
        files().stream().filter(file -> !file.contains("checkpoint")).toList(), "nothing else is left");
    assertFails("TOPIC_NOT_FOUND", () -> administration().deleteRecords(offsets(0, 0), offsets(), false));
    assertFails("TOPIC_NOT_FOUND", () -> administration().addPartitions(9, Administration.RerouteTime.NOW, false));
    assertFails("TOPIC_RECREATED", write);
    assertFails("WRITE_EXPIRED", beforeThereWasOne);

    Changed again = administration().delete(false);
    assertEquals(2, again.is().version(), "a second time there is nothing to commit");

    commit(28, 4L);
    State second = state();
    assertNotEquals(first.topicId(), second.topicId());
    assertEquals(List.of(3L, 3L, 2L), List.of(second.version(), second.horizon(), second.boundary()));
    assertEquals(first.segments(used()).get(0).end(), second.end(used()), "its offsets begin at 0");
    assertEquals(4, second.query("q").orElseThrow().epoch(), "the epochs of the deleted topic are not its own");
    assertEquals(List.of("t"), new Root(store.store()).topics());
    assertFails("TOPIC_RECREATED", write);
    assertFails("WRITE_EXPIRED", beforeThereWasOne);
    assertTrue(viewed() > 0);
  }

  @Test
  void aTopicThatNeverWasCannotBeDeleted() {
    assertFails("TOPIC_NOT_FOUND", () -> administration().delete(false));
    assertFalse(Files.exists(root.resolve("_partlog/t")));
  }

  @Test
  void aDeletionThatWasCutShortIsFinished() throws IOException {
    commit(28, null);
    List<String> before = files();
    store.failAll("delete", When.BEFORE, new IOException("thrown by the test"));
    assertFails("IO", () -> administration().delete(false));
    assertTrue(latest().isDeleted());
    assertEquals(List.of(), new Root(store.store()).topics(), "what can be done is done");
    assertTrue(files().containsAll(before));
    openStore();
    administration().delete(false);
    assertEquals(0, viewed());
    assertEquals(List.of(), files().stream().filter(file -> file.contains("/data/")).toList());
  }

  /** The newest state tells the outcome of these; that of a write without a name it cannot tell. */
  @Test
  void whatAnOperatorChangesIsNeverUnknownForACleanUp() throws IOException {
    commit(28, null);
    int p = used();
    before("putIfAbsent " + version(1), 1, () -> overtakeAndCleanUp(null));
    administration().deleteRecords(offsets(p, 1), offsets(), false);
    assertTrue(Files.exists(root.resolve(version(1))), "where nobody looks");
    assertEquals(List.of(1L, 7L), List.of(state().start(p), state().version()));
  }

  @Test
  void aTopicThatHasTakenTheNameIsNotMeant() throws IOException {
    commit(28, null);
    before("putIfAbsent " + version(1), 1, () -> {
      LogStore place = Stores.open(root.toString());
      administration(place).delete(false);
      commit(place, 28, null);
    });
    assertFails("TOPIC_RECREATED", () -> administration().deleteRecords(offsets(used(), 1), offsets(), false));
    assertEquals(0, state().start(used()));
    openStore();
    before("putIfAbsent " + version(3), 1, () -> {
      LogStore place = Stores.open(root.toString());
      administration(place).delete(false);
      commit(place, 28, null);
    });
    administration().delete(false);
    assertFalse(latest().isDeleted(), "the topic that was meant is gone");
    assertEquals(4, latest().version());
  }
}
