package io.sparklog.read;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.format.BatchHeader;
import io.sparklog.kit.HeldTopics;
import io.sparklog.kit.RemoteReads;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.Root;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.segment.SegmentFiles;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FileReader;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.LongStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** A cursor gives whole batches up to the end offset, says why it cannot, and waits for more. */
final class PartitionCursorTest {

  @TempDir
  Path directory;
  private WrittenTopic topic;

  /** Segments of three, two and one batches; the base offsets of the first alone are absolute, since it begins at 0. */
  @BeforeEach
  void write() throws IOException {
    topic = new WrittenTopic(directory, "t").with(TopicConfig.KAFKA_VIEW, "none");
    topic.segment(0, 10, 10, 10).commit().segment(0, 10, 10).commit().segment(0, 10).commit();
  }

  private PartitionCursor open(long offset) {
    return PartitionCursor.open(topic.root, "t", 0, offset);
  }

  private static List<Long> bases(List<PartitionCursor.Batches> given) {
    return given.stream().map(PartitionCursor.Batches::base).toList();
  }

  /** The bytes that a caller may send on: of the copy, or of the file. */
  private byte[] bytes(PartitionCursor.Batches batches) throws IOException {
    if (batches.copy() != null) {
      return batches.copy();
    }
    byte[] bytes = new byte[batches.bytes()];
    try (SegmentFile file = topic.root.open("t", batches.segment())) {
      file.read(batches.position(), bytes, 0, bytes.length);
    }
    batches.stamps().forEach(stamp -> BatchHeader.setBaseOffset(bytes, stamp.at(), stamp.base()));
    return bytes;
  }

  @Test
  void allSegmentsThatFitAreGivenAtOnce() throws IOException {
    try (PartitionCursor cursor = open(0)) {
      List<PartitionCursor.Batches> given = cursor.next(1 << 20);
      assertEquals(List.of(0L, 30L, 40L, 50L), bases(given), "batches of the first segment are given together, from its file");
      assertNull(given.get(0).copy());
      assertNotNull(given.get(1).copy());
      assertEquals(60, cursor.position());
      assertEquals(List.of(), cursor.next(1 << 20));
      long next = 0;
      for (PartitionCursor.Batches batches : given) {
        byte[] bytes = bytes(batches);
        for (int at = 0; at < bytes.length; at += BatchHeader.totalBytes(bytes, at), next += 10) {
          assertEquals(next, BatchHeader.baseOffset(bytes, at));
        }
        assertEquals(next, batches.nextOffset());
      }
    }
  }

  @Test
  void batchesThatDoNotFitAreGivenNext() throws IOException {
    int first = open(0).next(1).get(0).bytes();
    int second = open(10).next(1).get(0).bytes();
    try (PartitionCursor cursor = open(0)) {
      assertEquals(first, cursor.next(first + second - 1).get(0).bytes());
      assertEquals(10, cursor.position());
      assertEquals(second, cursor.next(0).get(0).bytes(), "at least one batch is given");
      assertEquals(20, cursor.position());
    }
    assertEquals(first + second, open(0).next(first + second).get(0).bytes());
  }

  @Test
  void largeBatchesAreGivenFromTheirFileWithTheirBaseOffsets() throws IOException {
    topic.padding = offset -> 3_000;
    topic.segment(0, 10, 10, 1).commit();
    try (PartitionCursor cursor = open(60)) {
      List<PartitionCursor.Batches> given = cursor.next(1 << 20);
      assertEquals(List.of(60L, 80L), bases(given));
      assertEquals(List.of(60L, 70L), given.get(0).stamps().stream().map(PartitionCursor.Cut::base).toList());
      assertEquals(List.of(60L, 70L), List.of(BatchHeader.baseOffset(bytes(given.get(0)), 0),
          BatchHeader.baseOffset(bytes(given.get(0)), given.get(0).stamps().get(1).at())));
      assertNotNull(given.get(1).copy(), "a small batch");
    }
  }

  @Test
  void aBatchThatHoldsThePositionIsGivenAsAWhole() throws IOException {
    try (PartitionCursor cursor = open(37)) {
      assertEquals(37, cursor.position());
      PartitionCursor.Batches batches = cursor.next(1).get(0);
      assertEquals(List.of(30L, 40L), List.of(batches.base(), batches.nextOffset()));
      assertEquals(40, cursor.position());
    }
  }

