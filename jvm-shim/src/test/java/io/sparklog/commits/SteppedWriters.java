package io.sparklog.commits;

import io.sparklog.format.BatchEncoder;
import io.sparklog.format.Codec;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.random.RandomGenerator;

/** The writers of a server, which commit and keep up when a simulation says so, in its thread. */
public final class SteppedWriters {
  private final Deque<Runnable> commits = new ArrayDeque<>();
  private final Deque<Runnable> upkeeps = new ArrayDeque<>();
  private final TopicWriters writers;
  private final Clock clock;

  private final class Steps extends CommitThreads {
    @Override
    void commit(Runnable task) {
      commits.add(task);
    }

    @Override
    void commitLater(long ms, Runnable task) {
      commits.add(task);
    }

    @Override
    void keepUpLater(long ms, Runnable task) {
      upkeeps.add(task);
    }
  }

  public SteppedWriters(Root root, Clock clock, RandomGenerator random) {
    this.clock = clock;
    writers = new TopicWriters(root, CommitSettings.USUAL, new Steps(), topic -> {}, clock, random);
  }

  /**
   * Takes a batch of a client, which waits for {@link #commit}.
   *
   * @param state of the topic, a moment ago; empty if it does not exist, or null if it cannot be read
   * @param id of the producer
   * @param first the sequence of the first record
   * @param text begins the values, which end with the number of the record in the batch
   */
  public CompletableFuture<AppendResult> append(String topic, Optional<State> state, int partition, long id, int first, int records,
      String text) {
    ByteBuffer batch = ClientBatch.of(records, text).at(clock.millis()).by(id, 0, first).bytes();
    CompletableFuture<PreparedAppend> checked = new CompletableFuture<>();
    CompletableFuture<AppendResult> done = writers.append(topic, partition, batch, checked);
    try {
      if (state == null || state.isEmpty()) {
        throw new AppendRefused(state == null ? AppendRefused.Reason.STORAGE : AppendRefused.Reason.UNKNOWN_TOPIC,
            "The topic is not read.");
      }
      checked.complete(new Intake(state.get(), clock).prepared(partition, batch));
    } catch (AppendRefused refused) {
      checked.completeExceptionally(refused);
    }
    return done;
  }

  /**
   * Takes a record of a coordinator, which waits for {@link #commit}.
   *
   * @param end the end offset that the partition must have
   * @param replaces whether the record takes the place of all records of the partition
   */
  public CompletableFuture<AppendResult> append(String topic, String topicId, int partition, long end, boolean replaces, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    long now = clock.millis();
    BatchEncoder encoder = new BatchEncoder(Codec.NONE, false);
    encoder.begin(now, -1, bytes.length, 1);
    System.arraycopy(bytes, 0, encoder.buffer(), encoder.valueAt(), bytes.length);
    List<PreparedAppend.PreparedBatch> batches = List.of(PreparedAppend.PreparedBatch.unordered(encoder.close(0), now));
    return writers.append(topic, partition, PreparedAppend.of(topicId, batches, new PreparedAppend.Fence(end, replaces)));
  }

  /** Commits all that waits. */
  public void commit() {
    while (!commits.isEmpty()) {
      commits.remove().run();
    }
  }

  /** Does the upkeep of the commits before. */
  public void keepUp() {
    for (int left = upkeeps.size(); left > 0; left--) {
      upkeeps.remove().run();
    }
  }
}
