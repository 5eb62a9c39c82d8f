package io.sparklog.door.api;

import io.sparklog.admin.Administration;
import io.sparklog.door.cluster.ServedTopics;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.upkeep.TopicWork;
import java.time.Clock;
import java.util.random.RandomGenerator;
import org.apache.kafka.common.protocol.Errors;

/**
 * The changes of topics that clients ask for.
 *
 * @param random is safe for many threads
 */
public record Operators(ServedTopics topics, Clock clock, RandomGenerator random) {
  /** Changes of a topic, which need not exist. */
  Administration of(String topic) {
    return new Administration(new TopicWork(topics.root().topic(topic), clock, random));
  }

  /** Creates a topic with a configuration. @return its id. @throws PartlogException TOPIC_EXISTS, and the errors of a commit */
  String create(String topic, TopicConfig config) {
    String id = Names.identity(random);
    of(topic).create(config, id);
    topics.root().listAgain();
    topics.newest(topic);
    return id;
  }

  /** The newest state of a topic that the client may change. */
  State changeable(Asked asked, String topic) {
    requireRight(asked, topic);
    return topics.newest(topic).orElseThrow(Errors.UNKNOWN_TOPIC_OR_PARTITION::exception);
  }

  static void requireRight(Asked asked, String topic) {
    if (!asked.rights().mayWrite(topic)) {
      throw Errors.TOPIC_AUTHORIZATION_FAILED.exception();
    }
  }
}
