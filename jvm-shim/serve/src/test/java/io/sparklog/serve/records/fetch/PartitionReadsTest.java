package io.sparklog.serve.records.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.read.PartitionCursor;
import io.sparklog.spec.PartlogException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Reads give whole batches with absolute offsets, from any offset on, also while files are replaced. */
final class PartitionReadsTest {
  @TempDir
  Path directory;

  private WrittenTopic topic;
  private PartitionReads reads;

  @BeforeEach
  void open() {
    topic = new WrittenTopic(directory, "t").with(TopicConfig.KAFKA_VIEW, "none");
    reads = new PartitionReads(topic.root, Clock.systemUTC(), Long.MAX_VALUE);
  }

  @ParameterizedTest
  @ValueSource(strings = {"none", "gzip", "snappy", "lz4", "zstd"})
  void aReaderThatGoesOnSeesEachRecordOnceBesideMovesOfFiles(String codec) throws Exception {
    Random random = new Random(Seed.draw());
    topic.with("compression.type", codec);
    topic.padding = offset -> offset % 50 == 0 ? 30_000 : (int) (offset % 20);
    topic.segment(0, 60, 50, 40).commit();
    List<WrittenTopic.Row> seen = new ArrayList<>();
    for (int step = 0; step < 120 && seen.size() < topic.rows.get(0).size() || step < 20; step++) {
      if (step < 20 && random.nextInt(3) == 0) {
        topic.segment(0, 1 + random.nextInt(60), 1 + random.nextInt(60)).commit();
      }
      State state = topic.state();
      int position = seen.size();
      if (position == state.end(0)) {
        assertEquals(List.of(), reads.read(state, 0, position, 1 << 20));
        continue;
      }
      List<FetchedBytes> parts = reads.read(state, 0, position, 1 + random.nextInt(80_000));
      if (random.nextInt(2) == 0) {
        topic.move(0, random.nextInt(state.segments(0).size())); // The bytes of an answer that is not sent yet are still there.
      }
      Fetched.rows(topic, 0, Fetched.bytes(parts)).stream().filter(row -> row.offset() >= position).forEach(seen::add);
    }
    assertEquals(topic.rows.get(0), seen);
    assertEquals(0, reads.filesOpen());
    assertEquals(0, reads.cursorsIdle(), "a cursor at the end offset is closed");
  }

  @Test
  void largeBatchesAreSentFromTheirFileAndSmallOnesAreCopied() throws Exception {
    topic.padding = offset -> 3_000;
    topic.segment(0, 20, 1).commit();
    List<FetchedBytes> large = reads.read(topic.state(), 0, 0, 30_000);
    assertTrue(large.get(0) instanceof FetchedBytes.FromFile);
    assertEquals(1, reads.filesOpen());
    PartitionReads.close(large);
    assertEquals(0, reads.filesOpen());
    assertTrue(reads.read(topic.state(), 0, 20, 30_000).get(0) instanceof FetchedBytes.Copied);
  }

  @Test
  void laterReadersSeeEachRecordOnceWhereverTheyBeginBesideMovesOfFiles() throws Exception {
    Random random = new Random(Seed.draw());
    topic.padding = offset -> offset % 7 == 0 ? 9_000 : 500;
    for (int i = 0; i < 3; i++) {
      topic.segment(0, 20, 1 + random.nextInt(30), 1, 20).commit();
    }
    for (int reader = 0; reader < 12; reader++) {
      State state = topic.state();
      long first = reader % 3 == 2 ? random.nextInt((int) state.end(0)) : 0;
      int bytesMax = reader % 2 == 0 ? 100_000 : 1 + random.nextInt(200_000);
      List<WrittenTopic.Row> seen = new ArrayList<>();
      for (long next = first; next < state.end(0);) {
        State now = topic.state();
        List<FetchedBytes> parts = reads.read(now, 0, next, bytesMax);
        if (random.nextInt(8) == 0) {
          topic.move(0, random.nextInt(now.segments(0).size()));
        }
        long position = next;
        Fetched.rows(topic, 0, Fetched.bytes(parts)).stream().filter(row -> row.offset() >= position).forEach(seen::add);
        next = seen.get(seen.size() - 1).offset() + 1;
      }
      assertEquals(topic.rows.get(0).subList((int) first, topic.rows.get(0).size()), seen);
    }
    assertEquals(0, reads.filesOpen());
  }

  @Test
  void largeBatchesAreCheckedBeforeTheyAreSentForTheFirstTime() throws Exception {
    topic.padding = offset -> 3_000;
    topic.segment(0, 20, 20).commit();
    byte[] first = Fetched.bytes(reads.read(topic.state(), 0, 0, 1 << 20));
    Path file = directory.resolve("_partlog/t").resolve(topic.state().segments(0).get(0).file());
    byte[] damaged = Files.readAllBytes(file);
    damaged[first.length - 1]++;
    Files.write(file, damaged);
    byte[] later = Fetched.bytes(reads.read(topic.state(), 0, 0, 1 << 20));
    assertEquals((byte) (first[first.length - 1] + 1), later[first.length - 1], "the client finds the damage by the CRC of the batch");
    PartitionReads started = new PartitionReads(topic.root, Clock.systemUTC(), Long.MAX_VALUE);
    assertEquals("BATCH_CORRUPT", assertThrows(PartlogException.class, () -> started.read(topic.state(), 0, 20, 1 << 20)).id());
  }

