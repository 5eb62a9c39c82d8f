package io.sparklog.admin;

import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;

/** Deletes a topic. Its files are deleted after that: {@link DeletedTopic}. */
final class DeleteTopic extends AdministrativeChange {
  DeleteTopic(TopicLog log, State planned) {
    super(log, planned, "the deletion");
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
}
