package io.sparklog.merge;

import static io.sparklog.storage.FaultyStore.When.BEFORE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.format.BatchHeader;
import io.sparklog.kit.HandmadeVersion;
import io.sparklog.kit.MergedTopics;
import io.sparklog.kit.Writes;
import io.sparklog.log.Committers;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.Stores;
import io.sparklog.view.KafkaView;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Merging of segments, and batches that are written again. FORMAT.md section 4. */
final class MergingTest extends MergedTopics {
  @Test
  void theSameRecordsAreInFewerSegments() throws IOException {
    write(20, 30);
    List<String> before = records();
    List<Segment> sources = live();
    assertEquals(new MergeCounts(sources.size(), 4, sources.stream().mapToLong(Segment::bytes).sum()), merging().all());
    assertEquals(before, records());
    State state = state();
    assertEquals(20, state.version());
    for (int p = 0; p < 4; p++) {
      Segment merged = state.segments(p).get(0);
      int partition = p;
      List<Segment> parts = sources.stream().filter(segment -> segment.partition() == partition).toList();
      assertEquals(Names.dataFolder(20, txn(merged)) + "/pool.log", merged.file());
      assertEquals(parts.stream().mapToInt(Segment::batches).sum(), merged.batches());
      assertEquals(parts.stream().mapToLong(Segment::records).sum(), merged.records());
      assertEquals(parts.stream().mapToLong(Segment::minTimestamp).min().getAsLong(), merged.minTimestamp());
      assertEquals(parts.stream().mapToLong(Segment::maxTimestamp).max().getAsLong(), merged.maxTimestamp());
      assertTrue(merged.routed() && merged.dense());
      assertFalse(merged.ordered(), "each of the writes begins with the same time");
      try (SegmentFile file = SegmentFile.open(store.store(), "t", merged)) {
        for (BatchWalk walk = new BatchWalk(file); walk.next();) {
          assertEquals(walk.base(), BatchHeader.baseOffset(walk.buffer(), walk.at()), "offsets are absolute");
        }
      }
    }
    assertEquals(new MergeCounts(0, 0, 0), merging().all());
    assertEquals(20, state().version(), "nothing is due, and nothing is put");
    publish();
    assertEquals(4, viewed());
  }

  @Test
  void whatAMergeReplacesWhileSomebodyPublishesIsNotMissing() throws IOException {
    write(20, 30);
    String replaced = Names.topicFile("t", live().get(0).file());
    boolean[] merged = {false};
    store.at((method, name, when) -> {
      if (method.equals("open") && name.equals(replaced) && !merged[0]) {
        merged[0] = true;
        new Merging(new Committers(new TopicLog(Stores.open(root.toString()), "t"), Clock.systemUTC(), random)).all();
        Files.delete(root.resolve(replaced));
      }
    });
    publish();
    assertTrue(merged[0]);
    publish();
    assertEquals(4, viewed());
    Files.delete(root.resolve(Names.topicFile("t", live().get(0).file())));
    assertEquals("SEGMENT_MISSING", assertThrows(PartlogException.class, this::publish).id());
  }

  private int publish() {
    return KafkaView.publish(new TopicLog(store.store(), "t"), Names.identity(random));
  }

  private static String txn(Segment segment) {
    return segment.file().substring("data/".length() + 21, segment.file().lastIndexOf('/'));
  }

  @Test
  void aLargeOneHasItsOwnFile() throws IOException {
    for (int i = 0; i < 3; i++) {
      write(new Writes("w" + i, 1, 70, 20_000, 1 << 14, 64 << 20, 0, 30), Map.of("segment.bytes", "1500000"));
    }
    List<String> before = records();
    Set<String> files = dataFiles();
    merging().all();
    assertEquals(before, records());
    assertEquals(Set.of(), left(files));
    int own = 0;
    for (Segment segment : live()) {
      assertTrue(segment.bytes() <= 1_500_000);
      if (!files.contains(segment.file())) {
        boolean isLarge = segment.bytes() >= 256 << 10;
        assertEquals(isLarge, segment.file().endsWith("/p" + segment.partition() + "-t0-0-" + own + ".log"), segment.toString());
        assertEquals(!isLarge, segment.file().endsWith("/pool.log"));
        own += isLarge ? 1 : 0;
      }
    }
    assertNotEquals(0, own);
  }

