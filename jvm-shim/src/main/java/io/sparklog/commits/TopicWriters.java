package io.sparklog.commits;

import io.sparklog.log.Root;
import java.nio.ByteBuffer;
import java.time.Clock;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;

/** Adds batches to the topics of a root, by commits that many requests share. FORMAT.md section C.2. */
public final class TopicWriters implements AutoCloseable {
  private static final long CLOSE_NANOS = TimeUnit.MINUTES.toNanos(1);

  private final Root root;
  private final TopicWriter.Context context;

  /** For the batches of coordinators. */
  private final TopicWriter.Context unpaused;
  private final Map<String, TopicWriter> writers = new ConcurrentHashMap<>();
  private long queuedBytes;
  private boolean closed;

  /**
   * @param committed is called with the topic after each commit, on the thread that commits
   * @param random is safe for many threads
   */
  public TopicWriters(Root root, CommitSettings settings, Consumer<String> committed, Clock clock, RandomGenerator random) {
    this(root, settings, new CommitThreads(), committed, clock, random);
  }

  TopicWriters(Root root, CommitSettings settings, CommitThreads threads, Consumer<String> committed, Clock clock, RandomGenerator random) {
    this.root = root;
    this.context = new TopicWriter.Context(settings, threads, committed, clock, random, new Resends(clock));
    this.unpaused = context.withoutWait();
  }

  /**
   * Adds batches to a partition, behind the batches of earlier calls for the topic. Does not wait.
   *
   * @param topic by name
   * @param records one batch of a client, not checked yet
   * @param checked is completed by another thread when the batches are checked; with {@link AppendRefused} if they may not be added
   * @return is complete when the batches are durable; with {@link AppendRefused} if they are not added
   */
  public CompletableFuture<AppendResult> append(String topic, int partition, ByteBuffer records,
      CompletableFuture<PreparedAppend> checked) {
    CompletableFuture<AppendResult> done = new CompletableFuture<>();
    Resends.Sequence numbers = Resends.Sequence.of(records);
    CompletableFuture<AppendResult> answer = done
        .whenComplete((appended, refused) -> context.resends().answered(topic, partition, numbers, refused));
    int bytes = records.remaining();
    if (!takes(bytes)) {
      done.completeExceptionally(new AppendRefused(AppendRefused.Reason.BUSY, "More than " + context.settings().queuedBytesMax()
          + " bytes wait for their commit, or the server ends. Send the batches again later."));
      return answer;
    }
    queue(context, topic, new GroupCommit.Arrival(partition, bytes, checked, done, context.clock().millis()));
    return answer.whenComplete((appended, refused) -> release(bytes));
  }

  /**
   * Adds batches that a coordinator in this process made, without a wait for others. They are taken also beyond the limit of batches that
   * wait: a coordinator bounds its records.
   *
   * @param batches with a fence
   * @return is complete when the batches are durable; with {@link AppendRefused} if they are not added
   */
  public CompletableFuture<AppendResult> append(String topic, int partition, PreparedAppend batches) {
    CompletableFuture<AppendResult> done = new CompletableFuture<>();
    CompletableFuture<PreparedAppend> checked = CompletableFuture.completedFuture(batches);
    long bytes = batches.bytes();
    take(bytes);
    CompletableFuture<AppendResult> released = done.whenComplete((appended, refused) -> release(bytes));
    queue(unpaused, topic, new GroupCommit.Arrival(partition, bytes, checked, done, context.clock().millis()));
    return released;
  }

  /** @param ifNew the context of the topic's writer, if the topic has no writer yet */
  private void queue(TopicWriter.Context ifNew, String topic, GroupCommit.Arrival arrival) {
    try {
      writers.compute(topic, (name, known) -> {
        TopicWriter writer = known == null ? new TopicWriter(ifNew, root.topic(name), () -> drop(name)) : known;
        writer.queue(arrival);
        return writer;
      }).start();
    } catch (Throwable e) {
      arrival.done().completeExceptionally(e);
    }
  }

  /**
   * A caller refuses a batch, since it does not find the topic. The producer sends the batch again, and the topic may be there then. So
   * later batches of the producer wait for this batch.
   *
   * @param topic by name, or by id if the name is not known
   */
  public void refused(String topic, int partition, ByteBuffer records, Throwable failure) {
    context.resends().answered(topic, partition, Resends.Sequence.of(records), failure);
  }

  /** A caller has found the name of a topic. Batches of the producer may be {@link #refused} by the topic's id. */
  public void named(String topicId, String topic, int partition, ByteBuffer records) {
    context.resends().named(topicId, topic, partition, Resends.Sequence.of(records));
  }

  /** Whether batches of the topic were added lately, so that it is likely to exist. */
  public boolean serves(String topic) {
    return writers.containsKey(topic);
  }

  private void drop(String topic) {
    writers.computeIfPresent(topic, (name, writer) -> writer.isIdle() ? null : writer);
  }

  private synchronized boolean takes(long bytes) {
    if (closed || queuedBytes + bytes > context.settings().queuedBytesMax()) {
      return false;
    }
    take(bytes);
    return true;
  }

  private synchronized void take(long bytes) {
    queuedBytes += bytes;
  }

  /** Batches of so many bytes have their answer. */
  private synchronized void release(long bytes) {
    queuedBytes -= bytes;
    notifyAll();
  }

  /** Takes no more, and waits until all that waits has its answer, a minute at most. An interrupt ends the wait. */
  @Override
  public void close() {
    try {
      awaitAnswers();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    writers.values().forEach(TopicWriter::end); // No thread comes back to what waits in a pause.
    context.threads().end();
  }

  private synchronized void awaitAnswers() throws InterruptedException {
    closed = true;
    long end = System.nanoTime() + CLOSE_NANOS;
    for (long left = CLOSE_NANOS; queuedBytes > 0 && left > 0; left = end - System.nanoTime()) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
  }
}
