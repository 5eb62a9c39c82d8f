package io.sparklog.query;

import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.sparklog.routing.Router;
import io.sparklog.spec.JsonFault;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.TimeText;
import java.io.IOException;
import java.util.Map;
import java.util.OptionalLong;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;

/** The JSON in which options name topics and partitions, like in Spark's Kafka source. */
public final class PartitionJson {
  private static final JsonMapper MAPPER = JsonMapper.builder()
      .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
      .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
      .build();

  private PartitionJson() {}

  /** {@code {"orders":[0,1]}}: partitions by topic. @throws PartlogException OPTION_VALUE */
  static TreeMap<String, TreeSet<Integer>> partitions(String option, String json) {
    TreeMap<String, TreeSet<Integer>> partitions = new TreeMap<>();
    for (Map.Entry<String, JsonNode> topic : object(option, json, parse(option, json))) {
      if (!topic.getValue().isArray() || topic.getValue().isEmpty()) {
        throw Option.invalidValue(option, json, "topic " + topic.getKey() + " needs an array of its partitions, such as [0,1]");
      }
      TreeSet<Integer> numbers = new TreeSet<>();
      for (JsonNode number : topic.getValue()) {
        if (!number.isInt() || number.intValue() < 0) {
          throw Option.invalidValue(option, json, number + " is not a partition number, which must be 0 or more");
        }
        numbers.add(number.intValue());
      }
      partitions.put(topic.getKey(), numbers);
    }
    return partitions;
  }

  /** {@code {"orders":{"0":23,"1":-2}}}: a number for each partition, by topic. @throws PartlogException OPTION_VALUE */
  public static TreeMap<String, TreeMap<Integer, Long>> numbers(String option, String json) {
    return byTopic(option, json, false);
  }

  /** As {@link #numbers(String, String)}, where each number may also be a text that is a time; in ms since 1970-01-01 UTC. */
  static TreeMap<String, TreeMap<Integer, Long>> times(String option, String json) {
    return byTopic(option, json, true);
  }

  private static TreeMap<String, TreeMap<Integer, Long>> byTopic(String option, String json, boolean times) {
    TreeMap<String, TreeMap<Integer, Long>> topics = new TreeMap<>();
    for (Map.Entry<String, JsonNode> topic : object(option, json, parse(option, json))) {
      topics.put(topic.getKey(), numbers(option, json, object(option, json, topic.getValue()), " of topic " + topic.getKey(), times));
    }
    return topics;
  }

  /** A number for each partition of one topic, as in the example. @throws PartlogException OPTION_VALUE */
  public static SortedMap<Integer, Long> ofTopic(String option, String json, String example) {
    JsonNode partitions = parse(option, json);
    if (!partitions.isObject() || partitions.isEmpty()) {
      throw Option.invalidValue(option, json, "it must be an object by partition, such as " + example);
    }
    return numbers(option, json, object(option, json, partitions), "", false);
  }

  /**
   * As {@link #numbers(String, String)}, or as {@link #ofTopic} where a topic is known and the values are numbers.
   *
   * @param topic null if it is not known
   * @throws PartlogException OPTION_VALUE
   */
  public static SortedMap<String, SortedMap<Integer, Long>> ofTopics(String option, String json, String topic) {
    JsonNode given = parse(option, json);
    if (topic != null && given.isObject() && !given.isEmpty() && given.elements().next().isNumber()) {
      return new TreeMap<>(Map.of(topic, numbers(option, json, object(option, json, given), "", false)));
    }
    return new TreeMap<>(numbers(option, json));
  }

  private static TreeMap<Integer, Long> numbers(String option, String json, Iterable<Map.Entry<String, JsonNode>> partitions, String where,
      boolean times) {
    TreeMap<Integer, Long> numbers = new TreeMap<>();
    for (Map.Entry<String, JsonNode> partition : partitions) {
      if (!partition.getKey().matches("0|[1-9][0-9]{0,8}")) {
        throw Option.invalidValue(option, json,
            "\"" + partition.getKey() + "\" is not a partition number, which must be 0 or more, without leading zeros");
      }
      JsonNode given = partition.getValue();
      OptionalLong number = given.isIntegralNumber() && given.canConvertToLong()
          ? times ? TimeText.millis(given.longValue()) : OptionalLong.of(given.longValue())
          : times && given.isTextual() ? TimeText.millis(given.textValue()) : OptionalLong.empty();
      if (number.isEmpty()) {
        throw Option.invalidValue(option, json, given + " for partition " + partition.getKey() + where + " is "
            + (times ? "no time, which must be " + TimeText.EXPECTED : "not an integer, as it must be"));
      }
      numbers.put(Integer.valueOf(partition.getKey()), number.getAsLong());
    }
    return numbers;
  }

  private static JsonNode parse(String option, String json) {
    try {
      return MAPPER.readTree(json);
    } catch (IOException e) {
      throw Option.invalidValue(option, json, "it is not valid JSON: " + JsonFault.why(e) + "; give JSON by topic or partition");
    }
  }

  private static Iterable<Map.Entry<String, JsonNode>> object(String option, String json, JsonNode node) {
    if (!node.isObject() || node.isEmpty()) {
      throw Option.invalidValue(option, json,
          "it must be an object by topic, such as {\"orders\":{\"0\":23}} or, to assign, {\"orders\":[0,1]}");
    }
    if (node.size() > Router.PARTITIONS_MAX) {
      throw Option.invalidValue(option, "…", "it must not name more than " + Router.PARTITIONS_MAX + " topics or partitions");
    }
    return node.properties();
  }
}