  @Test
  void damageEndsARunAndIsNotMerged() throws IOException {
    write(12, 30);
    Segment damaged = state().segments(1).get(5);
    try (RandomAccessFile file = new RandomAccessFile(root.resolve(TOPIC_FOLDER).resolve(damaged.file()).toFile(), "rw")) {
      file.seek(damaged.position() + 70);
      int was = file.read();
      file.seek(damaged.position() + 70);
      file.write(was ^ 1);
    }
    List<String> before = records();
    assertTrue(before.contains("1 " + damaged.base() + " to " + damaged.end() + " BATCH_CORRUPT"), before.toString());
    Set<String> files = dataFiles();
    Merging merging = merging();
    assertEquals(3 + 2, merging.all().by());
    assertEquals(before, records());
    assertEquals(List.of(1, 3, 1, 1), IntStream.range(0, 4).mapToObj(p -> state().segments(p).size()).toList());
    assertEquals(damaged, state().segments(1).get(1));
    assertEquals(Set.of(), left(files));
    assertEquals(new MergeCounts(0, 0, 0), merging.all(), "it is not tried again");
    assertEquals(5, merging().rebatch(1 << 18).by());
    assertEquals(before, records());
    assertEquals(damaged, state().segments(1).get(1));
  }

  @Test
  void aWrongHeaderIsDamageToo() throws IOException {
    write(4, 30);
    // The leader epoch is in no batch's CRC: only the checksum of all headers shows it.
    Segment damaged = state().segments(2).get(3);
    try (RandomAccessFile file = new RandomAccessFile(root.resolve(TOPIC_FOLDER).resolve(damaged.file()).toFile(), "rw")) {
      file.seek(damaged.position() + 12);
      file.write(1);
    }
    merging().all();
    assertEquals(List.of(1, 1, 2, 1), IntStream.range(0, 4).mapToObj(p -> state().segments(p).size()).toList());
    assertEquals(damaged, state().segments(2).get(1));
  }

  @Test
  void aWrongNumberOfBatchesIsDamageToo() throws IOException {
    write(4, 30);
    Segment last = state().segments(2).get(3);
    String file = Names.dataFolder(4, Names.identity(random)) + "/" + Names.poolFile();
    Files.createDirectories(root.resolve(TOPIC_FOLDER).resolve(file).getParent());
    Files.copy(root.resolve(TOPIC_FOLDER).resolve(last.file()), root.resolve(TOPIC_FOLDER).resolve(file));
    Segment wrong = new Segment(2, file, last.position(), last.bytes(), last.base(), last.end(), last.records(), last.batches() + 1,
        last.minTimestamp(), last.maxTimestamp(), Segment.Offsets.DENSE, last.routed(), last.ordered(), last.headerCrc());
    HandmadeVersion.after(root, state(), Names.identity(random)).remove(last).add(wrong, file, wrong.base()).write();
    write(2, 30);
    assertEquals(4, state().segments(2).indexOf(wrong) + 1);
    merging().all();
    assertEquals(List.of(1, 1, 3, 1), IntStream.range(0, 4).mapToObj(p -> state().segments(p).size()).toList());
    assertEquals(wrong, state().segments(2).get(1));
  }

