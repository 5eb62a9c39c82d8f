package io.sparklog.write;

import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.routing.Router;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import java.io.Serializable;
import java.util.Map;
import java.util.Optional;

/**
 * The topic as a write knows it from its planning; shipped to its tasks.
 *
 * @param topicId null if the topic did not exist
 * @param plannedVersion the version after the newest version, also if that deleted the topic; 0 without a version
 * @param router where it puts records by their keys
 * @param loads committed records by partition since {@link State#levelledSince}; or bytes of segments
 * @param batchLoad how many records or bytes a live batch holds on average, rounded up; 1 without batches
 * @param byBytes whether rows without a key level the bytes of partitions, and not their records
 */
public record TopicPlan(String topic, String topicId, long plannedVersion, TopicConfig config, Router router, long[] loads, long batchLoad,
    boolean byBytes) implements Serializable {

  /**
   * The plan of a write to a topic whose log is at {@code latest}. If {@code latest} is empty or of a deleted topic, the write creates the
   * topic with {@code config}. Shares of new slots have effect, whenever they end.
   */
  public static TopicPlan of(String topic, Optional<State> latest, Map<String, String> config) {
    return of(topic, latest, config, false, 0);
  }

  /**
   * The same.
   *
   * @param byBytes whether rows without a key level the bytes of partitions
   * @param nowMs when it is planned, in ms since 1970: whether shares of new slots still have effect
   */
  public static TopicPlan of(String topic, Optional<State> latest, Map<String, String> config, boolean byBytes, long nowMs) {
    latest.ifPresent(State::forWriters);
    if (latest.isEmpty() || latest.get().isDeleted()) {
      TopicConfig created = TopicConfig.of(config);
      long planned = latest.map(deleted -> deleted.version() + 1).orElse(0L);
      return new TopicPlan(topic, null, planned, created, created.beginning(), new long[created.partitions()], 1, byBytes);
    }
    State existing = latest.get();
    long[] loads = new long[existing.partitions()];
    long[] since = existing.levelledSince();
    long all = 0;
    long batches = 0;
    for (int p = 0; p < loads.length; p++) {
      for (Segment segment : existing.segments(p)) {
        loads[p] += byBytes && segment.end() > since[p] ? segment.bytes() : 0;
        all += byBytes ? segment.bytes() : segment.records();
        batches += segment.batches();
      }
      loads[p] = byBytes ? loads[p] : existing.end(p) - since[p];
    }
    long batchLoad = batches == 0 ? 1 : Math.max(1, (all + batches - 1) / batches);
    return new TopicPlan(topic, existing.topicId(), existing.version() + 1, existing.config(), router(existing, nowMs), loads, batchLoad,
        byBytes);
  }

  private static Router router(State state, long nowMs) {
    return state.shares(nowMs).map(state.router()::sharing).orElse(state.router());
  }

  /** The folder for the data files of the write {@code txn}, relative to the topic's folder. */
  public String folder(String txn) {
    return Names.dataFolder(plannedVersion, txn);
  }

  /**
   * Whether a write of this plan may still commit on {@code latest}.
   *
   * @throws PartlogException TOPIC_RECREATED or WRITE_EXPIRED if not
   */
  void requireWanted(State latest, String root) {
    if (topicId != null && (latest.isDeleted() || !topicId.equals(latest.topicId()))) {
      throw recreated(latest.isDeleted() ? "none" : latest.topicId(), root);
    }
    if (plannedVersion < latest.horizon()) {
      throw PartlogException.of("WRITE_EXPIRED", "topic", topic, "root", root, "planned", plannedVersion, "horizon", latest.horizon());
    }
  }

  PartlogException recreated(String found, String root) {
    return PartlogException.of("TOPIC_RECREATED", "topic", topic, "root", root, "found", found, "expected", topicId);
  }
}
