package io.sparklog.merge;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.segment.Segment;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The merges that are due, for sizes alone. */
final class MergePlanTest {
  private static final long K = 1 << 10;
  private static final long M = 1 << 20;
  private static final long BUDGET = 32 * M;
  private static final long WEEK = 7 * 86_400_000;

  private static Segment segment(int partition, long base, long bytes) {
    return segment(partition, base, base + 1, bytes);
  }

  private static Segment segment(int partition, long base, long end, long bytes) {
    return new Segment(partition, "f", base, bytes, base, end, end - base, 1, 0, 0, Segment.Offsets.DENSE, true, true, 0);
  }

  private static List<Segment> segments(int partition, LongStream bytes) {
    List<Segment> segments = new ArrayList<>();
    bytes.forEach(one -> segments.add(segment(partition, segments.size(), one)));
    return segments;
  }

  private static List<Segment> segments(long... bytes) {
    return segments(0, LongStream.of(bytes));
  }

  private static MergePlan plan() {
    return new MergePlan(BUDGET, BUDGET, WEEK, 8, segment -> false, segment -> false);
  }

  /** The base offsets of the run that is due in one partition. */
  private static List<Long> due(MergePlan plan, List<Segment> segments) {
    return plan.due(List.of(segments)).stream().flatMap(run -> run.segments().stream()).map(Segment::base).toList();
  }

  private static List<Long> range(long first, long last) {
    return LongStream.rangeClosed(first, last).boxed().toList();
  }

  private static long[] of(int count, long bytes) {
    return IntStream.range(0, count).mapToLong(i -> bytes).toArray();
  }

  private static List<Segment> joined(long[]... parts) {
    return segments(0, List.of(parts).stream().flatMapToLong(LongStream::of));
  }

  @Test
  void aLevelIsAFactorOfEight() {
    assertEquals(List.of(0, 0, 1, 1, 2, 2, 3, 3, 4),
        LongStream.of(1, 64 * K - 1, 64 * K, 512 * K - 1, 512 * K, 4 * M - 1, 4 * M, 32 * M - 1, 32 * M)
            .mapToObj(MergePlan::level)
            .toList());
  }

  @Test
  void eightOfALevelBecomeOne() {
    assertEquals(List.of(), due(plan(), joined(of(7, 100))));
    assertEquals(range(0, 7), due(plan(), joined(of(8, 100))));
    assertEquals(range(1, 8), due(plan(), joined(of(1, M), of(8, 100))));
    // Lower levels between them go with them, a higher one is between two rows.
    assertEquals(range(0, 8), due(plan(), joined(of(4, 100 * K), of(1, 100), of(4, 100 * K), of(1, 100))));
    assertEquals(List.of(), due(plan(), joined(of(4, 100 * K), of(1, 2 * M), of(4, 100 * K))));
    // The lowest level first, and the oldest row of it.
    assertEquals(range(8, 15), due(plan(), joined(of(8, M), of(8, 100), of(1, M), of(8, 100))));
    assertEquals(List.of(), due(plan(), joined(of(8, 3 * M + 900 * K)).subList(0, 7)));
    assertEquals(range(0, 7), due(plan(), joined(of(8, 3 * M + 900 * K))));
    assertEquals(List.of(), due(plan(), joined(of(7, 4 * M))));
  }

  /** The segments of a write of many tasks, or of a query that did not merge for a while, are merged at once. */
  @Test
  void moreThanEightOfALevelBecomeOne() {
    assertEquals(range(0, 199), due(plan(), joined(of(200, 40 * K))));
    assertEquals(range(0, 818), due(plan(), joined(of(3000, 40 * K))), "as much as the budget");
    assertEquals(range(0, 2047), due(plan(), joined(of(3000, 100))), "as many as can be opened meanwhile");
  }

  @Test
  void manyNeighboursBecomeFewer() {
    long[] falling = LongStream.range(0, 33).map(i -> i % 8 == 7 ? 5 * M / 2 : i % 8 == 3 ? 65 * K : 100).toArray();
    // Levels are too mixed for eight of one; 33 are too many.
    assertEquals(List.of(), due(plan(), segments(falling).subList(0, 32)));
    assertEquals(range(0, 31), due(plan(), segments(falling)));
    assertEquals(range(0, 6), due(plan(), joined(of(8, 4 * M + K))), "as much as the budget in all: as many as fit");
    assertEquals(List.of(), due(plan(), joined(of(7, 4 * M + K))));
  }

  @Test
  void largeOnesAreLeftAloneAndEndAStretch() {
    assertEquals(List.of(), due(plan(), joined(of(40, 16 * M))));
    assertEquals(List.of(), due(plan(), joined(of(4, 100), of(1, 16 * M), of(7, 100))));
    assertEquals(range(5, 12), due(plan(), joined(of(4, 100), of(1, 16 * M), of(8, 100))));
    MergePlan small = new MergePlan(1000, BUDGET, WEEK, 8, segment -> false, segment -> false);
    assertEquals(List.of(), due(small, joined(of(40, 500))), "half of segment.bytes");
    assertEquals(range(0, 1), due(small, joined(of(40, 499))));
  }