  @Test
  void aFileThatIsMissingIsNotMerged() throws IOException {
    write(4, 30);
    Segment missing = state().segments(2).get(2);
    Files.delete(root.resolve(TOPIC_FOLDER).resolve(missing.file()));
    Files.delete(root.resolve(TOPIC_FOLDER).resolve(missing.file()).getParent());
    Set<String> files = dataFiles();
    merging().all();
    // Each partition has a segment in that file.
    assertEquals(List.of(3, 3, 3, 3), IntStream.range(0, 4).mapToObj(p -> state().segments(p).size()).toList());
    assertEquals(Set.of(), left(files));
  }

  @Test
  void whatFailsBeforeThePutIsCleanedUp() throws IOException {
    write(6, 30);
    Set<String> files = dataFiles();
    store.failAll("flush " + TOPIC_FOLDER + "/data", BEFORE, new IOException("no space left on device"));
    assertEquals("IO", assertThrows(PartlogException.class, () -> merging().all()).id());
    assertEquals(5, state().version());
    assertEquals(files, dataFiles());
    assertEquals(Set.of(), left(files));
  }

  @Test
  void everythingIsDurableBeforeThePut() throws IOException {
    write(6, 30);
    merging().all();
    List<String> calls = store.calls();
    int put = calls.indexOf("putIfAbsent " + version(6));
    String folder = TOPIC_FOLDER + "/" + live().get(0).file().replace("/pool.log", "");
    int created = calls.indexOf("create " + folder + "/pool.log");
    int named = calls.indexOf("flush " + folder);
    int data = calls.indexOf("flush " + TOPIC_FOLDER + "/data");
    assertTrue(0 <= created && created < named && named < data && data < put, calls.toString());
    assertEquals(List.of(), calls.stream().filter(call -> call.startsWith("delete ")).toList());
  }

  @Test
  void tinyBatchesAreWrittenAgain() throws IOException {
    for (String codec : List.of("none", "zstd")) {
      for (int i = 0; i < 5; i++) {
        write(new Writes("w" + i, 1, 60, 0, 1, 64 << 20, 3, 30), Map.of("compression.type", codec));
      }
      publish();
      List<String> before = records();
      assertEquals(300, before.size());
      Set<String> files = dataFiles();
      assertEquals(300, live().stream().mapToInt(Segment::batches).sum());
      long bytes = live().stream().mapToLong(Segment::bytes).sum();
      MergeCounts done = merging().rebatch(4000);
      assertEquals(before, records());
      assertEquals(4, live().size());
      assertEquals(Set.of(), left(files));
      assertTrue(live().stream().mapToInt(Segment::batches).sum() <= 8, live().toString());
      assertEquals(done.bytes(), live().stream().mapToLong(Segment::bytes).sum());
      assertTrue(2 * done.bytes() < bytes, done + " of " + bytes);
      assertEquals(new MergeCounts(0, 0, 0), merging().rebatch(4000));
      tearDown();
    }
  }

  private void tearDown() throws IOException {
    try (Stream<Path> files = Files.walk(root)) {
      files.sorted((one, other) -> other.compareTo(one)).filter(file -> !file.equals(root)).forEach(file -> file.toFile().delete());
    }
  }

  /** LogAppendTime gives all records of a batch one time, so batches of different times stay apart. */
  @Test
  void batchesWithATimeOfTheirOwnStayApart() throws IOException {
    Map<String, String> config = Map.of("message.timestamp.type", "LogAppendTime");
    for (int i = 0; i < 6; i++) {
      write(new Writes("a" + i, 1, 1, 0, 1, 64 << 20, 0, 1), config);
    }
    List<String> before = records();
    assertTrue(before.stream().allMatch(record -> record.contains(" true ")), before.toString());
    merging().rebatch(1 << 18);
    assertEquals(before, records());
    assertEquals(1, live().stream().mapToInt(Segment::batches).sum(), "six batches of the same time");
    write(new Writes("b", 1, 40, 0, 1, 64 << 20, 0, 7), config);
    before = records();
    merging().rebatch(1 << 18);
    assertEquals(before, records());
    assertEquals(41, live().stream().mapToInt(Segment::batches).sum());
  }
}