  /** Large segments are searched for the batch: those before it are not read. */
  @Test
  void aPositionInALargeSegmentIsFound() throws IOException {
    topic.padding = offset -> 5000;
    topic.segment(0, WrittenTopic.times(40, 10)).commit();
    try (PartitionCursor cursor = open(411)) {
      assertEquals(410, cursor.next(1).get(0).base());
      assertTrue(cursor.bytesRead() < topic.state().segments(0).get(3).bytes() / 4, cursor.bytesRead() + " bytes are read");
    }
  }

  @Test
  void offsetsMayHaveGaps() throws Exception {
    long start = topic.state().end(0);
    topic.tiled(0, start + 90, topic.gappyBatch(0, start, 5, 29), topic.gappyBatch(0, start + 30, 1, 59));
    topic.root.topic("t").newest();
    try (PartitionCursor cursor = open(start)) {
      PartitionCursor.Batches first = cursor.next(1).get(0);
      assertEquals(List.of(start, start + 30), List.of(first.base(), first.nextOffset()));
      assertEquals(start + 30, cursor.position());
      assertEquals(List.of(start + 30), bases(cursor.next(1)));
      assertEquals(start + 90, cursor.position(), "no record has an offset before the end offset");
      assertTrue(cursor.next(1).isEmpty());
    }
  }

  /** A topic of another kind has no root and no file. */
  @Test
  void topicsOfAnotherKindAreReadToo() throws Exception {
    HeldTopics held = new HeldTopics().hold(HeldTopics.copy(topic));
    try (PartitionCursor cursor = PartitionCursor.open(held, "t", 0, 0)) {
      assertEquals(List.of(0L, 30L, 40L, 50L), bases(cursor.next(1 << 20)));
      assertTrue(cursor.next(1).isEmpty());
    }
  }

  @Test
  void batchesOfARemotePlaceAreCopied() throws IOException {
    Root remote = new Root(new RemoteReads(topic.store).store());
    try (PartitionCursor cursor = PartitionCursor.open(remote, "t", 0, 0)) {
      List<PartitionCursor.Batches> given = cursor.next(1 << 20);
      assertEquals(List.of(0L, 10L, 20L, 30L, 40L, 50L), bases(given), "the batches were read for their checksums, by requests");
      assertArrayEquals(bytes(open(0).next(1).get(0)), given.get(0).copy());
    }
  }

  private static void assertFails(String id, String part, Executable executable) {
    PartlogException error = assertThrows(PartlogException.class, executable);
    assertEquals(id, error.id());
    assertTrue(error.getMessage().contains(part), error.getMessage());
  }

  private void deleteBefore(long offset) {
    topic.operator().deleteRecords(new TreeMap<>(Map.of(0, offset)), new TreeMap<>(), false);
  }

  @Test
  void anOffsetThatDoesNotExistIsAnErrorThatSaysSo() {
    assertFails("OFFSETS_OUT_OF_RANGE", "holds offsets 0 to 60", () -> open(61));
    assertFails("PARTITION_NOT_FOUND", "partition 3", () -> PartitionCursor.open(topic.root, "t", 3, 0));
    assertFails("TOPIC_NOT_FOUND", "u", () -> PartitionCursor.open(topic.root, "u", 0, 0));
    deleteBefore(35);
    assertFails("OFFSETS_EXPIRED", "The log starts at 35", () -> open(34));
    assertEquals(35, open(35).position());
  }

  @Test
  void aLogStartThatRisesAboveThePositionIsAnError() throws IOException {
    try (PartitionCursor cursor = open(0)) {
      cursor.next(1);
      deleteBefore(10);
      assertEquals(10, cursor.next(1).get(0).base());
      deleteBefore(35);
      assertFails("OFFSETS_EXPIRED", "Offsets 20 to 35", () -> cursor.next(1));
    }
  }

