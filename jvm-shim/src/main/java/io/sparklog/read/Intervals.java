package io.sparklog.read;

import java.io.Serializable;
import java.util.Arrays;
import java.util.Optional;
import java.util.PriorityQueue;

/** A set of longs, as closed intervals in order that neither touch nor overlap. */
public final class Intervals implements Serializable {
  public static final Intervals ALL = new Intervals(Long.MIN_VALUE, Long.MAX_VALUE);
  public static final Intervals NONE = new Intervals();

  /** First and last of each interval, in turn. */
  private final long[] bounds;

  private Intervals(long... bounds) {
    this.bounds = bounds;
  }

  /** All from {@code first} to {@code last}, both included; none if they are out of order. */
  public static Intervals of(long first, long last) {
    return first <= last ? new Intervals(first, last) : NONE;
  }

  public static Intervals of(long[] members) {
    long[] sorted = members.clone();
    Arrays.sort(sorted);
    long[] bounds = new long[2 * sorted.length];
    int used = 0;
    for (long member : sorted) {
      used = append(bounds, used, member, member);
    }
    return new Intervals(Arrays.copyOf(bounds, used));
  }

  /** Adds an interval that does not begin before the last one, and returns how many bounds there are. */
  private static int append(long[] bounds, int used, long first, long last) {
    if (used > 0 && (bounds[used - 1] == Long.MAX_VALUE || first <= bounds[used - 1] + 1)) {
      bounds[used - 1] = Math.max(bounds[used - 1], last);
      return used;
    }
    bounds[used] = first;
    bounds[used + 1] = last;
    return used + 2;
  }

  public Intervals or(Intervals other) {
    long[] union = new long[bounds.length + other.bounds.length];
    int used = 0;
    for (int i = 0, j = 0; i < bounds.length || j < other.bounds.length;) {
      if (j == other.bounds.length || i < bounds.length && bounds[i] <= other.bounds[j]) {
        used = append(union, used, bounds[i], bounds[i + 1]);
        i += 2;
      } else {
        used = append(union, used, other.bounds[j], other.bounds[j + 1]);
        j += 2;
      }
    }
    return new Intervals(Arrays.copyOf(union, used));
  }

  public Intervals and(Intervals other) {
    return not().or(other.not()).not();
  }

  public Intervals not() {
    long[] rest = new long[bounds.length + 2];
    int used = 0;
    long next = Long.MIN_VALUE;
    for (int i = 0; i < bounds.length; i += 2) {
      if (bounds[i] > next) {
        used = append(rest, used, next, bounds[i] - 1);
      }
      if (bounds[i + 1] == Long.MAX_VALUE) {
        return new Intervals(Arrays.copyOf(rest, used));
      }
      next = bounds[i + 1] + 1;
    }
    return new Intervals(Arrays.copyOf(rest, append(rest, used, next, Long.MAX_VALUE)));
  }

  /** These and the members of the smallest gaps between them, so that there are at most {@code most} intervals. */
  Intervals coarsened(int most) {
    int gaps = count() - 1;
    if (gaps < most) {
      return this;
    }
    // Unsigned: a gap may be wider than a long's greatest value.
    PriorityQueue<Integer> widest = new PriorityQueue<>((one, other) -> Long.compareUnsigned(gap(one), gap(other)));
    for (int gap = 0; gap < gaps; gap++) {
      if (widest.size() < most - 1) {
        widest.add(gap);
      } else if (most > 1 && Long.compareUnsigned(gap(gap), gap(widest.element())) > 0) {
        widest.remove();
        widest.add(gap);
      }
    }
    int[] kept = widest.stream().mapToInt(Integer::intValue).sorted().toArray();
    long[] coarse = new long[2 * most];
    coarse[0] = bounds[0];
    for (int i = 0; i < kept.length; i++) {
      coarse[2 * i + 1] = last(kept[i]);
      coarse[2 * i + 2] = first(kept[i] + 1);
    }
    coarse[coarse.length - 1] = bounds[bounds.length - 1];
    return new Intervals(coarse);
  }

  /** How many bytes the bounds take. */
  long bytes() {
    return (long) Long.BYTES * bounds.length;
  }

  /** These, or more of them in no more than {@code most} bytes; empty without room for any. */
  Optional<Intervals> within(long most) {
    long count = most / (2 * Long.BYTES);
    return count < 1 ? Optional.empty() : Optional.of(coarsened((int) Math.min(count, Integer.MAX_VALUE)));
  }

  /** From the end of an interval to the start of the next. */
  private long gap(int interval) {
    return first(interval + 1) - last(interval);
  }

  public int count() {
    return bounds.length / 2;
  }

  public long first(int interval) {
    return bounds[2 * interval];
  }

  public long last(int interval) {
    return bounds[2 * interval + 1];
  }

  public boolean contains(long member) {
    return covers(member, member);
  }

  /** Whether all from {@code first} to {@code last} are in here. */
  boolean covers(long first, long last) {
    int at = intervalUpTo(first);
    return at >= 0 && last <= bounds[at + 1];
  }

  /** Whether any from {@code first} to {@code last} is in here. */
  boolean meets(long first, long last) {
    int at = intervalUpTo(last);
    return at >= 0 && bounds[at + 1] >= first;
  }

  /** The index in {@link #bounds} of the last interval that begins at {@code key} or before; −2 if none does. */
  private int intervalUpTo(long key) {
    int low = 0;
    int high = bounds.length / 2;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (bounds[2 * middle] <= key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return 2 * (low - 1);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Intervals intervals && Arrays.equals(bounds, intervals.bounds);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(bounds);
  }

  @Override
  public String toString() {
    return Arrays.toString(bounds);
  }
}
