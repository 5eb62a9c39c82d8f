package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.json.Damaged;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.PutObserver;
import io.sparklog.storage.Stores;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A state tells of the version that it comes from, and never changes. */
final class StateTest {
  private static final String TOPIC_ID = Names.identity(new Random(1));
  private static final String FIRST_TXN = Names.identity(new Random(2));
  private static final String SECOND_TXN = Names.identity(new Random(3));
  private static final byte[] FIRST = "the bytes of version 0".getBytes(StandardCharsets.UTF_8);
  private static final Version SECOND = new Version(head(1, 8), SECOND_TXN, Version.sha256(FIRST), "write", null, null, null, List.of(),
      Map.of(), Map.of(), Map.of(0, 2L), List.of(), List.of(segment(1)), Further.NONE);

  private static TopicHead head(long version, long time) {
    return new TopicHead(Features.NONE, "t", TOPIC_ID, version, time, 0, 0, false);
  }

  private static Segment segment(long base) {
    return new Segment(0, Names.dataFolder(0, FIRST_TXN) + "/pool.log", base * 100, 100, base, base + 1, 1, 1, -1, -1,
        Segment.Offsets.DENSE, true, true, 0);
  }

  private static State first() throws Damaged {
    Map<String, String> config = Map.of("partitions", "1", "partitioner", "murmur3", "compression.type", "none", "segment.bytes", "1048576",
        "max.message.bytes", "1000", "message.timestamp.type", "CreateTime", "index.interval.bytes", "4096");
    Replay builder = new Replay(false);
    builder.apply(new Version(head(0, 7), FIRST_TXN, null, "write", null, null, null, List.of(), config, Map.of(), Map.of(0, 1L), List.of(),
        List.of(segment(0)), Further.NONE), FIRST);
    return builder.build();
  }

  private static State second(State first) throws Damaged {
    Replay builder = new Replay(first);
    builder.apply(SECOND, SECOND.toBytes());
    return builder.build();
  }

  @Test
  void aStateDoesNotChangeWhenVersionsFollow() throws Damaged {
    State first = first();
    State second = second(first);
    assertEquals(List.of(segment(0)), first.segments(0));
    assertEquals(List.of(segment(0), segment(1)), second.segments(0));
    assertEquals(List.of(1L, 2L), List.of(first.end(0), second.end(0)));
    assertEquals(List.of(7L, 8L), List.of(first.timeMs(), second.timeMs()));
    for (State state : List.of(first, second)) {
      assertThrows(UnsupportedOperationException.class, () -> state.segments(0).remove(0));
      assertThrows(UnsupportedOperationException.class, () -> state.segments(0, 0, 2).clear());
    }
  }

  @Test
  void theGreatestEpochCountsAndOfEqualOnesTheLast() throws Damaged {
    Replay builder = new Replay(first());
    String previous = Version.sha256(FIRST);
    Query[] applied = {new Query("q", 5, null), new Query("q", 4, "4".repeat(16)), new Query("q", 5, "5".repeat(16))};
    Query[] expected = {applied[0], applied[0], applied[2]};
    for (int i = 0; i < applied.length; i++) {
      byte[] bytes = {(byte) i};
      builder.apply(new Version(head(1 + i, 8), SECOND_TXN, previous, "write", applied[i], null, null, List.of(), Map.of(), Map.of(),
          Map.of(), List.of(), List.of(), Further.NONE), bytes);
      assertEquals(Optional.of(expected[i]), builder.build().query("q"));
      previous = Version.sha256(bytes);
    }
  }

  /** By the time of versions: 8, 17, 18 and 28, where {@code p} and {@code q} are written. */
  @Test
  void aQueryIsForgottenInTime() throws Damaged {
    Replay builder = new Replay(first());
    String previous = Version.sha256(FIRST);
    long[] times = {8, 17, 18, 28};
    List<String> ids = List.of("p", "q", "q", "q");
    List<List<String>> known = List.of(List.of("p"), List.of("p", "q"), List.of("q"), List.of("q"));
    Map<String, String> config = Map.of("transaction.retention.ms", "10");
    for (int i = 0; i < times.length; i++) {
      byte[] bytes = {(byte) i};
      Query query = new Query(ids.get(i), i, null);
      builder.apply(new Version(head(1 + i, times[i]), SECOND_TXN, previous, "write", query, null, null, List.of(), config, Map.of(),
          Map.of(), List.of(), List.of(), Further.NONE), bytes);
      assertEquals(known.get(i), List.copyOf(builder.build().queries().keySet()), "at " + times[i]);
      previous = Version.sha256(bytes);
    }
    assertEquals(28, builder.build().queries().get("q").timeMs());
  }

  /** A checkpoint does not hold the identity of the write that made its version. */
  @Test
  void aStateFromACheckpointIsOfNoWrite(@TempDir Path root) throws Exception {
    State second = second(first());
    assertTrue(second.isOf(SECOND_TXN));
    assertFalse(second.isOf(FIRST_TXN));
    LogStore store = Stores.open(root.toString());
    Checkpoint.write(store, second, FIRST_TXN);
    store.putIfAbsent(Names.topicFile("t", Names.versionFile(1)), Names.topicFile("t", "tmp/x"), SECOND.toBytes(), PutObserver.NONE);
    State read = new TopicLog(store, "t").newest().orElseThrow();
    assertEquals(second.segments(0), read.segments(0));
    assertEquals(8, read.timeMs());
    assertEquals(1, read.checkpointVersion());
    for (String txn : List.of(FIRST_TXN, SECOND_TXN, "")) {
      assertFalse(read.isOf(txn), txn);
    }
    assertThrows(UnsupportedOperationException.class, () -> read.segments(0).remove(0));
  }
}
