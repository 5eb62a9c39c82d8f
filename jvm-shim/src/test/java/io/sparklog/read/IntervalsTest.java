package io.sparklog.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import java.util.Random;
import java.util.function.LongPredicate;
import org.junit.jupiter.api.Test;

/** Sets of longs against what is said of each member. */
final class IntervalsTest {
  /** Where mistakes would be: around 0 and at both ends of the longs. */
  private static final long[] PLACES = new long[63];

  static {
    for (int i = 0; i < 21; i++) {
      PLACES[i] = Long.MIN_VALUE + i;
      PLACES[21 + i] = i - 10;
      PLACES[42 + i] = Long.MAX_VALUE - 20 + i;
    }
  }

  private final long seed = Seed.draw();
  private final Random random = new Random(seed);

  private long place() {
    return PLACES[random.nextInt(PLACES.length)];
  }

  private record Said(Intervals intervals, LongPredicate members) {}

  private Said any(int depth) {
    int kind = depth == 0 ? random.nextInt(2) : random.nextInt(5);
    if (kind == 0) {
      long first = place();
      long last = place();
      return new Said(Intervals.of(first, last), member -> first <= member && member <= last);
    }
    if (kind == 1) {
      long[] members = random.longs(random.nextInt(6), 0, PLACES.length).map(i -> PLACES[(int) i]).toArray();
      return new Said(Intervals.of(members), member -> java.util.Arrays.stream(members).anyMatch(each -> each == member));
    }
    Said one = any(depth - 1);
    if (kind == 2) {
      return new Said(one.intervals.not(), one.members.negate());
    }
    Said other = any(depth - 1);
    return kind == 3
        ? new Said(one.intervals.and(other.intervals), one.members.and(other.members))
        : new Said(one.intervals.or(other.intervals), one.members.or(other.members));
  }

  @Test
  void holdWhatIsSaidOfThem() {
    System.out.println("seed " + seed);
    for (int i = 0; i < Seed.either(5_000, 20_000); i++) {
      Said said = any(4);
      Intervals found = said.intervals;
      for (long place : PLACES) {
        assertEquals(said.members.test(place), found.contains(place), () -> place + " in " + found);
      }
      for (int run = 0; run < found.count(); run++) {
        assertTrue(found.first(run) <= found.last(run), found::toString);
        assertTrue(run == 0 || found.first(run) > found.last(run - 1) + 1, () -> "not as few as can be: " + found);
      }
      int low = random.nextInt(PLACES.length);
      int high = low + random.nextInt(Math.min(21 - low % 21, PLACES.length - low));
      boolean some = false;
      boolean every = true;
      for (int place = low; place <= high; place++) {
        some |= said.members.test(PLACES[place]);
        every &= said.members.test(PLACES[place]);
      }
      assertEquals(some, found.meets(PLACES[low], PLACES[high]));
      assertEquals(every, found.covers(PLACES[low], PLACES[high]));
    }
  }

  @Test
  void growCoarseByTheSmallestGaps() {
    Intervals intervals = Intervals.of(new long[] {Long.MIN_VALUE, -50, 1, 2, 4, 9, 100, 102, Long.MAX_VALUE});
    assertEquals("[" + Long.MIN_VALUE + ", " + Long.MIN_VALUE + ", -50, 102, " + Long.MAX_VALUE + ", " + Long.MAX_VALUE + "]",
        intervals.coarsened(3).toString());
    assertEquals(1, intervals.coarsened(1).count());
    assertEquals(intervals, intervals.coarsened(8));
    assertEquals("[]", Intervals.NONE.coarsened(3).toString());
    for (int i = 0; i < 2000; i++) {
      Said said = any(4);
      int most = 1 + random.nextInt(4);
      Intervals coarse = said.intervals.coarsened(most);
      assertTrue(coarse.count() <= most);
      assertEquals(said.intervals, coarse.and(said.intervals), "seed " + seed);
    }
  }
}
