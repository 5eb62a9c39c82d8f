package io.sparklog.admin;

import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.upkeep.RetentionTerms;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.upkeep.Uninterrupted;
import java.io.IOException;
import java.util.Collection;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.function.Function;

/** The changes that an operator may make to a topic, each as one version. FORMAT.md sections 5 and 7. */
public final class Administration {
  private final TopicWork work;
  private final TopicLog log;

  public Administration(TopicWork work) {
    this.work = work;
    this.log = work.log();
  }

  /**
   * Deletes the records below an offset of each partition that is named.
   *
   * @param offsets by partition; −1 is the end offset of now. One that is not above the log start offset changes nothing
   * @param keep by partition, an offset that the log start offset does not rise above, also if {@code offsets} is higher
   * @param dryRun whether to return only the outcome
   * @throws PartlogException TOPIC_NOT_FOUND, PARTITION_NOT_FOUND, OFFSETS_OUT_OF_RANGE, OPTION_VALUE for {@code keep}, TOPIC_RECREATED;
   *     the errors of a commit
   */
  public Changed deleteRecords(SortedMap<Integer, Long> offsets, SortedMap<Integer, Long> keep, boolean dryRun) {
    return deleteRecords(existing(), offsets, keep, dryRun);
  }

  /**
   * As {@link #deleteRecords(SortedMap, SortedMap, boolean)}, if the topic still has this id.
   *
   * @param topicId of the topic that the offsets were chosen for
   * @throws PartlogException TOPIC_RECREATED if another one has its name; as above
   */
  public Changed deleteRecordsOf(String topicId, SortedMap<Integer, Long> offsets) {
    return deleteRecords(existing(topicId), offsets, Collections.emptySortedMap(), false);
  }

  private Changed deleteRecords(State planned, SortedMap<Integer, Long> offsets, SortedMap<Integer, Long> keep, boolean dryRun) {
    RetentionTerms terms = RetentionTerms.of(planned, log.store().root(), null, null, keep);
    return commit(new DeleteRecords(log, planned, offsets, terms), terms, dryRun);
  }

  /**
   * Adds partitions, and moves as few slots as can be to them. Writes that were planned before are refused, and streaming queries plan
   * again.
   *
   * @param partitions how many there shall be
   * @param when now, or by the driver of the next write, so that a lone writer is not refused. {@code never} takes a waiting re-route back,
   *     and the other arguments have no effect
   * @param dryRun whether to return only the outcome; both also in the methods below
   * @throws PartlogException TOPIC_NOT_FOUND, OPTION_VALUE if the topic has more, FOREIGN_SEGMENTS, TOPIC_RECREATED, REROUTED,
   *     REROUTES_TOO_MANY; the errors of a commit
   */
  public Changed addPartitions(int partitions, RerouteTime when, boolean dryRun) {
    Map<String, String> config = Map.of(TopicConfig.PARTITIONS, Integer.toString(partitions));
    return reroute(when, dryRun, topic -> RerouteTopic.grown(log, topic, config).asking(when == RerouteTime.NEXT_WRITE));
  }

  /**
   * Gives partitions no new records: their slots go to the open ones.
   *
   * @throws PartlogException TOPIC_NOT_FOUND, PARTITION_NOT_FOUND, OPTION_VALUE if no partition stays open, TOPIC_RECREATED, REROUTED,
   *     REROUTES_TOO_MANY; the errors of a commit
   */
  public Changed closePartitions(Collection<Integer> partitions, RerouteTime when, boolean dryRun) {
    return reroute(when, dryRun, topic -> RerouteTopic.closed(log, topic, partitions).asking(when == RerouteTime.NEXT_WRITE));
  }

  /**
   * Gives open partitions other shares of the slots.
   *
   * @param weights of the partitions whose weights change
   * @throws PartlogException TOPIC_NOT_FOUND, PARTITION_NOT_FOUND, OPTION_VALUE for a weight, TOPIC_RECREATED, REROUTED, REROUTES_TOO_MANY;
   *     the errors of a commit
   */
  public Changed reroute(SortedMap<Integer, Long> weights, RerouteTime when, boolean dryRun) {
    return reroute(when, dryRun, topic -> RerouteTopic.weighed(log, topic, weights).asking(when == RerouteTime.NEXT_WRITE));
  }

  private Changed reroute(RerouteTime when, boolean dryRun, Function<State, AdministrativeChange> change) {
    State planned = existing();
    Map<String, String> nothing = Map.of(TopicConfig.PENDING_WEIGHTS, TopicConfig.NOTHING);
    return commit(when == RerouteTime.NEVER ? AlterTopic.configuration(log, planned, nothing) : change.apply(planned), dryRun);
  }

