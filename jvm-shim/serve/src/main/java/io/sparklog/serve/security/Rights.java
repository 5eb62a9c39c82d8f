package io.sparklog.serve.security;

import java.util.List;

/**
 * The rights of the clients of a listener.
 *
 * @param readOnly clients change the state of consumer groups alone
 * @param prefixes a client sees the topics whose names begin with a prefix, and without prefixes all topics
 */
public record Rights(boolean readOnly, List<String> prefixes) {
  /** Kafka's topic of consumer groups, which the coordinator alone writes. */
  public static final String OFFSETS_TOPIC = "__consumer_offsets";

  public static final Rights ALL = new Rights(false, List.of());

  /** Whether a client may know the topic, and read its records. */
  public boolean mayRead(String topic) {
    return prefixes.isEmpty() || prefixes.stream().anyMatch(topic::startsWith);
  }

  /** Whether a client may add records, and create, change and delete the topic. */
  public boolean mayWrite(String topic) {
    return !readOnly && mayRead(topic) && !topic.equals(OFFSETS_TOPIC);
  }
}
