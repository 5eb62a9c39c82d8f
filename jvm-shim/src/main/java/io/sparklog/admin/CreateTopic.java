package io.sparklog.admin;

import io.sparklog.log.Change;
import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import java.io.IOException;
import java.util.Optional;

/** Begins a topic without records. Its identity is chosen before, so that the topic which it made is known again. */
final class CreateTopic implements Change.Administrative {
  private final TopicLog log;
  private final TopicConfig config;
  private final String topicId;

  CreateTopic(TopicLog log, TopicConfig config, String topicId) {
    this.log = log;
    this.config = config;
    this.topicId = topicId;
  }

  @Override
  public Optional<String> appliedIn(State newest) {
    return newest.topicId().equals(topicId) ? Optional.of("topic " + log.topic()) : Optional.empty();
  }

  /** @throws io.sparklog.spec.PartlogException TOPIC_EXISTS, FOREIGN_SEGMENTS */
  @Override
  public Optional<NextVersion> next(Optional<State> newest) throws IOException {
    if (newest.isPresent() && !newest.get().isDeleted()) {
      throw log.exists();
    }
    return Optional.of(NextVersion.beginning(log, newest, topicId, config, "create"));
  }
}
