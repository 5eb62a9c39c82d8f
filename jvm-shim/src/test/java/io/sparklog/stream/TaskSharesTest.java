package io.sparklog.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import io.sparklog.read.RecordFilter;
import io.sparklog.read.Split;
import io.sparklog.segment.BatchPosition;
import io.sparklog.segment.Extent;
import io.sparklog.segment.Segment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class TaskSharesTest {
  private final long seed = Seed.draw();
  private final Random random = new Random(seed);

  private static Split split(int partition, long bytes, long records) {
    Segment segment = new Segment(partition, "f", 0, bytes, 0, records, records, 1, 0, 0, Segment.Offsets.DENSE, true, true, 0);
    return new Split("t", "id", 0, partition, 1, RecordFilter.ALL_RECORDS,
        List.of(Extent.of(segment, BatchPosition.startOf(segment), 0, records, false)), null);
  }

  private static long bytes(List<Split> share) {
    return share.stream().mapToLong(Split::bytesToRead).sum();
  }

  private static boolean isSmall(Split split) {
    return split.bytesToRead() < TaskShares.SMALL_BYTES;
  }

  @Test
  void smallSplitsShareFewTasksAndStayInOrder() {
    System.out.println("seed " + seed);
    for (int i = 0; i < Seed.either(1500, 5000); i++) {
      List<Split> splits = new ArrayList<>();
      int count = random.nextInt(40);
      for (int p = 0; p < count; p++) {
        long bytes = random.nextInt(10) == 0
            ? TaskShares.SMALL_BYTES + random.nextInt(100)
            : 61 + random.nextInt(random.nextBoolean() ? 100 : 1 << 20);
        splits.add(split(p, bytes, 1 + random.nextInt(100)));
      }
      int tasks = 1 + random.nextInt(12);
      boolean limited = random.nextBoolean();
      long recordsMax = limited ? 1 + random.nextInt(300) : Long.MAX_VALUE;
      List<List<Split>> shares = TaskShares.of(splits, tasks, recordsMax);

      List<Split> small = splits.stream().filter(TaskSharesTest::isSmall).toList();
      List<List<Split>> shared = shares.stream().filter(share -> isSmall(share.get(0))).toList();
      assertEquals(small, shared.stream().flatMap(List::stream).toList());
      assertEquals(splits.stream().filter(split -> !isSmall(split)).map(List::of).toList(),
          shares.stream().filter(share -> !isSmall(share.get(0))).toList());
      for (List<Split> share : shared) {
        assertTrue(share.size() == 1 || share.stream().mapToLong(Split::offsets).sum() <= recordsMax);
      }
      if (!limited) {
        assertTrue(shared.size() <= tasks && shared.size() >= Math.min(small.size(), 1), shared.size() + " of " + tasks);
        long largest = small.stream().mapToLong(Split::bytesToRead).max().orElse(0);
        for (List<Split> share : shared) {
          assertTrue(bytes(share) <= bytes(small) / tasks + largest, bytes(share) + " of " + bytes(small) + " for " + tasks);
        }
      }
    }
  }

  @Test
  void asManyTasksAsCoresReadTinyPartitions() {
    List<Split> splits = new ArrayList<>();
    for (int p = 0; p < 8; p++) {
      splits.add(split(p, 1000, 10));
    }
    assertEquals(List.of(4, 4), TaskShares.of(splits, 2, Long.MAX_VALUE).stream().map(List::size).toList());
    assertEquals(List.of(2, 2, 2, 2), TaskShares.of(splits, 2, 20).stream().map(List::size).toList());
    assertEquals(8, TaskShares.of(splits, 8, Long.MAX_VALUE).size());
    assertEquals(List.of(), TaskShares.of(List.of(), 2, Long.MAX_VALUE));
  }
}
