package io.sparklog.sink;

import io.sparklog.spark.StreamingQueries;
import io.sparklog.write.Once;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The batch writes that the function of a {@code foreachBatch} has finished in the epoch it runs for. They name a write: the second one to
 * a topic is the second one again when the epoch is repeated.
 *
 * <p>Only writes on the query's own thread count: their order is that of the function.
 */
final class WritesOfEpoch {
  private static final ThreadLocal<WritesOfEpoch> NEWEST = new ThreadLocal<>();

  private final StreamingQueries.Epoch epoch;
  private final String input;

  /** By root and topic. */
  private final Map<List<String>, Integer> finished = new HashMap<>();

  private WritesOfEpoch(StreamingQueries.Epoch epoch) {
    this.epoch = epoch;
    this.input = StreamingQueries.input(epoch.queryId(), epoch.number());
  }

  /** The writes of the epoch that runs on this thread; empty if it is not that of a streaming query. */
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

  /** The name of the next write to a topic. It stays the same until that write is {@link #done}. */
  Once next(String root, String topic) {
    return Once.inEpoch(epoch.queryId(), finished.getOrDefault(List.of(root, topic), 0), epoch.number(), input);
  }

  void done(String root, String topic) {
    finished.merge(List.of(root, topic), 1, Integer::sum);
  }
}
