package io.sparklog.write;

import io.sparklog.log.Step;
import io.sparklog.storage.LogStore;
import java.io.Closeable;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A task's part of a write: record batches for each partition, held in bounded memory, and then data files. Readers do not see the files
 * until the driver commits them. FORMAT.md section 7.
 *
 * <p>After any exception the task must {@link #abort}. Not thread-safe.
 */
public final class TaskWriter implements Closeable {
  /**
   * If a task holds fewer bytes at its end, they travel in its report: this saves a data file and its syncs. The limit is well below 1 MiB,
   * up to which Spark sends a task's result directly.
   */
  private static final int TRAVEL_BYTES_MAX = 256 << 10;

  /** The reports of all tasks together carry at most this much: the driver has all of it in memory at once. */
  private static final long TRAVEL_BYTES_OF_ALL = 64L << 20;

  private final TaskFiles files;
  private final int task;
  private final int tasks;
  private final int batchBytes;
  private final TaskTotals totals;
  private final Map<String, TopicBuffer> topics = new LinkedHashMap<>();

  /**
   * @param txn the random identity of the write
   * @param task its number, of {@code tasks}
   * @param attempt a number that no other attempt of any task of the write has
   * @param batchBytes the target size of a batch before compression
   * @param bufferBytes the most memory that batches may take
   */
  public TaskWriter(LogStore store, String txn, int task, int tasks, long attempt, int batchBytes, long bufferBytes) {
    this.files = new TaskFiles(store, txn, task, attempt);
    this.task = task;
    this.tasks = tasks;
    this.batchBytes = batchBytes;
    this.totals = new TaskTotals(bufferBytes);
  }

  /** Where the records of one topic go: always the same buffer for the same topic. */
  public TopicBuffer topic(TopicPlan plan) {
    return topics.computeIfAbsent(plan.topic(), topic -> new TopicBuffer(totals, files, plan, tasks, task, batchBytes));
  }

  /** Bytes of closed batches so far, whether they are written yet or held in memory. */
  public long writtenBytes() {
    return totals.writtenBytes();
  }

  public long records() {
    return totals.records();
  }

  /** The most memory that batches took at any time. */
  public long heldBytesPeak() {
    return totals.heldBytesPeak();
  }

  /** Closes the batches that are open, since there are no more rows: {@link #writtenBytes} then counts all of them. */
  public void closeBatches() throws IOException {
    for (TopicBuffer topic : topics.values()) {
      topic.closeBatches();
    }
  }

  /** Writes the rest and makes everything durable. @return the reports by topic */
  public Map<String, TopicReport> finish() throws IOException {
    closeBatches();
    long sharedBytes = 0;
    for (TopicBuffer topic : topics.values()) {
      sharedBytes += topic.finishOwnFiles();
    }
    boolean travel = sharedBytes < Math.min(TRAVEL_BYTES_MAX, TRAVEL_BYTES_OF_ALL / tasks);
    Map<String, TopicReport> reports = new LinkedHashMap<>();
    for (TopicBuffer topic : topics.values()) {
      reports.put(topic.plan().topic(), topic.finish(travel));
    }
    totals.requireReported(reports);
    Step.TASK_DONE.reached();
    return reports;
  }

  /** Deletes the files of this task. Best effort: no reader sees files that stay. */
  public void abort() {
    close();
    files.delete();
  }

  @Override
  public void close() {
    files.close();
  }
}
