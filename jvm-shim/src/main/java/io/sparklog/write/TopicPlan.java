package io.sparklog.write;

import io.sparklog.log.Names;
import io.sparklog.log.Segment;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import java.io.Serializable;
import java.util.Map;
import java.util.Optional;

/**
 * What a write knows of a topic from its planning; shipped to its tasks.
 *
 * @param topicId null if the topic did not exist
 * @param plannedVersion the version after the newest one; 0 if the topic did not exist
 * @param loads committed records by partition
 * @param batchRecords how many records a live batch holds on average, rounded up; 1 if there is none
 */
public record TopicPlan(String topic, String topicId, long plannedVersion, TopicConfig config, long[] loads,
    long batchRecords) implements Serializable {

  /** The plan of a write to a topic in {@code state}; if that is empty, the write creates the topic with {@code config}. */
  public static TopicPlan of(String topic, Optional<State> state, Map<String, String> config) {
    if (state.isEmpty()) {
      TopicConfig created = TopicConfig.of(config);
      return new TopicPlan(topic, null, 0, created, new long[created.partitions()], 1);
    }
    State existing = state.get();
    long[] loads = new long[existing.partitions()];
    long records = 0;
    long batches = 0;
    for (int p = 0; p < loads.length; p++) {
      loads[p] = existing.end(p) - existing.start(p);
      for (Segment segment : existing.segments(p)) {
        records += segment.records();
        batches += segment.batches();
      }
    }
    long batchRecords = batches == 0 ? 1 : Math.max(1, (records + batches - 1) / batches);
    return new TopicPlan(topic, existing.topicId(), existing.version() + 1, existing.config(), loads, batchRecords);
  }

  /** The folder for the data files of the write {@code txn}, relative to the topic's folder. */
  public String folder(String txn) {
    return Names.dataFolder(plannedVersion, txn);
  }
}
