package io.sparklog.door.api;

import io.sparklog.log.TopicConfig;
import io.sparklog.spec.Options;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * The settings of topics as clients of Kafka give them. Settings that Kafka alone has are checked by Kafka's rules and kept, and have no
 * effect: nothing is compacted for {@code cleanup.policy}.
 */
final class TopicSettings {
  private static final String CODEC_OF_PRODUCER = "producer";
  private static final String NO_CODEC_OF_KAFKA = "uncompressed";

  private TopicSettings() {}

  /** The configuration of a topic that a client creates: the keys go where the clients' partitioner puts them, and it has no Kafka view. */
  static TopicConfig created(int partitions, Map<String, String> given) {
    TreeMap<String, String> asked = new TreeMap<>(Map.of(TopicConfig.PARTITIONER, "murmur2", TopicConfig.KAFKA_VIEW, "none"));
    TreeMap<String, String> kept = new TreeMap<>();
    changes(given).forEach((key, value) -> (isOurs(key) ? asked : kept).put(key, value));
    asked.put(TopicConfig.PARTITIONS, Integer.toString(partitions));
    TreeMap<String, String> all = new TreeMap<>(Options.of(asked, Options.Side.WRITE).topicConfig());
    all.putAll(kept);
    return TopicConfig.of(all);
  }

  /** The given settings in the form that a version file has. */
  static Map<String, String> changes(Map<String, String> given) {
    TreeMap<String, String> changes = new TreeMap<>();
    TreeMap<String, String> ours = new TreeMap<>();
    given.forEach((key, value) -> {
      if (value == null) {
        throw Errors.INVALID_CONFIG.exception("The setting " + key + " has no value.");
      }
      if (key.equals(TopicConfig.COMPRESSION)) {
        if (!value.equals(CODEC_OF_PRODUCER)) { // As all batches of clients are.
          ours.put(key, value.equals(NO_CODEC_OF_KAFKA) ? "none" : value);
        }
      } else if (isOurs(key)) {
        ours.put(key, value);
      } else {
        requireOfKafka(key, value);
        changes.put(key, value);
      }
    });
    changes.putAll(Options.ofTopic(ours));
    return changes;
  }

  /** The change that takes a setting back to its default. */
  static Map<String, String> reset(String key) {
    if (isOurs(key)) {
      return Options.defaultOfTopic(key);
    }
    ConfigDef.ConfigKey known = LogConfig.configKeys().get(key);
    if (known == null) {
      throw unknown(key);
    }
    return Map.of(key, ConfigDef.convertToString(known.defaultValue, known.type));
  }

  /** Whether topics have the setting, by its name alone. */
  static boolean isOurs(String key) {
    return !key.equals(TopicConfig.PARTITIONS) && TopicConfig.isDeclared(key);
  }

  /** Whether a topic that exists can get another value of the setting, by its value alone. */
  static boolean mayChange(String key) {
    return !key.equals(TopicConfig.PARTITIONS) && !key.equals(TopicConfig.PARTITIONER) && !key.startsWith(TopicConfig.PLACEMENT)
        && !key.equals(TopicConfig.PENDING_WEIGHTS) && (isOurs(key) || LogConfig.configKeys().containsKey(key));
  }

  private static void requireOfKafka(String key, String value) {
    if (!LogConfig.configKeys().containsKey(key)) {
      throw unknown(key);
    }
    try {
      LogConfig.validate(Map.of(key, value));
    } catch (ConfigException | InvalidConfigurationException e) {
      throw Errors.INVALID_CONFIG.exception(e.getMessage());
    }
  }

  private static RuntimeException unknown(String key) {
    return Errors.INVALID_CONFIG.exception("Topics have no setting " + key + ".");
  }
}
