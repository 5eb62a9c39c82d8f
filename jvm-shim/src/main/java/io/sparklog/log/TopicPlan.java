package io.sparklog.log;

import java.io.Serializable;
import java.util.Map;
import java.util.Optional;

/**
 * What a write was told of a topic when it was planned; shipped to its tasks.
 *
 * @param topicId null if the topic did not exist
 * @param plannedVersion the version that would come next
 * @param loads committed records by partition
 * @param batchRecords how many records a live batch holds on average, rounded up; 1 where there is none
 */
public record TopicPlan(String topic, String topicId, long plannedVersion, TopicConfig config, long[] loads,
    long batchRecords) implements Serializable {

  /** The plan for a write to a topic in state {@code state}; if there is none, the write creates the topic with {@code config}. */
  public static TopicPlan of(String topic, Optional<State> state, Map<String, String> config) {
    if (state.isEmpty()) {
      TopicConfig created = TopicConfig.of(config);
      return new TopicPlan(topic, null, 0, created, new long[created.partitions()], 1);
    }
    State there = state.get();
    long[] loads = new long[there.partitions()];
    long records = 0;
    long batches = 0;
    for (int p = 0; p < loads.length; p++) {
      loads[p] = there.end(p) - there.start(p);
      for (Segment segment : there.segments(p)) {
        records += segment.records();
        batches += segment.batches();
      }
    }
    long batchRecords = batches == 0 ? 1 : Math.max(1, (records + batches - 1) / batches);
    return new TopicPlan(topic, there.topicId(), there.version() + 1, there.config(), loads, batchRecords);
  }

  /** The folder for the data files of the write {@code txn}, relative to the topic's folder. */
  public String folder(String txn) {
    return Names.dataFolder(plannedVersion, txn);
  }
}
