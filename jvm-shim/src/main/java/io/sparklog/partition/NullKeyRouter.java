package io.sparklog.partition;

import java.util.Arrays;
import java.util.function.LongPredicate;

/**
 * Where one task of a write puts its records without a key: into one partition until its batch is closed, then into another. FORMAT.md
 * section 13.
 *
 * <p>Each task knows only what was committed and what it wrote itself, and assumes that the other tasks write the same. Nothing else
 * decides, so a retried task routes in the same way.
 */
public final class NullKeyRouter {
  private final int tasks;
  private final int task;
  /** Records by partition: committed ones, and those of the rounds that are over. */
  private final long[] loads;
  /** Batches by partition that the tasks are filling in this round. */
  private final long[] batches;

  private int current;
  private long records;

  /**
   * @param committedRecords of each partition, at planning
   * @param batchRecords how many records the first batch of a task is taken to hold, at least 1
   */
  public NullKeyRouter(long[] committedRecords, long batchRecords, int tasks, int task) {
    this.tasks = tasks;
    this.task = task;
    this.loads = committedRecords.clone();
    this.batches = new long[loads.length];
    long least = Arrays.stream(loads).min().orElseThrow();
    double averageLead = Arrays.stream(loads).mapToDouble(load -> load - least).average().orElseThrow();
    choose(batchRecords, load -> load - least <= averageLead);
  }

  /** The partition of records without a key, until {@link #next}. */
  public int partition() {
    return current;
  }

  /** One of this task's records went to {@link #partition}. */
  public void count() {
    records++;
  }

  /** A batch of {@link #partition} was closed: moves on, if records without a key are in it. */
  public void next() {
    if (records > 0) {
      for (int partition = 0; partition < loads.length; partition++) {
        loads[partition] += batches[partition] * records;
      }
      long size = records;
      records = 0;
      choose(size, load -> true);
    }
  }

  /**
   * A round: the tasks choose one after another, each the partition that will be emptiest.
   *
   * <p>The offer of partition p, one choice after the other, is its load, its load + a batch, its load + two batches, and so on; the tasks
   * take the least of all offers, and of equal offers that of the lowest partition. This is computed without a loop over tasks, of which
   * there may be thousands.
   */
  private void choose(long batchRecords, LongPredicate takesPart) {
    long[] leads = new long[loads.length];
    long least = loads[0];
    for (long load : loads) {
      // Unsigned, so that an expectation beyond 2⁶³ is a large one.
      least = Long.compareUnsigned(load, least) < 0 ? load : least;
    }
    for (int partition = 0; partition < loads.length; partition++) {
      leads[partition] = takesPart.test(loads[partition]) ? loads[partition] - least : -1;
    }
    current = take(leads, batchRecords, task + 1);
    take(leads, batchRecords, tasks);
  }

  /** Gives out the first {@code choices} choices, into {@link #batches}. @return the partition that was chosen last */
  private int take(long[] leads, long batchRecords, int choices) {
    // The highest offer that is taken: the emptiest partition alone would reach this bound.
    long low = 0;
    long high = (choices - 1) * batchRecords;
    while (low < high) {
      long middle = (low + high) >>> 1;
      if (offers(leads, batchRecords, middle) >= choices) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    long left = choices - offers(leads, batchRecords, low - 1);
    int last = -1;
    for (int partition = 0; partition < leads.length; partition++) {
      long below = offers(leads[partition], batchRecords, low - 1);
      boolean offersLast = left > 0 && offers(leads[partition], batchRecords, low) > below;
      batches[partition] = below + (offersLast ? 1 : 0);
      if (offersLast) {
        left--;
        last = partition;
      }
    }
    return last;
  }

  private static long offers(long[] leads, long batchRecords, long most) {
    long offers = 0;
    for (long lead : leads) {
      offers += offers(lead, batchRecords, most);
    }
    return offers;
  }

  /** How many offers of a partition are at most {@code most}. */
  private static long offers(long lead, long batchRecords, long most) {
    return lead < 0 || lead > most ? 0 : (most - lead) / batchRecords + 1;
  }
}
