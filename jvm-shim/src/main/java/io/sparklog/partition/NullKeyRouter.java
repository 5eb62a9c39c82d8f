package io.sparklog.partition;

import java.util.Comparator;
import java.util.stream.IntStream;

/**
 * Where one task of a write puts its records without a key: to one partition until its batch is closed, then to the one that will be
 * emptiest. FORMAT.md section 13.
 *
 * <p>Each task sees only what was committed and what it wrote itself, and assumes that the others do as it does. Since it is told nothing
 * else, a retried task routes alike.
 */
public final class NullKeyRouter {
  private final int tasks;
  /** By partition: committed records, and own ones times tasks. */
  private final long[] expected;

  private int current;

  /** @param committedRecords of each partition, at planning */
  public NullKeyRouter(long[] committedRecords, int tasks, int task) {
    this.tasks = tasks;
    this.expected = committedRecords.clone();
    this.current =
        IntStream.range(0, expected.length)
            .boxed()
            .sorted(Comparator.comparingLong((Integer partition) -> expected[partition])) // stable: ties by number
            .skip(task % expected.length)
            .findFirst()
            .orElseThrow();
  }

  /** Where records without a key go now. */
  public int partition() {
    return current;
  }

  /** One of this task's records went to {@link #partition}. */
  public void count() {
    expected[current] += tasks;
  }

  /** A batch of {@link #partition} was closed: moves on. */
  public void next() {
    int least = 0;
    for (int partition = 1; partition < expected.length; partition++) {
      // Unsigned, so that an expectation beyond 2⁶³ is a large one.
      if (Long.compareUnsigned(expected[partition], expected[least]) < 0) {
        least = partition;
      }
    }
    current = least;
  }
}
