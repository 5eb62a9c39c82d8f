package io.sparklog.routing;

import java.util.Arrays;
import java.util.function.LongPredicate;
import java.util.stream.IntStream;

/**
 * Where one task of a write puts its records without a key: into one partition until its batch is closed, then into another. FORMAT.md
 * section L.1.
 *
 * <p>Each task knows only the committed loads and its own writes, and assumes that the other tasks write the same. Nothing else decides, so
 * a retried task routes in the same way.
 */
public final class NullKeyRouter {
  private final boolean byBytes;
  private final int tasks;
  private final int task;
  private final int[] weights;
  private final int greatestWeight;
  /** Weighed records or bytes by partition: the committed loads, and the loads of the rounds that are over. */
  private final long[] loads;
  /** Batches by partition that the tasks are filling in this round. */
  private final long[] batches;

  /** The round, from 0 on; but for whole turns of the tasks. */
  private int round;
  private int current;
  private long records;

  /**
   * @param committed records or bytes of each partition, at planning
   * @param weights of each partition: a partition of twice the weight gets twice as much, and a partition of weight 0 gets nothing
   * @param batch how many records or bytes the first batch of a task is taken to hold, at least 1
   * @param byBytes whether bytes are levelled, and not records
   */
  public NullKeyRouter(long[] committed, int[] weights, long batch, boolean byBytes, int tasks, int task) {
    this.byBytes = byBytes;
    this.tasks = tasks;
    this.task = task;
    this.weights = weights;
    this.greatestWeight = Arrays.stream(weights).max().orElseThrow();
    this.loads = new long[committed.length];
    this.batches = new long[loads.length];
    for (int partition = 0; partition < loads.length; partition++) {
      loads[partition] = weighed(committed[partition], partition);
    }
    long least = open().mapToLong(partition -> loads[partition]).min().orElseThrow();
    double averageLead = open().mapToDouble(partition -> loads[partition] - least).average().orElseThrow();
    choose(batch, load -> load - least <= averageLead);
  }

  private IntStream open() {
    return IntStream.range(0, loads.length).filter(partition -> weights[partition] > 0);
  }

  /** The load of a partition, scaled to the greatest weight; 0 for a closed partition, which gets no more load. */
  private long weighed(long load, int partition) {
    if (weights[partition] == greatestWeight || weights[partition] == 0) {
      return weights[partition] == 0 ? 0 : load;
    }
    long high = Math.multiplyHigh(load, greatestWeight);
    long weighed = load * greatestWeight / weights[partition];
    return high != 0 || load * greatestWeight < 0 ? Long.MAX_VALUE : weighed;
  }

  /** The partition of records without a key, until {@link #next}. */
  public int partition() {
    return current;
  }

  /** One of this task's records went to {@link #partition}. */
  public void count() {
    records++;
  }

  /** A batch of {@link #partition} with so many bytes was closed: moves on, if records without a key are in it. */
  public void next(long bytes) {
    if (records > 0) {
      long size = byBytes ? bytes : records;
      for (int partition = 0; partition < loads.length; partition++) {
        loads[partition] += batches[partition] * weighed(size, partition);
      }
      records = 0;
      round = (round + 1) % tasks;
      choose(size, load -> true);
    }
  }

  /**
   * A round: the tasks choose one after another, each the partition that will be emptiest. In the next round each task is one place later.
   * So each task comes to all partitions, and a task that writes more than others does not fill one partition.
   *
   * <p>The offers of partition p, one choice after the other, are its load, its load + a batch, its load + two batches, and so on. The
   * tasks take the least of all offers. Among equal offers, the lowest partition counts. This is computed without a loop over tasks: a
   * write may have thousands of tasks.
   */
  private void choose(long batch, LongPredicate takesPart) {
    long[] leads = new long[loads.length];
    // Unsigned, so that an expectation beyond 2⁶³ is a large one.
    long least = open().mapToObj(partition -> loads[partition]).min(Long::compareUnsigned).orElseThrow();
    long[] steps = new long[loads.length];
    for (int partition = 0; partition < loads.length; partition++) {
      leads[partition] = weights[partition] > 0 && takesPart.test(loads[partition]) ? loads[partition] - least : -1;
      steps[partition] = weighed(batch, partition);
    }
    current = take(leads, steps, (task + round) % tasks + 1);
    take(leads, steps, tasks);
  }

  /** Gives out the first {@code choices} choices, into {@link #batches}. @return the partition that was chosen last */
  private int take(long[] leads, long[] steps, int choices) {
    // The highest offer that is taken: the emptiest partition alone would reach this bound.
    long low = 0;
    long high = 0;
    for (int partition = 0; partition < leads.length; partition++) {
      high = leads[partition] == 0 ? Math.max(high, (choices - 1) * steps[partition]) : high;
    }
    while (low < high) {
      long middle = (low + high) >>> 1;
      if (offers(leads, steps, middle) >= choices) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    long left = choices - offers(leads, steps, low - 1);
    int last = -1;
    for (int partition = 0; partition < leads.length; partition++) {
      long below = offers(leads[partition], steps[partition], low - 1);
      boolean offersLast = left > 0 && offers(leads[partition], steps[partition], low) > below;
      batches[partition] = below + (offersLast ? 1 : 0);
      if (offersLast) {
        left--;
        last = partition;
      }
    }
    return last;
  }

  private static long offers(long[] leads, long[] steps, long most) {
    long offers = 0;
    for (int partition = 0; partition < leads.length; partition++) {
      offers += offers(leads[partition], steps[partition], most);
    }
    return offers;
  }

  /** How many offers of a partition are at most {@code most}. */
  private static long offers(long lead, long step, long most) {
    return lead < 0 || lead > most ? 0 : (most - lead) / step + 1;
  }
}
