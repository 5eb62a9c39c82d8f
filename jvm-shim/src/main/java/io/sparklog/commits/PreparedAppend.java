package io.sparklog.commits;

import io.sparklog.routing.Router;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * Batches of one partition that may be added.
 *
 * @param topicId of the topic that they are for
 * @param router by which it is known where their keys go; null if that is not known
 * @param fence null if the batches may be added behind any others
 */
public record PreparedAppend(String topicId, Router router, List<PreparedBatch> batches, Fence fence) {
  /**
   * The end offset that the partition must have. A process that knows all records below the offset adds batches behind them, or none: so
   * processes need no leader among them.
   *
   * @param replaces whether the batches take the place of all records of the partition: the log start offset rises to {@code end}
   */
  public record Fence(long end, boolean replaces) {}

  /**
   * The only batch in {@code records}, which is copied.
   *
   * @param intake of the topic
   * @throws AppendRefused if the batch may not be added
   */
  public static PreparedAppend of(Intake intake, int partition, ByteBuffer records) throws AppendRefused {
    return new PreparedAppend(intake.state().topicId(), intake.state().router(), List.of(intake.accept(partition, records)), null);
  }

  /** Batches of this process, which are known to be right. */
  public static PreparedAppend of(String topicId, List<PreparedBatch> batches, Fence fence) {
    return new PreparedAppend(topicId, null, batches, fence);
  }

  long bytes() {
    return batches.stream().mapToLong(each -> each.bytes().length).sum();
  }
}
