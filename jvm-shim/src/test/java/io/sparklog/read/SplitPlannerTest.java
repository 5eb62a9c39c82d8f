package io.sparklog.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.State;
import io.sparklog.segment.BatchPosition;
import io.sparklog.segment.Extent;
import io.sparklog.source.Reads;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How offsets are shared out, and that splits together give each record once, whatever the indexes say. */
final class SplitPlannerTest {
  private static final int KIB = 1 << 10;

  @TempDir
  Path root;

  private static SplitPlanner.SplitSize size(long bytesMax) {
    return new SplitPlanner.SplitSize(bytesMax, bytesMax, 1, 1, Long.MAX_VALUE);
  }

  private List<Split> plan(WrittenTopic topic, SplitPlanner.SplitSize size, int partition, long start, long end) throws IOException {
    State state = topic.root.state(topic.topic);
    List<Selection> selections = Selection.of(List.of(new Selection.OffsetRange(state, partition, start, end)), Filter.ALL_RECORDS);
    return new SplitPlanner(topic.root, size, true).plan(selections);
  }

  private List<WrittenTopic.Row> rows(List<Split> splits) throws IOException {
    return Reads.rows(root, splits);
  }

  private static void damage(WrittenTopic topic, int partition, String how, Random random) throws IOException {
    for (int n = 0; n < topic.root.state(topic.topic).segments(partition).size(); n++) {
      Path index = topic.viewFile(partition, n, "index");
      byte[] bytes = Files.readAllBytes(index);
      switch (how) {
        case "right" -> {
        }
        case "absent" -> Files.delete(index);
        case "empty" -> Files.write(index, new byte[0]);
        case "noise" -> {
          random.nextBytes(bytes);
          Files.write(index, bytes);
        }
        case "flipped" -> {
          if (bytes.length > 0) {
            bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
            Files.write(index, bytes);
          }
        }
        case "shifted" -> {
          for (int at = 7; at < bytes.length; at += 8) {
            bytes[at]++;
          }
          Files.write(index, bytes);
        }
        case "of another batch" -> {
          for (int at = 0; at + 16 <= bytes.length; at += 16) {
            System.arraycopy(bytes.clone(), at + 12, bytes, at + 4, 4);
          }
          Files.write(index, bytes);
        }
        default -> throw new IllegalArgumentException(how);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"right", "absent", "empty", "noise", "flipped", "shifted", "of another batch"})
  void splitsGiveEachRecordOnce(String index) throws IOException {
    long seed = Seed.draw();
    System.out.println("seed " + seed + ", index " + index);
    Random random = new Random(seed);
    WrittenTopic topic = new WrittenTopic(root, "t").with("index.interval.bytes", Integer.toString(random.nextInt(8 * KIB)));
    for (int segments = 0; segments < 4; segments++) {
      int[] batches = new int[1 + random.nextInt(80)];
      for (int i = 0; i < batches.length; i++) {
        batches[i] = 1 + random.nextInt(random.nextBoolean() ? 3 : 200);
      }
      topic.segment(1, batches);
      if (random.nextBoolean()) {
        topic.commit();
      }
    }
    topic.commit();
    damage(topic, 1, index, random);
    int end = topic.rows.get(1).size();
    for (int i = 0; i < Seed.either(8, 30); i++) {
      long to = 1 + random.nextInt(end);
      long from = random.nextInt((int) to);
      SplitPlanner.SplitSize size = new SplitPlanner.SplitSize(1 + random.nextInt(1 << (4 + random.nextInt(18))), 0, 1,
          1 + (random.nextBoolean() ? 0 : random.nextInt(40)),
          random.nextBoolean() ? Long.MAX_VALUE : 1 + random.nextInt(1 << (3 + random.nextInt(12))));
      List<Split> splits = plan(topic, size, 1, from, to);
      Reads.assertRows(topic.rows(1, from, to), rows(splits), "seed " + seed + " " + from + " to " + to + " " + size);
      long next = from;
      for (Split split : splits) {
        assertTrue(split.offsets() <= size.recordsMax());
        for (Extent extent : split.extents()) {
          assertEquals(next, extent.startOffset());
          next = extent.endOffset();
        }
      }
      assertEquals(to, next);
    }
  }

  @Test
  void largeSegmentsAreCutWhereBatchesBegin() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, WrittenTopic.times(400, 100)).commit();
    long bytes = topic.root.state("t").segments(0).get(0).bytes();
    List<Split> splits = plan(topic, size(bytes / 10), 0, 0, 40_000);
    assertTrue(splits.size() == 10 || splits.size() == 11, "ten shares, cut at the batch before: " + splits.size());
    for (Split split : splits) {
      assertEquals(1, split.extents().size());
      assertEquals(0, split.extents().get(0).startOffset() % 100, "a batch is read by one task");
      assertTrue(split.bytesToRead() < bytes / 10 * 1.2 && split.bytesToRead() > bytes / 10 * 0.7,
          "even shares: " + split.bytesToRead() + " of " + bytes);
    }
  }

  /** The bytes that are left are guessed by offsets, and far too low where large records come first. */
  @Test
  void recordSizesThatChangeWithinASegmentMakeNoTinySplits() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t");
    topic.padding = offset -> offset < 4000 ? 2000 : 0;
    topic.segment(0, IntStream.concat(IntStream.generate(() -> 10).limit(400), IntStream.generate(() -> 1000).limit(16)).toArray())
        .commit();
    long splitBytes = 1 << 20;
    for (int end : new int[] {1000, 2000, 3000, 4000, 5000, 10_000, 20_000}) {
      List<Split> splits = plan(topic, size(splitBytes), 0, 0, end);
      long bytes = splits.stream().mapToLong(Split::bytesToRead).sum();
      assertTrue(splits.size() <= 2 * bytes / splitBytes + 1, end + ": " + splits.size() + " splits of " + bytes + " bytes");
      Reads.assertRows(topic.rows(0, 0, end), rows(splits), "end " + end);
    }
  }

  @Test
  void smallSegmentsGoTogetherAndPartitionsDoNot() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t");
    for (int i = 0; i < 30; i++) {
      topic.segment(i % 3, 20);
    }
    topic.commit();
    List<Split> splits = Reads.of(root).splits();
    assertEquals(List.of(0, 1, 2), splits.stream().map(Split::partition).toList());
    assertEquals(10, splits.get(0).extents().size());
    long bytes = splits.get(0).bytesToRead();
    assertEquals(2, plan(topic, size(bytes / 2 + 1), 0, 0, 200).size());
  }

  @Test
  void asManySplitsAsAskedForWhileBatchesLast() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, WrittenTopic.times(40, 50)).segment(1, WrittenTopic.times(10, 50)).commit();
    for (int wanted : new int[] {1, 2, 5, 20, 40}) {
      int found = Reads.of(root, "minPartitions", Integer.toString(wanted)).splits().size();
      assertTrue(found >= wanted && found <= 2 * wanted + 2, wanted + " wanted, " + found + " made");
    }
    assertEquals(50, Reads.of(root, "minPartitions", "100000").splits().size(), "one for each batch");
    assertEquals(topic.allRows(), Reads.of(root, "minPartitions", "100000").rows());
  }

  @Test
  void noTaskReadsMoreRecordsThanAllowed() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 100, 100).segment(0, 7).segment(1, 3).commit();
    for (int most : new int[] {1, 3, 7, 50, 99, 100, 207, 1000}) {
      Reads reads = Reads.of(root, "maxRecordsPerPartition", Integer.toString(most));
      assertEquals(topic.allRows(), reads.rows());
      assertTrue(reads.splits().stream().allMatch(split -> split.offsets() <= most));
      assertEquals((207 + most - 1) / most + (3 + most - 1) / most, reads.splits().size());
    }
  }

  /** A plan may have taken a wrong index at its word, or one of garbage that looked right. */
  @Test
  void aPositionWithoutTheRightBatchIsMended() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 5).commit().segment(0, WrittenTopic.times(40, 100)).commit();
    Split right = plan(topic, size(1 << 30), 0, 1000, 2000).get(0);
    Extent extent = right.extents().get(0);
    for (long position : new long[] {extent.from() + 1, extent.from() - 1, 1, extent.from() + 5000, extent.segment().bytes() - 61,
        extent.segment().bytes() - 1}) {
      for (long offset : new long[] {extent.fromOffset(), 1000, 999, 905}) {
        Extent wrong = extent.after(new BatchPosition(position, offset), 1000);
        Split split = new Split("t", right.topicId(), right.version(), 0, right.decompressedBytesMax(), right.filter(), List.of(wrong),
            null);
        Reads.assertRows(topic.rows(0, 1000, 2000), rows(List.of(split)), "position " + position + ", offset " + offset);
      }
    }
  }

  @Test
  void onlySegmentsThatAreEnteredAreOpened() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, WrittenTopic.times(30, 100))
        .commit()
        .segment(0, WrittenTopic.times(30, 100))
        .commit();
    Files.delete(topic.dataFile(0, 0));
    assertEquals(topic.rows(0, 3010, 6000), Reads.of(root, "assign", "{\"t\":[0]}", "startingOffsets", "{\"t\":{\"0\":3010}}").rows());
    assertEquals(1, plan(topic, size(1 << 30), 0, 0, 6000).size(), "a plan is made although a file is gone");
    assertEquals("SEGMENT_MISSING", assertThrows(PartlogException.class, () -> plan(topic, size(1), 0, 0, 3000)).id());
  }

  /** The state is read from its version files, and no other file is opened. */
  @Test
  void planningForManySegmentsTakesLittle() throws IOException {
    WrittenTopic topic = new WrittenTopic(root, "t").segment(0, 3).commit();
    topic.repeat(0, 9_999);
    assertEquals(10_000, Reads.of(root).splits().stream().mapToInt(split -> split.extents().size()).sum());
    ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    long ms = Long.MAX_VALUE;
    for (int i = 0; i < 3; i++) {
      // Time of the CPU: a machine that is busy with other things must not fail this.
      long start = threads.getCurrentThreadCpuTime();
      Reads.of(root).splits();
      ms = Math.min(ms, (threads.getCurrentThreadCpuTime() - start) / 1_000_000);
    }
    System.out.println("planned 10,000 segments in " + ms + " ms of CPU");
    // It takes a tenth of that on a machine of 2026; to open each file would take seconds.
    assertTrue(ms < 1000, ms + " ms");
  }
}