  @Test
  void aFileThatWasCutAfterItsCheckIsReportedAndNotSent() throws Exception {
    topic.padding = offset -> 3_000;
    topic.segment(0, 20, 20).commit();
    PartitionReads.close(reads.read(topic.state(), 0, 0, 1 << 20));
    Path file = directory.resolve("_partlog/t").resolve(topic.state().segments(0).get(0).file());
    Files.write(file, Arrays.copyOf(Files.readAllBytes(file), 70_000));
    PartlogException cut = assertThrows(PartlogException.class, () -> reads.read(topic.state(), 0, 0, 1 << 20));
    assertEquals("SEGMENT_CORRUPT", cut.id());
    assertEquals(0, reads.filesOpen());
  }

  @Test
  void manyBatchesOfAFileThatWereReadOneByOneAreOnePart() throws Exception {
    topic.padding = offset -> 3_000;
    topic.segment(0, 20, 20, 20).commit();
    for (long offset : new long[] {0, 20, 40}) {
      PartitionReads.close(reads.read(topic.state(), 0, offset, 1));
    }
    List<FetchedBytes> parts = reads.read(topic.state(), 0, 0, 1 << 20);
    assertEquals(1, parts.size());
    assertEquals(60, Fetched.rows(topic, 0, Fetched.bytes(parts)).size());
  }

  @Test
  void theOldestOfTheCheckedBatchesAreForgotten() throws Exception {
    topic.padding = offset -> 3_000;
    topic.segment(0, 20, 20, 20).commit();
    State state = topic.state();
    CheckedBatches checked = new CheckedBatches(28);
    for (long offset : new long[] {0, 20, 40}) {
      try (PartitionCursor cursor = PartitionCursor.open(topic.root, "t", 0, offset)) {
        checked.add(state.topicId(), 0, cursor.next(1 << 20));
      }
    }
    assertEquals(10 + 9, checked.cuts(), "of 20, 40, then of 40; an entry counts as 8 cuts");
    assertEquals(List.of(), checked.find(state, 0, 0, 1 << 20));
    assertEquals(20, checked.find(state, 0, 20, 1 << 20).get(0).base());
    assertEquals(40, checked.find(state, 0, 40, 1 << 20).get(0).base());
    for (int i = 0; i < 3; i++) {
      checked.forget(state.topicId(), 0);
      assertEquals(0, checked.cuts());
      try (PartitionCursor cursor = PartitionCursor.open(topic.root, "t", 0, 20)) {
        checked.add(state.topicId(), 0, cursor.next(1 << 20));
      }
      assertEquals(10, checked.cuts());
    }
  }

  @Test
  void aReadThatGoesOnTakesTheCursorOfTheReadBefore() throws Exception {
    topic.segment(0, 10, 10, 10).commit();
    reads.read(topic.state(), 0, 0, 1);
    assertEquals(1, reads.cursorsIdle());
    reads.read(topic.state(), 0, 0, 1);
    assertEquals(1, reads.cursorsIdle(), "of two readers at the same place, one has the cursor");
    reads.read(topic.state(), 0, 10, 1);
    assertEquals(1, reads.cursorsIdle());
    reads.read(topic.state(), 0, 20, 1);
    assertEquals(0, reads.cursorsIdle());
  }

  @Test
  void anOffsetThatDoesNotExistIsOutOfRange() throws Exception {
    topic.segment(0, 10).commit().segment(0, 10).commit();
    State before = topic.state();
    topic.expire(0);
    assertEquals("OFFSETS_EXPIRED", assertThrows(PartlogException.class, () -> reads.read(before, 0, 9, 1)).id());
    assertEquals("OFFSETS_OUT_OF_RANGE", assertThrows(PartlogException.class, () -> reads.read(before, 0, 21, 1)).id());
    assertEquals(10, reads.read(topic.state(), 0, 10, 1).stream().mapToInt(part -> 10).sum());
  }

  @Test
  void recordsOfATopicThatTookTheNameAreNotGiven() throws Exception {
    topic.segment(0, 10, 10).commit();
    State before = topic.state();
    reads.read(before, 0, 0, 1);
    topic.operator().delete(false);
    topic.rows.clear();
    topic.segment(0, 10, 10).commit();
    for (long offset : new long[] {0, 10}) {
      assertEquals("TOPIC_REPLACED", assertThrows(PartlogException.class, () -> reads.read(before, 0, offset, 1)).id());
    }
    assertEquals(1, reads.read(topic.state(), 0, 0, 1).size());
  }
}
