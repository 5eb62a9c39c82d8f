package io.sparklog.admin;

import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;

/** Deletes a topic. Its files are deleted after that: {@link DeletedTopic}. */
final class DeleteTopic extends AdministrativeChange {
  private final String topic;

  DeleteTopic(TopicLog log, State planned) {
    super(log, planned);
    topic = log.topic();
  }

  @Override
  boolean isIn(State newest) {
    return false;
  }

  @Override
  boolean endsWithTheTopic() {
    return true;
  }

  @Override
  NextVersion change(State newest) {
    return NextVersion.deleting(newest);
  }

  @Override
  String what() {
    return "the deletion of topic " + topic;
  }
}