  /**
   * Moves slots. The partitions keep their weights. Each reader of a key sees its records in order nevertheless.
   *
   * @param planned the state that {@code moves} were found for: in another routing epoch they are refused
   * @param moves by slot, the partition that it moves to
   * @throws PartlogException PARTITION_NOT_FOUND, PARTITION_CLOSED, TOPIC_RECREATED; OPTION_VALUE without slots, and for a slot that does
   *     not exist or has no partition yet; REROUTED, REROUTES_TOO_MANY; the errors of a commit
   */
  public Changed move(State planned, SortedMap<Integer, Integer> moves, boolean dryRun) {
    return commit(new MoveSlots(log, planned, moves), dryRun);
  }

  /**
   * Changes the configuration. An absent optional setting counts as its default.
   *
   * @param config the keys to change, in the form that options have after they were checked
   * @throws PartlogException TOPIC_NOT_FOUND, OPTION_VALUE for a setting that cannot be changed, TOPIC_RECREATED; the errors of a commit
   */
  public Changed configure(Map<String, String> config) {
    return commit(AlterTopic.configuration(log, existing(), config), false);
  }

  /**
   * Changes the configuration, and so the number of partitions, in one version. A key that has its value already is left out.
   *
   * @param topicId of the topic that the change is for
   * @param config as of {@link #configure}; {@code partitions} as of {@link #addPartitions}
   * @throws PartlogException as both of these; TOPIC_RECREATED if another topic has its name
   */
  public Changed alterOf(String topicId, Map<String, String> config) {
    return commit(AlterTopic.table(log, existing(topicId), config), false);
  }

  /**
   * Creates the topic, without records.
   *
   * @param config all of its configuration
   * @param topicId a new identity
   * @throws PartlogException TOPIC_EXISTS, FOREIGN_SEGMENTS; the errors of a commit
   */
  public void create(TopicConfig config, String topicId) {
    work.commit(new CreateTopic(log, config, topicId));
  }

  /**
   * Deletes the topic, its Kafka view and its data files. A topic that was deleted already is cleaned up only: the process that deleted it
   * may have died before that.
   *
   * @param dryRun whether to return only the outcome
   * @throws PartlogException TOPIC_NOT_FOUND if such a topic never existed; the errors of a commit; IO if it is deleted, and the clean-up
   *     failed
   */
  public Changed delete(boolean dryRun) {
    State latest = log.latest().orElseThrow(() -> Root.notFound(log));
    Changed changed = commit(new DeleteTopic(log, latest), dryRun);
    if (!dryRun) {
      clear();
    }
    return changed;
  }

  /**
   * Deletes the topic, if it still has this id.
   *
   * @throws PartlogException TOPIC_NOT_FOUND; TOPIC_RECREATED if another topic has its name; as {@link #delete}
   */
  public Changed deleteOf(String topicId) {
    Changed changed = commit(new DeleteTopic(log, existing(topicId)), false);
    clear();
    return changed;
  }

  private void clear() {
    try {
      Uninterrupted.run(() -> {
        new DeletedTopic(work).clear();
        return null;
      });
    } catch (IOException e) {
      throw PartlogException.io(e, log.store().location(Names.topicFolder(log.topic())));
    }
  }

  private State existing() {
    return log.newest().orElseThrow(() -> Root.notFound(log)).forWriters();
  }

  private State existing(String topicId) {
    State newest = existing();
    if (!newest.topicId().equals(topicId)) {
      throw AdministrativeChange.recreated(log, topicId, newest.topicId());
    }
    return newest;
  }

  private Changed commit(AdministrativeChange change, boolean dryRun) {
    return commit(change, RetentionTerms.OF_THE_TOPIC, dryRun);
  }

  /** @param terms for the retention that may follow the commit */
  private Changed commit(AdministrativeChange change, RetentionTerms terms, boolean dryRun) {
    if (dryRun) {
      State newest = log.latest().orElseThrow(() -> Root.notFound(log)).forWriters();
      if (change.appliedIn(newest).isEmpty()) {
        try {
          change.next(Optional.of(newest));
        } catch (IOException e) {
          throw PartlogException.io(e, log.store().location(Names.topicFolder(log.topic())));
        }
      }
    } else {
      work.commit(change, terms);
    }
    return change.changed();
  }

  /** When a topic is re-routed. FORMAT.md section A.6. */
  public enum RerouteTime {
    /** At once. It takes the place of a re-route that waits. */
    NOW,
    /** By the driver of the next write, before that write begins. It takes the place of a re-route that waits. */
    NEXT_WRITE,
    /** Not at all: a re-route that waits is taken back. */
    NEVER
  }
}
