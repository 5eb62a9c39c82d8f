package io.sparklog.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.format.BatchHeader;
import io.sparklog.format.Layout;
import io.sparklog.kit.Seed;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** I7: whatever happens to the files, a read gives the committed records or an error that says where. */
final class DamageTest {
  @TempDir
  Path root;

  private PartlogException fails(Reads reads) {
    return assertThrows(PartlogException.class, reads::rows);
  }

  @Test
  void everyFlippedBitIsAnErrorOrMakesNoDifference() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 4).commit().segment(0, 3, 2).segment(1, 1).commit();
    Path file = topic.dataFile(0, 1);
    byte[] right = Files.readAllBytes(file);
    PartlogScan scan = Reads.of(root).scan();
    InputPartition[] planned = scan.toBatch().planInputPartitions();
    PartlogScan offsets = Reads.of(root).scanOfOffsets();
    int offsetsRead = later(offsets, planned).size();
    int harmless = 0;
    int second = BatchHeader.totalBytes(right, 0);
    for (int bit = 0; bit < 8 * right.length; bit++) {
      int inBatch = bit / 8 < second ? bit / 8 : bit / 8 - second;
      if (inBatch >= Layout.HEADER_BYTES && bit % 8 != bit / 8 % 8) {
        continue; // One bit of each byte of the records will do: all are under one checksum.
      }
      byte[] wrong = right.clone();
      wrong[bit / 8] ^= (byte) (1 << bit % 8);
      Files.write(file, wrong);
      try {
        Reads.assertRows(topic.allRows(), later(scan, planned), "bit " + bit);
        assertEquals(offsetsRead, later(offsets, planned).size());
        harmless++;
      } catch (PartlogException e) {
        assertEquals(e.id(), assertThrows(PartlogException.class, () -> later(offsets, planned)).id(),
            "asked for offsets alone, bit " + bit);
        assertTrue(Set.of("BATCH_CORRUPT", "SEGMENT_CORRUPT").contains(e.id()), e.getMessage());
        assertEquals("t", e.parameters().get("topic"));
        assertEquals("0", e.parameters().get("partition"));
        assertEquals(file.toString(), e.parameters().get("file"));
        assertNotNull(e.id().equals("BATCH_CORRUPT") ? e.parameters().get("byte") : e.parameters().get("base"));
      }
    }
    // The offset field of a batch may hold the offset within the segment or within the partition: 4 is one bit away from 0, and 7 from 3.
    assertEquals(2, harmless);
  }

  /** Large batches of which offsets alone are asked for take a way of their own through the reader. */
  @Test
  void damageOfLargeBatchesIsNoticedInPassing() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 9).commit().segment(0, 3, 1000, 8000, 5, 2000, 2000, 900, 20).commit();
    Path file = topic.dataFile(0, 1);
    byte[] right = Files.readAllBytes(file);
    int large = BatchHeader.totalBytes(right, BatchHeader.totalBytes(right, 0));
    assertTrue(large > 64 << 10, "a batch of 1000 has only " + large + " bytes");
    InputPartition[] planned = Reads.of(root).scan().toBatch().planInputPartitions();
    PartlogScan scan = Reads.of(root).scan();
    PartlogScan offsets = Reads.of(root).scanOfOffsets();
    List<Long> expected = topic.allRows().stream().map(WrittenTopic.Row::offset).toList();
    assertEquals(expected, later(offsets, planned).stream().map(WrittenTopic.Row::offset).toList());
    long seed = Seed.draw();
    System.out.println("seed " + seed);
    Random random = new Random(seed);
    for (int i = 0; i < Seed.either(60, 200); i++) {
      byte[] wrong = right.clone();
      int at = random.nextInt(right.length);
      wrong[at] ^= (byte) (1 << random.nextInt(8));
      boolean cut = i % 4 == 0;
      Files.write(file, cut ? Arrays.copyOf(right, at) : wrong);
      PartlogException error = assertThrows(PartlogException.class, () -> later(offsets, planned), "byte " + at);
      PartlogException whole = assertThrows(PartlogException.class, () -> later(scan, planned), "byte " + at);
      assertEquals(whole.id(), error.id(), "byte " + at);
      assertEquals(whole.parameters().get("byte"), error.parameters().get("byte"));
    }
    Files.write(file, right);
    for (int i = 0; i < 200; i++) {
      int start = random.nextInt(expected.size());
      int end = start + random.nextInt(expected.size() - start) + 1;
      Reads some = Reads.of(root, "assign", "{\"t\":[0]}", "startingOffsets", topic.json(start), "endingOffsets", topic.json(end));
      assertEquals(expected.subList(start, Math.min(end, expected.size())), some.offsets());
    }
  }

  @Test
  void everyLengthButTheRightOneIsAnError() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 3, 2).commit();
    Path file = topic.dataFile(0, 0);
    byte[] right = Files.readAllBytes(file);
    PartlogScan scan = Reads.of(root).scan();
    InputPartition[] planned = scan.toBatch().planInputPartitions();
    for (int length = 0; length < right.length; length++) {
      Files.write(file, Arrays.copyOf(right, length));
      assertEquals("SEGMENT_CORRUPT", assertThrows(PartlogException.class, () -> later(scan, planned)).id(), "cut to " + length);
    }
    Files.write(file, right);
    assertEquals(topic.allRows(), later(scan, planned));
  }

  @Test
  void otherOffsetsOfADamagedSegmentCanStillBeRead() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, WrittenTopic.times(60, 100)).commit();
    Path file = topic.dataFile(0, 0);
    byte[] bytes = Files.readAllBytes(file);
    bytes[bytes.length / 2] ^= 1;
    Files.write(file, bytes);
    PartlogException error = fails(Reads.of(root));
    assertEquals("BATCH_CORRUPT", error.id());
    String from = "{\"t\":{\"0\":3500}}";
    assertEquals(topic.rows(0, 3500, 6000), Reads.of(root, "assign", "{\"t\":[0]}", "startingOffsets", from).rows());
    String to = "{\"t\":{\"0\":2500}}";
    assertEquals(topic.rows(0, 0, 2500), Reads.of(root, "assign", "{\"t\":[0]}", "endingOffsets", to).rows());
    Files.write(file, Arrays.copyOf(bytes, bytes.length / 2));
    assertEquals(topic.rows(0, 0, 2500), Reads.of(root, "assign", "{\"t\":[0]}", "endingOffsets", to).rows());
  }

  /** Batches that are whole, in files that are whole, but not those that were committed. */
  @Test
  void otherBatchesAreNotTaken() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 4, 4).segment(0, 4).commit();
    byte[] bytes = Files.readAllBytes(topic.dataFile(0, 0));
    int first = BatchHeader.totalBytes(bytes, 0);
    byte[] swapped = new byte[bytes.length];
    System.arraycopy(bytes, first, swapped, 0, bytes.length - first);
    System.arraycopy(bytes, 0, swapped, bytes.length - first, first);
    Files.write(topic.dataFile(0, 0), swapped);
    assertEquals("BATCH_CORRUPT", fails(Reads.of(root)).id());
    for (int at = 0; at < swapped.length; at += BatchHeader.totalBytes(swapped, at)) {
      BatchHeader.setBaseOffset(swapped, at, at == 0 ? 0 : 4);
    }
    Files.write(topic.dataFile(0, 0), swapped);
    PartlogException error = fails(Reads.of(root));
    assertEquals("SEGMENT_CORRUPT", error.id());
    assertTrue(error.getMessage().contains("checksum"), error.getMessage());
  }

  @Test
  void halfStampedSegmentsReadTheSame() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 10).commit().segment(0, WrittenTopic.times(20, 10)).commit();
    byte[] bytes = Files.readAllBytes(topic.dataFile(0, 1));
    Random random = new Random(7);
    long base = 10;
    for (int at = 0; at < bytes.length; at += BatchHeader.totalBytes(bytes, at)) {
      BatchHeader.setBaseOffset(bytes, at, random.nextBoolean() ? base : base - 10);
      base += 10;
    }
    Files.write(topic.dataFile(0, 1), bytes);
    assertEquals(topic.allRows(), Reads.of(root).rows());
    assertEquals(topic.allRows(), Reads.of(root, "minPartitions", "13").rows());
  }

  @Test
  void theKafkaViewCostsNoRecord() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, WrittenTopic.times(50, 100)).commit();
    for (String kind : List.of("log", "index", "timeindex")) {
      Files.delete(topic.viewFile(0, 0, kind));
    }
    assertEquals(topic.allRows(), Reads.of(root, "minPartitions", "9").rows());
    Files.createFile(topic.viewFile(0, 0, "log"));
    Files.createDirectory(topic.viewFile(0, 0, "index"));
    assertEquals(topic.allRows(), Reads.of(root, "minPartitions", "9").rows());
  }

  @Test
  void aFileThatIsGoneIsAnError() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 5).segment(0, 6).commit();
    Files.delete(topic.dataFile(0, 1));
    PartlogException error = fails(Reads.of(root));
    assertEquals("SEGMENT_MISSING", error.id());
    assertEquals(List.of("t", "0", topic.dataFile(0, 1).toString(), "5", "11"), List.copyOf(error.parameters().values()));
    topic.segment(1, 1).commit();
    assertEquals("SEGMENT_MISSING", fails(Reads.of(root)).id(), "also when the topic has gone on");
  }

  /** A length is believed only as far as a batch of the topic can go: memory is taken for no more. */
  @Test
  void aBatchThatIsTooLargeIsNotRead() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 3).commit();
    int limit = 61 + (64 << 20) / 8 * 9;
    byte[] batch = Arrays.copyOf(topic.gappyBatch(0, 3, 1, 96), limit + 1);
    ByteBuffer.wrap(batch).putInt(8, batch.length - 12);
    topic.tiled(0, 100, batch);
    PartlogException error = fails(Reads.of(root));
    assertEquals("BATCH_CORRUPT", error.id());
    assertEquals("it has " + (limit + 1) + " bytes; the limit is " + limit, error.parameters().get("reason"));
  }

  @Test
  void aSymbolicLinkIsNoDataFile() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 5).commit();
    Path elsewhere = root.resolve("elsewhere");
    Files.move(topic.dataFile(0, 0), elsewhere);
    Files.createSymbolicLink(topic.dataFile(0, 0), elsewhere);
    assertThrows(PartlogException.class, () -> Reads.of(root).rows());
  }

  /** Runs a plan that is older than the last change of the topic. */
  private List<WrittenTopic.Row> later(PartlogScan scan, InputPartition[] planned) throws IOException {
    List<WrittenTopic.Row> rows = new ArrayList<>();
    for (InputPartition split : planned) {
      rows.addAll(Reads.rows(scan.toBatch().createReaderFactory(), split, scan.readSchema()));
    }
    return rows;
  }

  @Test
  void segmentsThatMovedAreFollowed() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, WrittenTopic.times(30, 100)).segment(0, 50, 50).segment(1, 9).commit();
    List<WrittenTopic.Row> rows = List.copyOf(topic.allRows());
    List<PartlogScan> scans = List.of(Reads.of(root).scan(), Reads.of(root, "minPartitions", "8").scan(),
        Reads.of(root, "maxRecordsPerPartition", "70").scan());
    List<InputPartition[]> plans = scans.stream().map(scan -> scan.toBatch().planInputPartitions()).toList();
    topic.move(0, 0);
    topic.segment(0, 4).commit();
    topic.move(0, 1);
    for (int i = 0; i < scans.size(); i++) {
      assertEquals(rows, later(scans.get(i), plans.get(i)));
    }
  }

  @Test
  void aSegmentThatMovesWhileItsNeighbourIsReadIsFollowed() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 10, 10).segment(0, 20).segment(0, 5).commit();
    PartlogScan scan = Reads.of(root).scan();
    PartitionReaderFactory factory = scan.toBatch().createReaderFactory();
    int rows = 0;
    try (PartitionReader<ColumnarBatch> reader = factory.createColumnarReader(scan.toBatch().planInputPartitions()[0])) {
      while (reader.next()) {
        rows += reader.get().numRows();
        if (rows == 10) {
          topic.move(0, 1);
          topic.move(0, 1);
        }
      }
    }
    assertEquals(45, rows);
  }

  @Test
  void whatExpiresWhileItIsReadIsAnErrorUnlessToldOtherwise() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 10).segment(0, 20).commit();
    PartlogScan strict = Reads.of(root).scan();
    PartlogScan lax = Reads.of(root, "failOnDataLoss", "false").scan();
    InputPartition[] strictPlan = strict.toBatch().planInputPartitions();
    InputPartition[] laxPlan = lax.toBatch().planInputPartitions();
    topic.expire(0);
    PartlogException error = assertThrows(PartlogException.class, () -> later(strict, strictPlan));
    assertEquals("OFFSETS_EXPIRED", error.id());
    assertEquals("10", error.parameters().get("start"));
    assertEquals(topic.rows(0, 10, 30), later(lax, laxPlan));
  }

  @Test
  void aTopicMadeAnewIsNotRead() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 10).commit();
    PartlogScan scan = Reads.of(root).scan();
    PartlogScan lax = Reads.of(root, "failOnDataLoss", "false").scan();
    InputPartition[] planned = scan.toBatch().planInputPartitions();
    InputPartition[] laxPlan = lax.toBatch().planInputPartitions();
    try (Stream<Path> files = Files.walk(root)) {
      for (Path path : files.sorted(Comparator.reverseOrder()).filter(path -> !path.equals(root)).toList()) {
        Files.delete(path);
      }
    }
    assertEquals("TOPIC_NOT_FOUND", assertThrows(PartlogException.class, () -> later(scan, planned)).id());
    assertEquals("ROOT_WITHOUT_LOG", assertThrows(PartlogException.class, () -> later(lax, laxPlan)).id());
    new WrittenTopic(root, "t").with("partitions", "4").segment(0, 10).commit();
    assertEquals("TOPIC_REPLACED", assertThrows(PartlogException.class, () -> later(scan, planned)).id());
    assertEquals(List.of(), later(lax, laxPlan));
    assertEquals(10, topic.allRows().size());
  }
}
