package io.sparklog.serve.topics;

import io.sparklog.log.State;
import io.sparklog.spec.PartlogException;
import java.util.Map;
import org.apache.kafka.common.protocol.Errors;

/**
 * Creates topics when clients use them first: {@code auto.create.topics.enable}.
 *
 * @param partitions of a new topic
 */
public record FirstUse(Operators operators, int partitions) {
  /** The topic of this name, which another client may have created at the same time. */
  State create(String topic) {
    operators.requireDistinct(topic);
    try {
      operators.create(topic, TopicSettings.created(partitions, Map.of()));
    } catch (PartlogException e) {
      if (!e.id().equals("TOPIC_EXISTS")) {
        throw e;
      }
    }
    return operators.topics().newest(topic).orElseThrow(Errors.UNKNOWN_TOPIC_OR_PARTITION::exception);
  }
}
