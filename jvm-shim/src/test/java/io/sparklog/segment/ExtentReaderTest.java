package io.sparklog.segment;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Layout;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.segment.ExtentReader.Need;
import io.sparklog.spec.PartlogException;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The checks of whole segments are the same whatever a caller needs of their batches, for queries and for merging. FORMAT.md section 9. */
final class ExtentReaderTest {
  @TempDir
  Path root;
  private final ReadAhead ahead = new ReadAhead();
  private final BatchDecoder decoder = new BatchDecoder(1 << 20);
  private WrittenTopic topic;

  @BeforeEach
  void begin() throws IOException {
    topic = new WrittenTopic(root, "t");
    topic.padding = offset -> 100;
    topic.segment(0, 8).commit();
  }

  /** The bytes of all batches, one after another, and the offsets that each begins with and ends before. */
  private record Found(byte[] bytes, List<Long> offsets) {}

  private Found read(Segment segment, Need need) throws IOException {
    return read(topic.root.open("t", segment), need, decoder);
  }

  private Found read(SegmentFile file, Need need, BatchDecoder decoder) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    List<Long> offsets = new ArrayList<>();
    try (ExtentReader reader = ExtentReader.open(file, Extent.of(file.segment()), need, ahead, decoder)) {
      while (reader.next()) {
        offsets.addAll(List.of(reader.base(), reader.nextOffset()));
        if (need != Need.OFFSETS) {
          bytes.write(reader.buffer(), reader.at(), reader.bytes());
          Arrays.fill(reader.buffer(), reader.at(), reader.at() + reader.bytes(), (byte) -1); // A merge changes them too.
        }
      }
    }
    return new Found(bytes.toByteArray(), offsets);
  }

  private PartlogException fails(Segment segment, Need need) {
    return assertThrows(PartlogException.class, () -> read(segment, need), need.toString());
  }

  private Segment dense(int... recordsOfBatches) throws IOException {
    topic.segment(0, recordsOfBatches).commit();
    return topic.root.state("t").segments(0).get(1);
  }

  private Path file(Segment segment) {
    return root.resolve(Names.topicFile("t", segment.file()));
  }

  @Test
  void batchesOfADenseSegment() throws IOException {
    // Some are read many at once, some on their own, and some are larger than what is read at once.
    Segment segment = dense(1, 30, 300, 700, 2, 5000, 1, 1, 900, 400, 3);
    byte[] bytes = Files.readAllBytes(file(segment));
    List<Long> offsets = read(segment, Need.OFFSETS).offsets();
    assertEquals(List.of(8L, 9L, 9L, 39L, 39L, 339L), offsets.subList(0, 6));
    assertEquals(22, offsets.size());
    for (Need need : List.of(Need.BYTES, Need.RECORDS)) {
      assertArrayEquals(bytes, read(segment, need).bytes(), need.toString());
      assertEquals(offsets, read(segment, need).offsets());
    }
  }

  /** As compaction leaves one: with gaps in its batches, and with a batch whose offset in the segment is no offset of the segment. */
  private Segment tiled() throws IOException {
    topic.tiled(0, 64, topic.gappyBatch(0, 8, 3, 4), topic.gappyBatch(0, 13, 1, 0), topic.gappyBatch(0, 14, 2, 45),
        topic.gappyBatch(0, 60, 2, 3));
    return topic.root.state("t").segments(0).get(1);
  }

  @Test
  void batchesOfATiledSegment() throws IOException {
    Segment segment = tiled();
    byte[] bytes = Files.readAllBytes(file(segment));
    for (Need need : Need.values()) {
      assertEquals(List.of(8L, 13L, 13L, 14L, 14L, 60L, 60L, 64L), read(segment, need).offsets());
      assertArrayEquals(need == Need.OFFSETS ? new byte[0] : bytes, read(segment, need).bytes());
    }
  }

  @Test
  void anIndexLeadsIntoATiledSegment() throws IOException {
    Segment segment = tiled();
    byte[] bytes = Files.readAllBytes(file(segment));
    int position = 0;
    for (int batch = 0; batch < 3; batch++) {
      position += BatchHeader.totalBytes(bytes, position);
    }
    try (SegmentFile file = topic.root.open("t", segment)) {
      byte[] header = new byte[Layout.HEADER_BYTES];
      assertEquals(OptionalLong.of(60), file.hintedBase(position, header, 63));
      assertEquals(OptionalLong.empty(), file.hintedBase(position, header, 62));
    }
    bytes[Layout.MAGIC_AT] = 7; // No header before the batch is read.
    Files.write(file(segment), bytes);
    Extent last = Extent.of(segment, new BatchPosition(position, 60), 60, 64, false);
    try (ExtentReader reader = ExtentReader.open(topic.root.open("t", segment), last, Need.RECORDS, ahead, decoder)) {
      assertTrue(reader.next());
      assertEquals(60, reader.base());
      assertFalse(reader.next());
    }
  }

  @Test
  void aHoleInATiledSegmentIsAnError() throws IOException {
    byte[] first = topic.gappyBatch(0, 8, 3, 4);
    topic.tiled(0, 17, first, topic.gappyBatch(0, 14, 2, 2));
    Segment segment = topic.root.state("t").segments(0).get(1);
    for (Need need : Need.values()) {
      assertEquals(Integer.toString(first.length), fails(segment, need).parameters().get("byte"), need.toString());
    }
  }

  @Test
  void everyFlippedBitOfATiledSegmentIsAnError() throws IOException {
    topic.padding = offset -> 0;
    topic.tiled(0, 20, topic.gappyBatch(0, 8, 3, 4), topic.gappyBatch(0, 13, 2, 6));
    // Offsets within the segment, as in a dense one: 8 is one bit from 0, and 13 from 5.
    assertEquals(2, harmless(topic.root.state("t").segments(0).get(1)));
  }

  @Test
  void everyFlippedBitIsAnErrorWhateverIsNeeded() throws IOException {
    topic.padding = offset -> 0;
    // The base offset field of a batch may hold the offset within the segment or within the partition: 8 is one bit from 0, and 11 from 3.
    assertEquals(2, harmless(dense(3, 2)));
  }

  /** How many bits of the file of a segment of two batches can be flipped without an error. */
  private int harmless(Segment segment) throws IOException {
    byte[] right = Files.readAllBytes(file(segment));
    int harmless = 0;
    int second = BatchHeader.totalBytes(right, 0);
    for (int bit = 0; bit < 8 * right.length; bit++) {
      int inBatch = bit / 8 < second ? bit / 8 : bit / 8 - second;
      if (inBatch >= Layout.HEADER_BYTES && bit % 8 != bit / 8 % 8) {
        continue; // One bit of each byte of the records will do: all are under one checksum.
      }
      byte[] wrong = right.clone();
      wrong[bit / 8] ^= (byte) (1 << bit % 8);
      Files.write(file(segment), wrong);
      List<Object> outcomes = new ArrayList<>();
      for (Need need : Need.values()) {
        try {
          outcomes.add(read(segment, need).offsets());
        } catch (PartlogException e) {
          outcomes.add(e.parameters());
          assertPlaced(e, segment);
        }
      }
      assertEquals(1, Set.copyOf(outcomes).size(), "bit " + bit + ": " + outcomes);
      harmless += outcomes.get(0) instanceof List ? 1 : 0;
    }
    return harmless;
  }

  private void assertPlaced(PartlogException error, Segment segment) {
    assertEquals(List.of("t", "0"), List.of(error.parameters().get("topic"), error.parameters().get("partition")));
    assertEquals(file(segment).toString(), error.parameters().get("file"));
    Set<String> place = error.id().equals("BATCH_CORRUPT") ? Set.of("byte") : Set.of("base", "end");
    assertTrue(error.parameters().keySet().containsAll(place), error.getMessage());
  }

  @Test
  void everyLengthButTheRightOneIsAnError() throws IOException {
    Segment segment = dense(3, 2);
    byte[] right = Files.readAllBytes(file(segment));
    for (int length = 0; length < right.length; length++) {
      Files.write(file(segment), Arrays.copyOf(right, length));
      for (Need need : Need.values()) {
        assertEquals("SEGMENT_CORRUPT", fails(segment, need).id(), need + ", cut to " + length);
      }
    }
  }

  @Test
  void theNumberOfBatchesIsChecked() throws IOException {
    for (Segment segment : List.of(dense(3, 2, 4, 1), tiled())) {
      for (Need need : Need.values()) {
        for (int batches : new int[] {3, 5}) {
          PartlogException error = fails(withBatches(segment, batches), need);
          assertEquals("SEGMENT_CORRUPT", error.id());
          assertEquals("it has 4 batches, and its version file says " + batches, error.parameters().get("reason"));
          assertPlaced(error, segment);
        }
      }
    }
  }

  private static Segment withBatches(Segment s, int batches) {
    return new Segment(s.partition(), s.file(), s.position(), s.bytes(), s.base(), s.end(), s.records(), batches, s.minTimestamp(),
        s.maxTimestamp(), s.offsets(), s.routed(), s.ordered(), s.headerCrc());
  }

  /** A broker's directory says nothing of its batches; what is told of them is a guess. */
  @Test
  void theNumberOfBatchesOfAnotherKindOfTopicIsNotKnown() throws IOException {
    Segment guessed = withBatches(dense(3, 2, 4), 1);
    SegmentFile file = new SegmentFile("t", guessed, "elsewhere", topic.store.open(Names.topicFile("t", guessed.file())));
    assertEquals(List.of(8L, 11L, 11L, 13L, 13L, 17L), read(file, Need.BYTES, decoder).offsets());
  }

  @Test
  void theEndOffsetIsChecked() throws IOException {
    Segment right = dense(3, 2, 4);
    for (Need need : Need.values()) {
      PartlogException early = fails(withEnd(right, 18), need);
      assertEquals("SEGMENT_CORRUPT", early.id());
      assertTrue(early.getMessage().contains("end at offset 17"), early.getMessage());
      PartlogException beyond = fails(withEnd(right, 16), need);
      assertEquals("BATCH_CORRUPT", beyond.id());
      assertTrue(beyond.getMessage().contains("past the end of its segment"), beyond.getMessage());
      assertEquals("SEGMENT_CORRUPT", fails(withEnd(right, 13), need).id(), "batches are left");
    }
  }

  private static Segment withEnd(Segment s, long end) {
    return new Segment(s.partition(), s.file(), s.position(), s.bytes(), s.base(), end, end - s.base(), s.batches(), s.minTimestamp(),
        s.maxTimestamp(), s.offsets(), s.routed(), s.ordered(), s.headerCrc());
  }

  /** A batch with a right CRC that no decoder accepts: merging, which copies batches, keeps it as it is. */
  @Test
  void recordsAreOnlyLookedAtWhereTheyAreNeeded() throws IOException {
    byte[] batch = topic.gappyBatch(0, 8, 3, 31);
    batch[Layout.HEADER_BYTES] ^= 4;
    CRC32C crc = new CRC32C();
    crc.update(batch, Layout.ATTRIBUTES_AT, batch.length - Layout.ATTRIBUTES_AT);
    ByteBuffer.wrap(batch).putInt(Layout.CRC_AT, (int) crc.getValue());
    topic.tiled(0, 40, batch);
    Segment segment = topic.root.state("t").segments(0).get(1);
    assertArrayEquals(batch, read(segment, Need.BYTES).bytes());
    assertEquals("BATCH_CORRUPT", fails(segment, Need.RECORDS).id());
    assertEquals("BATCH_CORRUPT", fails(segment, Need.OFFSETS).id(), "which of the offsets have records, only these tell");
  }

  @Test
  void aBatchThatIsTooLargeIsNotRead() throws IOException {
    Segment segment = dense(3, 3000);
    byte[] bytes = Files.readAllBytes(file(segment));
    int large = BatchHeader.totalBytes(bytes, BatchHeader.totalBytes(bytes, 0));
    assertTrue(large > 200 << 10, large + " bytes");
    BatchDecoder small = new BatchDecoder(64 << 10);
    for (Need need : Need.values()) {
      long before = ahead.bytesRead();
      PartlogException error = assertThrows(PartlogException.class, () -> read(topic.root.open("t", segment), need, small));
      assertEquals("BATCH_CORRUPT", error.id());
      assertEquals("it has " + large + " bytes; the limit is " + (61 + (64 << 10) / 8 * 9), error.parameters().get("reason"));
      assertTrue(ahead.bytesRead() - before < large, "it is not read");
    }
  }
}
