package io.sparklog.serve.topics;

import io.sparklog.log.TopicConfig;
import io.sparklog.serve.security.Rights;
import io.sparklog.spec.Option;
import io.sparklog.spec.Options;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * The settings of topics as clients of Kafka give them and see them. Settings that Kafka alone has are checked by Kafka's rules and kept,
 * and have no effect, but for a {@code cleanup.policy} without retention. Settings that Kafka does not know are read-only for clients:
 * tools that copy the settings of a topic leave them out, and a broker would refuse them.
 */
final class TopicSettings {
  private static final String CODEC_OF_PRODUCER = "producer";
  private static final String NO_CODEC = "none";
  private static final String NO_CODEC_OF_KAFKA = "uncompressed";

  /**
   * Defaults of this server that differ from the defaults of every topic. Keys go where the clients' partitioner puts them. The Kafka view
   * has segments that can be linked, since a copy of each small commit would double its bytes.
   */
  private static final Map<String, String> OF_SERVER = Map.of(TopicConfig.PARTITIONER, "murmur2", TopicConfig.KAFKA_VIEW, "merged");

  /** Settings of Kafka that clients look for, and that few topics have. */
  private static final List<String> LOOKED_FOR = List.of(TopicConfig.CLEANUP_POLICY, "min.insync.replicas");

  /**
   * A setting of a topic as clients see it.
   *
   * @param source a default if the value is the default, also if a client gave it
   */
  record Told(String name, String value, ConfigSource source, boolean readOnly) {}

  private TopicSettings() {}

  /** The configuration of a topic that a client creates. */
  static TopicConfig created(int partitions, Map<String, String> given) {
    TreeMap<String, String> asked = new TreeMap<>(OF_SERVER);
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
          ours.put(key, value.equals(NO_CODEC_OF_KAFKA) ? NO_CODEC : value);
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

  /** The change that takes a setting of a topic back to its default. */
  static Map<String, String> reset(String topic, String key) {
    return Map.of(key, defaultOf(topic, key).orElseThrow(() -> unknown(key)));
  }

  /** The change that takes the settings of a topic that a client does not name back to their defaults, where clients can name them. */
  static Map<String, String> resetAll(String topic, TopicConfig config) {
    TreeMap<String, String> changes = new TreeMap<>();
    config.entries().keySet().stream().filter(TopicSettings::isOfKafka).forEach(key -> changes.putAll(reset(topic, key)));
    return changes;
  }

  /** The settings of a topic as clients see them. */
  static List<Told> told(String topic, TopicConfig config) {
    TreeMap<String, String> all = new TreeMap<>();
    LOOKED_FOR.forEach(key -> all.putAll(reset(topic, key)));
    all.putAll(config.settings());
    all.remove(TopicConfig.PARTITIONS); // A number that clients see elsewhere.
    List<Told> told = new ArrayList<>();
    all.forEach((key, value) -> {
      boolean isDefault = defaultOf(topic, key).filter(value::equals).isPresent();
      ConfigSource own = isOfKafka(key) ? ConfigSource.TOPIC_CONFIG : ConfigSource.STATIC_BROKER_CONFIG;
      boolean isNoCodec = key.equals(TopicConfig.COMPRESSION) && value.equals(NO_CODEC);
      told.add(new Told(key, isNoCodec ? NO_CODEC_OF_KAFKA : value, isDefault ? ConfigSource.DEFAULT_CONFIG : own, !isOfKafka(key)));
    });
    return told;
  }

  /** The value of a setting in a topic that a client creates without the setting; empty for an unknown setting. */
  private static Optional<String> defaultOf(String topic, String key) {
    if (topic.equals(Rights.OFFSETS_TOPIC) && key.equals(TopicConfig.CLEANUP_POLICY)) {
      return Optional.of(ServedTopics.GROUPS_POLICY);
    }
    if (isOurs(key)) {
      return Optional.of(OF_SERVER.getOrDefault(key, Option.ofTopic(key).defaultValue()));
    }
    return Optional.ofNullable(LogConfig.configKeys().get(key)).map(known -> ConfigDef.convertToString(known.defaultValue, known.type));
  }

  /** Whether topics have the setting, by its name alone. */
  private static boolean isOurs(String key) {
    return !key.equals(TopicConfig.PARTITIONS) && TopicConfig.isDeclared(key);
  }

  private static boolean isOfKafka(String key) {
    return LogConfig.configKeys().containsKey(key);
  }

  private static void requireOfKafka(String key, String value) {
    if (!isOfKafka(key)) {
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
