package io.sparklog.sink;

import io.sparklog.log.ForeignSegments;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Names;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.StoreRef;
import io.sparklog.write.PendingReroute;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.io.Serializable;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.random.RandomGenerator;
import java.util.stream.Collectors;

/**
 * The decisions that are made when a write is planned; shipped to its tasks.
 *
 * @param txn the random identity of the write
 * @param topic the topic of all rows; null if each row names its own
 * @param timeMs the time of the write, ms since 1970: of records without a time, and of all records of LogAppendTime topics
 * @param byBytes whether rows without a key level the bytes of partitions, and not their records
 * @param known the plans of the topics that exist or were deleted; of {@code topic} alone if that is given
 * @param unreadable the topics whose state cannot be read, and why: only rows of these topics fail
 * @param config the configuration that a topic is created with
 * @param given the topic options that were given, which a topic must not contradict
 * @param ofTable the options in {@code given} that come from the table, not from the write
 */
record WritePlan(StoreRef store, String txn, String topic, RowColumns columns, long timeMs, int batchBytes, long bufferBytes,
    boolean byBytes, TreeMap<String, TopicPlan> known, TreeMap<String, PartlogException> unreadable, TreeMap<String, String> config,
    TreeMap<String, String> given, TreeSet<String> ofTable) implements Serializable {

  /**
   * @param names gives the names of the root's topics, also of deleted topics; asked only if rows name their topics
   * @throws PartlogException TOPIC_EXISTS, TOPIC_NOT_FOUND: the errors that a commit would find too, but before any task runs; the errors
   *     of {@link #topicPlan}
   */
  static WritePlan of(Root root, Options options, RowColumns columns, Clock clock, RandomGenerator random, Existence asked,
      Supplier<List<String>> names) throws IOException {
    String topic = options.text("topic");
    boolean byBytes = options.text("null.keys.by").equals("bytes");
    TreeMap<String, TopicPlan> known = new TreeMap<>();
    TreeMap<String, String> config = new TreeMap<>(options.topicConfig());
    TreeMap<String, String> given = new TreeMap<>(options.givenTopicConfig());
    WritePlan plan = new WritePlan(root.store().ref(), Names.identity(random), topic, columns, clock.millis(),
        options.integer("batch.size"), options.number("write.buffer.bytes"), byBytes, known, new TreeMap<>(), config, given,
        given.keySet().stream().filter(options::isOfTable).collect(Collectors.toCollection(TreeSet::new)));
    if (topic == null) {
      root.store().requests().each(names.get(), name -> NewestState.of(root.topic(name)), (name, found) -> {
        found.state.ifPresent(state -> known.put(name, TopicPlan.of(name, Optional.of(state), config, byBytes, clock.millis())));
        if (found.unreadable != null) {
          plan.unreadable.put(name, found.unreadable);
        }
        return true;
      });
      plan.require(root, asked);
    } else {
      Optional<State> latest = root.topic(topic).toPlan();
      known.put(topic, TopicPlan.of(topic, latest, config, byBytes, clock.millis()));
      plan.require(root, asked); // Before its options are compared with the options of a topic that should not exist.
      int partitions = plan.topicPlan(topic).config().partitions();
      if (latest.isEmpty()) {
        ForeignSegments.requireNone(root.topic(topic), 0, partitions);
      }
    }
    return plan;
  }

  /** The newest state of a topic, or the reason why it cannot be read. */
  private record NewestState(Optional<State> state, PartlogException unreadable) {
    static NewestState of(TopicLog log) {
      try {
        return new NewestState(log.toPlan(), null);
      } catch (PartlogException e) {
        return new NewestState(Optional.empty(), e);
      }
    }
  }

  /**
   * Commits the re-routes that wait for a write to the topics of this plan, but for topics that this write contradicts.
   *
   * @return the upkeep of each of these re-routes, to be done when the write has ended. Unless it is empty, the write must be planned once
   *     more
   */
  List<Runnable> applyPendingReroutes(Root root, Clock clock, RandomGenerator random) {
    List<Runnable> owed = new ArrayList<>();
    for (TopicPlan each : known.values()) {
      boolean mayWait = each.topicId() != null && !each.config().get(TopicConfig.PENDING_WEIGHTS).equals(TopicConfig.NOTHING);
      if (mayWait && contradiction(each).isEmpty()) {
        PendingReroute.apply(root.topic(each.topic()), clock, random).ifPresent(owed::add);
      }
    }
    return owed;
  }

  /** Whether a topic exists, or was deleted. */
  boolean isOfTopics() {
    return known.values().stream().anyMatch(each -> each.plannedVersion() > 0);
  }

  private void require(Root root, Existence asked) {
    known.forEach((name, plan) -> {
      if (asked == Existence.NEW && plan.topicId() != null) {
        throw root.topic(name).exists();
      }
      if (asked == Existence.THERE && plan.topicId() == null) {
        throw root.notFound(name);
      }
    });
  }

  /**
   * The plan of a topic, the same on the driver and in each task.
   *
   * @throws PartlogException TOPIC_NAME_ILLEGAL, TOPIC_OF_SERVER, OPTION_CONTRADICTS_TOPIC; the error that makes the topic unreadable
   */
  TopicPlan topicPlan(String name) {
    ReadableTopics.requireOfPrograms(name, store.root());
    TopicPlan existing = known.get(name);
    if (unreadable.containsKey(name)) {
      throw unreadable.get(name);
    }
    if (existing == null) {
      ReadableTopics.requireLegal(name);
      return TopicPlan.of(name, Optional.empty(), config, byBytes, 0);
    }
    contradiction(existing).ifPresent(error -> {
      throw error;
    });
    return existing;
  }

  /** The error of an option that says another thing than a topic has. */
  private Optional<PartlogException> contradiction(TopicPlan existing) {
    for (Map.Entry<String, String> option : given.entrySet()) {
      String found = existing.config().get(option.getKey());
      if (!option.getValue().equals(found) && !hasGrown(existing, option)) {
        String key = option.getKey();
        String way = ofTable.contains(key)
            ? "It comes from the table or view; remove it there, for example with ALTER TABLE … UNSET TBLPROPERTIES ('" + key + "')"
            : "Leave the option out";
        return Optional.of(PartlogException.of("OPTION_CONTRADICTS_TOPIC", "option", key, "value", option.getValue(), "topic",
            existing.topic(), "root", store.root(), "found", found, "way", way));
      }
    }
    return Optional.empty();
  }

  /**
   * Whether an option has an earlier number of a topic's partitions: a stream that was started with it goes on when partitions are added.
   */
  private static boolean hasGrown(TopicPlan existing, Map.Entry<String, String> option) {
    return option.getKey().equals(TopicConfig.PARTITIONS) && !existing.router().table().isModulo()
        && Integer.parseInt(option.getValue()) < existing.config().partitions();
  }
}
