package io.sparklog.serve.coordinator.groups;

import io.sparklog.format.BatchEncoder;
import io.sparklog.format.Codec;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.serve.coordinator.groups.FencedAppend.Batch;
import io.sparklog.serve.coordinator.groups.FencedAppend.Part;
import io.sparklog.upkeep.TopicWork;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;

/** The appends of a coordinator, each of which is done by the thread that asks for it. */
public final class FencedWrites {
  private FencedWrites() {}

  /**
   * Adds a record to a partition if it ends at {@code end}.
   *
   * @param known the state that the coordinator knows
   * @param replaces whether the record takes the place of all records of the partition
   * @return the end offset after it; empty if the partition has another end
   * @throws io.sparklog.spec.PartlogException as a commit
   */
  public static OptionalLong append(TopicLog log, TopicWork work, State known, int partition, long end, boolean replaces, String value) {
    byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
    long now = work.clock().millis();
    BatchEncoder encoder = new BatchEncoder(Codec.NONE, false);
    encoder.begin(now, -1, bytes.length, 1);
    System.arraycopy(bytes, 0, encoder.buffer(), encoder.valueAt(), bytes.length);
    List<Batch> batches = List.of(new Batch(encoder.close(0), 1, now));
    Part part = new Part(known.topicId(), partition, end, replaces, batches, new CompletableFuture<>());
    String txn = work.identity();
    work.begin(new FencedAppend(log, known, List.of(part), txn), txn, 16 << 20).followed();
    return part.done().isCompletedExceptionally() ? OptionalLong.empty() : OptionalLong.of(part.done().join());
  }
}
