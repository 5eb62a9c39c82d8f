package io.sparklog.upkeep;

import io.sparklog.log.State;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import java.util.Collections;
import java.util.SortedMap;

/** The retention that one call asks for in the place of a topic's configuration, and which offsets it may not delete in any case. */
public final class RetentionTerms {
  /** The topic's configuration alone. */
  public static final RetentionTerms OF_THE_TOPIC = new RetentionTerms(null, null, Collections.emptySortedMap());

  private final Long retentionMs;
  private final Long retentionBytes;
  private final SortedMap<Integer, Long> keep;

  private RetentionTerms(Long retentionMs, Long retentionBytes, SortedMap<Integer, Long> keep) {
    this.retentionMs = retentionMs;
    this.retentionBytes = retentionBytes;
    this.keep = keep;
  }

  /**
   * Terms for the topic of {@code state}.
   *
   * @param retentionMs null: as the topic is configured; so {@code retentionBytes}. Neither counts in a topic without retention
   * @param keep the lowest offset that is still needed, by partition: the log start offset does not rise above it
   * @throws PartlogException PARTITION_NOT_FOUND; OPTION_VALUE if an offset is negative, or above the end offset. An offset below the log
   *     start offset is right: the records that it needs are gone already
   */
  public static RetentionTerms of(State state, String root, Long retentionMs, Long retentionBytes, SortedMap<Integer, Long> keep) {
    keep.forEach((partition, offset) -> {
      state.requirePartition("keep", root, partition);
      if (offset < 0 || offset > state.end(partition)) {
        throw Option.invalidValue("keep", offset.toString(), "partition " + partition + " of topic " + state.topic()
            + " has offsets from 0 to " + state.end(partition) + "; what is needed of another topic of this name says nothing of this one");
      }
    });
    return new RetentionTerms(retentionMs, retentionBytes, keep);
  }

  long retentionMs(State state) {
    return retentionMs == null || !state.config().hasRetention() ? state.config().retentionMs() : retentionMs;
  }

  long retentionBytes(State state) {
    return retentionBytes == null || !state.config().hasRetention() ? state.config().retentionBytes() : retentionBytes;
  }

  /** The greatest log start offset that the partition may get. */
  public long limit(int partition) {
    return keep.getOrDefault(partition, Long.MAX_VALUE);
  }
}
