package io.sparklog.serve.records.fetch;

import io.sparklog.log.State;
import java.util.List;

/**
 * The answer for one partition.
 *
 * @param state of the topic, by which its offsets are told; null if the topic does not exist
 * @param parts the batches, which the caller closes
 * @param failure the reason why there are no batches; null without a fault
 */
public record FetchedPartition(State state, List<FetchedBytes> parts, RuntimeException failure) {
  /** The bytes of all parts. */
  public int bytes() {
    return parts.stream().mapToInt(FetchedBytes::bytes).sum();
  }
}