  /** A batch that was given is not given again, and is not lost, if the next one cannot be read. */
  @Test
  void batchesBeforeAFaultAreGiven() throws IOException {
    Path file = topic.dataFile(0, 1);
    byte[] whole = Files.readAllBytes(file);
    byte[] damaged = whole.clone();
    damaged[damaged.length - 1]++;
    try (PartitionCursor cursor = open(0)) {
      Files.write(file, damaged);
      assertEquals(List.of(0L, 30L), bases(cursor.next(1 << 20)));
      assertEquals(40, cursor.position());
      assertFails("BATCH_CORRUPT", "CRC", () -> cursor.next(1 << 20));
      Files.delete(file);
      assertFails("SEGMENT_MISSING", "offsets 30 to 50", () -> cursor.next(1 << 20));
      Files.write(file, whole);
      assertEquals(List.of(40L, 50L), bases(cursor.next(1 << 20)));
    }
  }

  @Test
  void anotherTopicOfTheNameIsAnError() throws IOException {
    try (PartitionCursor cursor = open(0)) {
      cursor.next(1);
      topic.operator().delete(false);
      assertFails("TOPIC_NOT_FOUND", "t", () -> cursor.next(1));
      new WrittenTopic(directory, "t").segment(0, 10, 10, 10).commit();
      assertFails("TOPIC_REPLACED", "t", () -> cursor.next(1));
    }
  }

  @Test
  void anEndOffsetThatFellBelowThePositionIsAnError() throws Exception {
    HeldTopics.Held older = HeldTopics.copy(topic);
    topic.segment(0, 10).commit();
    HeldTopics held = new HeldTopics().hold(HeldTopics.copy(topic));
    try (PartitionCursor cursor = PartitionCursor.open(held, "t", 0, 65)) {
      held.hold(older);
      assertFails("OFFSETS_OUT_OF_RANGE", "holds offsets 0 to 60", () -> cursor.next(1));
    }
  }

  private interface Opening {
    SegmentFile of(Segment segment) throws IOException;
  }

  /** The topics of the root, with data files that {@code opening} opens. */
  private ReadableTopics opened(Opening opening) {
    return (ReadableTopics) Proxy.newProxyInstance(ReadableTopics.class.getClassLoader(), new Class<?>[] {ReadableTopics.class},
        (proxy, method, arguments) -> method.getName().equals("open") && arguments[1] instanceof List
            ? (SegmentFiles) extent -> opening.of(extent.segment())
            : method.invoke(topic.root, arguments));
  }

  @Test
  void batchesBeforeAFaultAreGivenIfItsFileCannotBeClosed() throws IOException {
    ReadableTopics topics = opened(
        segment -> segment.base() != 30 ? topic.root.open("t", segment) : new SegmentFile("t", segment, "here", new FileReader() {
          @Override
          public long bytes() {
            return segment.endOfIndex();
          }

          @Override
          public void read(long position, ByteBuffer to) throws IOException {
            throw new IOException("it cannot be read");
          }

          @Override
          public void close() throws IOException {
            throw new IOException("it cannot be closed");
          }
        }));
    try (PartitionCursor cursor = PartitionCursor.open(topics, "t", 0, 0)) {
      assertEquals(List.of(0L), bases(cursor.next(1 << 20)));
      assertEquals(30, cursor.position());
      IOException error = assertThrows(IOException.class, () -> cursor.next(1 << 20));
      assertEquals("it cannot be read", error.getMessage());
      assertEquals("it cannot be closed", error.getSuppressed()[0].getMessage());
    }
  }

  @Test
  void noBatchIsLostInAnError() throws IOException {
    AtomicBoolean isFull = new AtomicBoolean(true);
    ReadableTopics topics = opened(segment -> {
      if (segment.base() == 30 && isFull.getAndSet(false)) {
        throw new OutOfMemoryError("of the test");
      }
      return topic.root.open("t", segment);
    });
    try (PartitionCursor cursor = PartitionCursor.open(topics, "t", 0, 0)) {
      assertThrows(OutOfMemoryError.class, () -> cursor.next(1 << 20));
      assertEquals(0, cursor.position());
      assertEquals(List.of(0L, 30L, 40L, 50L), bases(cursor.next(1 << 20)));
    }
  }

  @Test
  void aCommitOfAnotherProcessIsFound() throws Exception {
    Root other = new Root(Stores.open(directory.toString()));
    try (PartitionCursor cursor = PartitionCursor.open(other, "t", 0, 60)) {
      assertTrue(cursor.next(1).isEmpty());
      topic.segment(0, 10).commit();
      assertEquals(LongStream.of(60).boxed().toList(), bases(cursor.next(1)));
    }
  }
}
