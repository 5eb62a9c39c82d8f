package io.sparklog.admin;

import io.sparklog.log.ForeignSegments;
import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;

/** Changes the configuration of a topic, and so the number of its partitions. */
final class AlterTopic extends AdministrativeChange {
  /** Settings that cannot be changed by their values alone, and what to do instead. */
  private static final Map<String, String> FIXED = Map.of(TopicConfig.PARTITIONS,
      "it is not changed in this way; take CALL partlog.add_partitions", TopicConfig.PARTITIONER,
      "it is fixed when a topic is created, as it says where the records of a key are; create another topic with it, and write the"
          + " records there");

  private final TopicLog log;
  private final Map<String, String> changes;

  private AlterTopic(TopicLog log, State planned, Map<String, String> changes) {
    super(log, planned);
    this.log = log;
    this.changes = changes;
  }

  /** @throws PartlogException OPTION_VALUE if there are as many partitions already, or there cannot be as many */
  static AlterTopic partitions(TopicLog log, State planned, int partitions) {
    String value = Integer.toString(partitions);
    requireAllowed(TopicConfig.PARTITIONS, value);
    if (partitions <= planned.partitions()) {
      throw Option.invalidValue(TopicConfig.PARTITIONS, value,
          "topic " + log.topic() + " has " + planned.partitions() + " partitions, and partitions can only be added: it must be more");
    }
    return new AlterTopic(log, planned, Map.of(TopicConfig.PARTITIONS, value));
  }

  /** @throws PartlogException OPTION_VALUE for what is fixed, or is not allowed */
  static AlterTopic configuration(TopicLog log, State planned, Map<String, String> changes) {
    changes.forEach((key, value) -> {
      requireAllowed(key, value);
      if (FIXED.containsKey(key)) {
        throw Option.invalidValue(key, value, FIXED.get(key));
      }
    });
    String most = changes.get(TopicConfig.MAX_MESSAGE_BYTES);
    TopicConfig config = planned.config();
    if (most != null && TopicConfig.decompressedBytesMax(Integer.parseInt(most)) < config.decompressedBytesMax()) {
      throw Option.invalidValue(TopicConfig.MAX_MESSAGE_BYTES, most, "it must not fall below " + config.maxMessageBytes()
          + ", because existing batches may have that many bytes, and readers would refuse them");
    }
    return new AlterTopic(log, planned, Map.copyOf(changes));
  }

  /** As both of the others, in one version; what {@code planned} says already is left out. */
  static AlterTopic table(TopicLog log, State planned, Map<String, String> asked) {
    Map<String, String> changes = new TreeMap<>(asked);
    changes.entrySet().removeIf(change -> change.getValue().equals(planned.config().get(change.getKey())));
    Map<String, String> others = new TreeMap<>(changes);
    String partitions = others.remove(TopicConfig.PARTITIONS);
    configuration(log, planned, others);
    if (partitions != null) {
      partitions(log, planned, Integer.parseInt(partitions));
    }
    return new AlterTopic(log, planned, Map.copyOf(changes));
  }

  private static void requireAllowed(String key, String value) {
    Option option = Option.ofTopic(key);
    if (!option.isCanonical(value)) {
      throw Option.invalidValue(key, value, "it must be " + option.expected());
    }
  }

  @Override
  boolean isIn(State newest) {
    return changes.entrySet()
        .stream()
        .allMatch(change -> change.getKey().equals(TopicConfig.PARTITIONS)
            ? newest.partitions() >= Integer.parseInt(change.getValue())
            : change.getValue().equals(newest.config().get(change.getKey())));
  }

  @Override
  NextVersion change(State newest) throws IOException {
    String partitions = changes.get(TopicConfig.PARTITIONS);
    if (partitions != null) {
      ForeignSegments.requireNone(log, newest.partitions(), Integer.parseInt(partitions));
    }
    return new NextVersion(newest, "alter").configure(changes);
  }

  @Override
  String what() {
    return "the configuration of topic " + log.topic();
  }
}
