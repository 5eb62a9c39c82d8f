package io.sparklog.partition;

import java.util.Arrays;
import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.function.LongPredicate;

/**
 * Where one task of a write puts its records without a key: to one partition until its batch is closed, then to another. FORMAT.md section 13.
 *
 * <p>Each task sees only what was committed and what it wrote itself, and simulates that the others do as it does. Since it is told nothing
 * else, a retried task routes alike.
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

  /** Where records without a key go now. */
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

  /** A round: the tasks choose one after another, each the partition that will be emptiest. */
  private void choose(long batchRecords, LongPredicate takesPart) {
    Arrays.fill(batches, 0);
    // Unsigned, so that an expectation beyond 2⁶³ is a large one.
    Comparator<long[]> emptiest = (one, other) -> Long.compareUnsigned(one[1], other[1]);
    PriorityQueue<long[]> queue = new PriorityQueue<>(emptiest.thenComparing(entry -> entry[0]));
    for (int partition = 0; partition < loads.length; partition++) {
      if (takesPart.test(loads[partition])) {
        queue.add(new long[] {partition, loads[partition]});
      }
    }
    for (int chooser = 0; chooser < tasks; chooser++) {
      long[] chosen = queue.remove();
      int partition = (int) chosen[0];
      batches[partition]++;
      if (chooser == task) {
        current = partition;
      }
      chosen[1] += batchRecords;
      queue.add(chosen);
    }
  }
}
