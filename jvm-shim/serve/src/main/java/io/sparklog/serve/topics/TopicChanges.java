package io.sparklog.serve.topics;

import io.sparklog.admin.Administration;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.Names;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import io.sparklog.upkeep.TopicWork;
import java.time.Clock;
import java.util.Map;
import java.util.random.RandomGenerator;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.protocol.Errors;

/**
 * The changes of topics that clients ask for.
 *
 * @param partitions of a topic for which the client leaves the number to the server
 * @param random is safe for many threads
 */
record TopicChanges(ServedTopics topics, int partitions, Clock clock, RandomGenerator random) {
  /** Changes of a topic, which need not exist. */
  Administration of(String topic) {
    return new Administration(new TopicWork(topics.root().topic(topic), clock, random));
  }

  /** Creates a topic with a configuration. @return its id. @throws PartlogException TOPIC_EXISTS, and the errors of a commit */
  String create(String topic, TopicConfig config) {
    if (!topics.root().isPrepared()) {
      Warnings.warn(TopicChanges.class, "the root {} was deleted while it was served. It begins again with topic {}, at offset 0",
          topics.root().location(), topic);
      topics.root().prepare();
    }
    String id = Names.identity(random);
    of(topic).create(config, id);
    topics.root().listAgain();
    topics.newest(topic);
    return id;
  }

  /** Creates a topic that a client uses first. Another client may create it at the same time. */
  State createForUse(String topic) {
    requireDistinct(topic);
    try {
      create(topic, TopicSettings.created(partitions, Map.of()));
    } catch (PartlogException e) {
      if (!e.id().equals("TOPIC_EXISTS")) {
        throw e;
      }
    }
    return topics.newest(topic).orElseThrow(Errors.UNKNOWN_TOPIC_OR_PARTITION::exception);
  }

  /** A topic whose name Kafka takes for the same in metrics is not created, as at a broker. */
  void requireDistinct(String topic) {
    if (Topic.hasCollisionChars(topic) && topics.root().recentNames(clock).stream().anyMatch(other -> isLike(topic, other))) {
      throw Errors.INVALID_TOPIC_EXCEPTION.exception("Topic " + topic + " differs from a topic that exists by dots and underscores alone,"
          + " and metrics of both would have one name. Choose another name.");
    }
  }

  private boolean isLike(String topic, String other) {
    return !topic.equals(other) && Topic.hasCollision(topic, other) && topics.newest(other).isPresent();
  }

  /** The newest state of a topic that the client may change. */
  State changeable(ClientRequest asked, String topic) {
    requireRight(asked, topic);
    return topics.newest(topic).orElseThrow(Errors.UNKNOWN_TOPIC_OR_PARTITION::exception);
  }

  static void requireRight(ClientRequest asked, String topic) {
    if (!asked.rights().mayWrite(topic)) {
      throw Errors.TOPIC_AUTHORIZATION_FAILED.exception();
    }
  }
}
