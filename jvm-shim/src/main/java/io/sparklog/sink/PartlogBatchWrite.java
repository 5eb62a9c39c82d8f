package io.sparklog.sink;

import io.sparklog.log.Committed;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.spark.QueryMemory;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spark.StreamingQueries;
import io.sparklog.write.Once;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.LongFunction;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** The driver's side of one batch write. */
final class PartlogBatchWrite implements BatchWrite {
  private final DriverWrite write;
  private final Once transaction;

  /** @param transaction the user's own, or null */
  PartlogBatchWrite(DriverWrite write, Once transaction) {
    this.write = write;
    this.transaction = transaction;
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return write.factory(info);
  }

  /** Off: a task makes nothing visible, so several attempts may finish; Spark passes on the message of one. */
  @Override
  public boolean useCommitCoordinator() {
    return false;
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    WritesOfEpoch epoch = transaction == null ? WritesOfEpoch.ofThisThread().orElse(null) : null;
    if (epoch == null) {
      write.commit(messages, topic -> transaction == null ? Once.NEVER : transaction);
    } else {
      List<Committed> done = write.commit(messages, topic -> epoch.next(write.root(), topic));
      SparkErrors.act(() -> done.forEach(committed -> epoch.done(write.root(), committed.topic())));
    }
    QueryMemory.forget();
  }

  @Override
  public void abort(WriterCommitMessage[] messages) {
    write.abort(messages);
  }

  @Override
  public String toString() {
    return write.toString();
  }

  /**
   * The batch writes that the function of a {@code foreachBatch} has finished in the epoch it runs for. They name a write: the second one
   * to a topic is the second one again when the epoch is repeated.
   *
   * <p>Only writes on the query's own thread count: they have the order of the function.
   */
  private static final class WritesOfEpoch {
    private static final ThreadLocal<WritesOfEpoch> NEWEST = new ThreadLocal<>();

    private final StreamingQueries.Epoch epoch;
    private final LongFunction<String> inputs;

    /** By topic id: one root may have several paths. */
    private final Map<String, Integer> finished = new HashMap<>();

    private WritesOfEpoch(StreamingQueries.Epoch epoch) {
      this.epoch = epoch;
      this.inputs = StreamingQueries.inputs(epoch.queryId());
    }

    /** The writes of the epoch that runs on this thread; empty if it is not the thread of a streaming query. */
    static Optional<WritesOfEpoch> ofThisThread() {
      return StreamingQueries.ofThisThread().map(epoch -> {
        WritesOfEpoch newest = NEWEST.get();
        if (newest == null || !newest.epoch.equals(epoch)) {
          newest = new WritesOfEpoch(epoch);
          NEWEST.set(newest);
        }
        return newest;
      });
    }

    /** The name of the next write to a topic, 0 for the first write. It stays the same until that write is {@link #done}. */
    Once next(Root root, String topic) {
      int n = root.topic(topic).newest().map(state -> finished.getOrDefault(state.topicId(), 0)).orElse(0);
      return Once.inEpoch(epoch.queryId(), n, epoch.number(), inputs.apply(epoch.number())).withInputs(inputs);
    }

    /** @param topic that exists, as a write to it is finished */
    void done(Root root, String topic) {
      root.topic(topic).newest().map(State::topicId).ifPresent(id -> finished.merge(id, 1, Integer::sum));
    }
  }
}