  @Test
  void whatCannotBeMergedEndsAStretch() {
    List<Segment> segments = joined(of(12, 100));
    assertEquals(List.of(), due(new MergePlan(BUDGET, BUDGET, WEEK, 8, segment -> segment.base() == 5, segment -> false), segments));
    assertEquals(range(4, 11), due(new MergePlan(BUDGET, BUDGET, WEEK, 8, segment -> segment.base() == 3, segment -> false), segments));
    Segment dense = segments.get(3);
    segments.set(3, new Segment(0, "f", 3, 100, 3, 4, 1, 1, 0, 0, Segment.Offsets.TILED, true, true, 0));
    assertEquals(range(4, 11), due(plan(), segments));
    segments.set(3, new Segment(0, "f", 3, 100, 3, 3 + (1L << 30), 1, 1, 0, 0, Segment.Offsets.DENSE, true, true, 0));
    assertEquals(range(4, 11), due(plan(), segments), "half of all the offsets that a segment may have");
    segments.set(3, dense);
    assertEquals(range(0, 11), due(plan(), segments));
    // 2^31 - 1 offsets at most.
    long many = (1L << 30) - 1;
    List<Segment> wide = IntStream.range(0, 8)
        .mapToObj(i -> new Segment(0, "f", i, 100, i * many, (i + 1) * many, many, 1, 0, 0, Segment.Offsets.DENSE, true, true, 0))
        .toList();
    assertEquals(List.of(0L, many), due(plan(), wide));
  }

  @Test
  void thePartitionWithMostSegmentsIsFirst() {
    List<List<Segment>> partitions = List.of(segments(0, LongStream.of(of(8, 3 * M))), segments(1, LongStream.of(of(9, 3 * M))),
        segments(2, LongStream.of(of(8, 100))), List.of(), segments(4, LongStream.of(of(7, 100))));
    List<MergePlan.Run> runs = plan().due(partitions);
    assertEquals(List.of(1, 2), runs.stream().map(MergePlan.Run::partition).toList(), "27 MiB of partition 1 leave too little for 0");
    assertEquals(List.of(9, 8), runs.stream().map(run -> run.segments().size()).toList());
  }

  /**
   * The bytes that a query writes in each epoch; how many small segments it leaves at most; how many bytes are copied for each that it
   * writes.
   */
  static List<Arguments> streams() {
    Random random = new Random(1);
    return List.of(stream("100 B", 20_000, 16, 48, i -> 100), stream("8 KiB", 20_000, 28, 3.8, i -> 8 * K),
        stream("100 KiB", 20_000, 18, 3, i -> 100 * K), stream("1 MiB", 5000, 10, 2, i -> M),
        stream("lognormal around 20 KiB", 20_000, 300, 2.1, i -> lognormal(random, 20 * K, 20 * M)),
        stream("tiny, every 2nd 1 MiB", 5000, 20, 2, i -> i % 2 == 1 ? 100 : M),
        stream("tiny, every 5th 200 KiB", 20_000, 32, 7.6, i -> i % 5 == 0 ? 200 * K : 100),
        stream("tiny, every 2nd 6 MiB", 5000, 10, 1, i -> i % 2 == 1 ? 100 : 6 * M), stream("3.75 MiB", 5000, 7, 1, i -> 15 * M / 4),
        stream("lognormal around 1 MiB", 3000, 2000, 0.3, i -> lognormal(random, M, 200 * M)),
        stream("tiny, every 2nd 20 MiB", 3000, 1500, 0, i -> i % 2 == 1 ? 100 : 20 * M));
  }

  private static Arguments stream(String name, int epochs, int small, double copied, IntToLongFunction bytes) {
    return Arguments.of(name, epochs, small, copied, bytes);
  }

  private static long lognormal(Random random, long median, long most) {
    return Math.max(61, Math.min(most, (long) (median * Math.exp(2 * random.nextGaussian()))));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("streams")
  void fewSmallSegmentsAreLeftByAStream(String name, int epochs, int smallMax, double copiedMax, IntToLongFunction bytes) {
    List<Segment> live = new ArrayList<>();
    MergePlan plan = plan();
    long written = 0;
    long copied = 0;
    int smallMost = 0;
    for (int epoch = 0; epoch < epochs; epoch++) {
      Segment added = segment(0, epoch, bytes.applyAsLong(epoch));
      written += added.bytes();
      live.add(added);
      for (MergePlan.Run run : plan.due(List.of(live))) {
        copied += run.bytes();
        List<Segment> replaced = new ArrayList<>(run.segments());
        int at = live.indexOf(replaced.get(0));
        live.subList(at, at + replaced.size()).clear();
        live.add(at,
            segment(0, replaced.get(0).base(), replaced.get(replaced.size() - 1).end(), replaced.stream().mapToLong(Segment::bytes).sum()));
        assertTrue(live.get(at).bytes() <= BUDGET);
      }
      int small = 0;
      for (Segment segment : live) {
        small += segment.bytes() < BUDGET / 2 ? 1 : 0;
      }
      smallMost = Math.max(smallMost, small);
      assertTrue(small <= 32 * (1 + live.size() - small), small + " small segments beside " + (live.size() - small) + " large ones");
    }
    String found = name + ": " + smallMost + " small segments, " + (double) copied / written + " bytes copied for each";
    assertTrue(smallMost <= smallMax && copied <= (copiedMax + 0.05) * written, found);
  }

  /** It is asked after each commit. */
  @Test
  void aPlanForManySegmentsIsCheap() {
    List<List<Segment>> partitions = IntStream.range(0, 8)
        .mapToObj(p -> segments(p, IntStream.range(0, 25_000).mapToLong(i -> i % 20 == 0 ? 100 : 20 * M)))
        .toList();
    ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    long least = Long.MAX_VALUE;
    for (int i = 0; i < 30; i++) {
      // Time of the CPU: a machine that is busy with other things must not fail this.
      long began = threads.getCurrentThreadCpuTime();
      assertEquals(List.of(), plan().due(partitions));
      least = Math.min(least, threads.getCurrentThreadCpuTime() - began);
    }
    System.out.println("a plan for 200,000 segments takes " + least / 1000 + " µs");
    // It takes 15 ms on a machine of 2026; a plan that goes through the segments for each segment would take minutes.
    assertTrue(least < 500_000_000, "it takes " + least + " ns");
  }
}
