package io.sparklog.admin;

import io.sparklog.log.Change;
import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.Map;
import java.util.Optional;

/**
 * A change that an operator asks for. It is for one topic, not for another that has taken its name since, and to repeat it changes nothing
 * more. FORMAT.md section 7.
 */
abstract class AdministrativeChange implements Change.Administrative {
  final TopicLog log;
  private final State planned;
  private final String subject;
  private State was;
  private State is;
  private NextVersion next;

  /**
   * @param planned the state of the topic that the change is for
   * @param subject the thing of the topic that it changes, such as {@code the configuration}
   */
  AdministrativeChange(TopicLog log, State planned, String subject) {
    this.log = log;
    this.planned = planned;
    this.subject = subject;
    this.was = planned;
    this.is = planned;
  }

  /** Whether {@code newest}, of the same topic, already has this change. */
  abstract boolean isIn(State newest);

  /** Whether a topic has a configuration already, and as many partitions at least. */
  static boolean says(State newest, Map<String, String> config) {
    return config.entrySet()
        .stream()
        .allMatch(each -> each.getKey().equals(TopicConfig.PARTITIONS)
            ? newest.partitions() >= Integer.parseInt(each.getValue())
            : each.getValue().equals(newest.config().get(each.getKey())));
  }

  /** A change of the routing is for the routing that an operator has looked at. @throws PartlogException REROUTED */
  final void requireRouting(State newest) {
    if (!newest.router().admits(planned.router())) {
      throw PartlogException.of("REROUTED", "topic", log.topic(), "root", log.store().root(), "found", newest.router(), "expected",
          planned.router());
    }
  }

  /** The version that changes {@code newest}, of the same topic. */
  abstract NextVersion change(State newest) throws IOException;

  /** Whether the change counts as done if the topic no longer exists. */
  boolean endsWithTheTopic() {
    return false;
  }

  @Override
  public final Optional<String> appliedIn(State newest) {
    boolean exists = !newest.isDeleted() && newest.topicId().equals(planned.topicId());
    if (!exists && !endsWithTheTopic()) {
      throw recreated(log, planned.topicId(), newest.isDeleted() ? "none" : newest.topicId());
    }
    if (exists && !isIn(newest)) {
      return Optional.empty();
    }
    next = null;
    is = newest;
    return Optional.of(subject + " of topic " + log.topic());
  }

  @Override
  public final Optional<NextVersion> next(Optional<State> newest) throws IOException {
    was = newest.orElseThrow(() -> recreated(log, planned.topicId(), "none"));
    next = change(was);
    return Optional.of(next);
  }

  /** The topic as it was and as it is, when this is done; after a call of {@link #next} alone, as it would be. */
  final Changed changed() {
    return new Changed(was, next == null ? is : next.preview());
  }

  static PartlogException recreated(TopicLog log, String expected, String found) {
    return PartlogException.of("TOPIC_RECREATED", "topic", log.topic(), "root", log.store().root(), "found", found, "expected", expected);
  }

  /** @throws PartlogException OPTION_VALUE for a value that no topic has */
  static void requireAllowed(String key, String value) {
    Option option = Option.ofTopic(key);
    if (!option.isCanonical(value)) {
      throw Option.invalidValue(key, value, "it must be " + option.expected());
    }
  }
}
