package io.sparklog.admin;

import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Changes the configuration of a topic. */
final class AlterTopic extends AdministrativeChange {
  /** Settings that cannot be changed by their values alone, and what to do instead. */
  private static final Map<String, String> FIXED = Map.of(TopicConfig.PARTITIONS,
      "it is not changed in this way; take CALL partlog.add_partitions", TopicConfig.PARTITIONER, fixed("where the records of a key are"),
      TopicConfig.PLACEMENT, fixed("when a key gets its partition"), TopicConfig.PLACEMENT_SLOTS, fixed("which keys share a slot"));

  private final Map<String, String> changes;

  private static String fixed(String meaning) {
    return "it is fixed when a topic is created, as it says " + meaning + "; create another topic with it, and write the records there";
  }

  private AlterTopic(TopicLog log, State planned, Map<String, String> changes) {
    super(log, planned, "the configuration");
    this.changes = changes;
  }

  /**
   * A key that topics of partlog do not know is kept.
   *
   * @throws PartlogException OPTION_VALUE for a setting that is fixed, or a value that is not allowed
   */
  static AdministrativeChange configuration(TopicLog log, State planned, Map<String, String> changes) {
    changes.forEach((key, value) -> {
      if (TopicConfig.isDeclared(key)) {
        requireAllowed(key, value);
      }
      if (FIXED.containsKey(key)) {
        throw Option.invalidValue(key, value, FIXED.get(key));
      }
    });
    for (String key : List.of(TopicConfig.PENDING_WEIGHTS, TopicConfig.PLACEMENT_SHARES)) {
      String value = changes.getOrDefault(key, TopicConfig.NOTHING);
      if (!value.equals(TopicConfig.NOTHING) && planned.wanted(key, value, 0).isEmpty()) {
        throw Option.invalidValue(key, value, "it would have no effect on topic " + log.topic() + ", which has " + planned.router()
            + ": begin with routing epoch " + planned.routing().epoch() + ", and give each partition a number, 0 if it is closed");
      }
    }
    String most = changes.get(TopicConfig.MAX_MESSAGE_BYTES);
    TopicConfig config = planned.config();
    if (most != null && TopicConfig.decompressedBytesMax(Integer.parseInt(most)) < config.decompressedBytesMax()) {
      throw Option.invalidValue(TopicConfig.MAX_MESSAGE_BYTES, most, "it must not fall below " + config.maxMessageBytes()
          + ", because existing batches may have that many bytes, and readers would refuse them");
    }
    return new AlterTopic(log, planned, Map.copyOf(changes));
  }

  /** Configuration and more partitions, in one version; what {@code planned} says already is left out. */
  static AdministrativeChange table(TopicLog log, State planned, Map<String, String> asked) {
    Map<String, String> changes = new TreeMap<>(asked);
    changes.entrySet().removeIf(change -> change.getValue().equals(planned.config().get(change.getKey())));
    Map<String, String> others = new TreeMap<>(changes);
    boolean grows = others.remove(TopicConfig.PARTITIONS) != null;
    AdministrativeChange alone = configuration(log, planned, others);
    return grows ? RerouteTopic.grown(log, planned, Map.copyOf(changes)) : alone;
  }

  @Override
  boolean isIn(State newest) {
    return says(newest, changes);
  }

  @Override
  NextVersion change(State newest) {
    return new NextVersion(newest, "alter").configure(changes);
  }
}
