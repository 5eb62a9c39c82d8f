package io.sparklog.catalog;

import io.sparklog.log.Names;
import io.sparklog.log.TopicLog;
import io.sparklog.upkeep.Publisher;
import java.security.SecureRandom;

/** {@code CALL partlog.publish(root => '…' [, topic => '…'])}: repairs the Kafka view of topics. FORMAT.md section 8. */
final class PublishProcedure extends RootProcedure {
  private final SecureRandom random = new SecureRandom();

  PublishProcedure() {
    super("publish", "repairs the Kafka view of a topic, or of all topics of the root; returns the number of segments added or repaired",
        "segments");
  }

  @Override
  int call(TopicLog topic) {
    return Publisher.publish(topic, Names.identity(random));
  }
}
