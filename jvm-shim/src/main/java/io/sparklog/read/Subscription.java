package io.sparklog.read;

import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/** Which topics and partitions a read asks for. */
public final class Subscription {
  /** A topic in the state that the read was planned from, and the partitions to read of it, in order. */
  public record Subscribed(State state, int[] partitions) {
    boolean has(int partition) {
      return Arrays.binarySearch(partitions, partition) >= 0;
    }

    /** What an earlier state has of it. */
    Subscribed in(State earlier) {
      return new Subscribed(earlier, Arrays.stream(partitions).filter(partition -> partition < earlier.partitions()).toArray());
    }
  }

  private final Root root;
  private final Supplier<List<String>> existing;
  private final Function<String, State> states;
  private final Options options;

  /** Null if the topics are not given by a pattern. */
  private final Pattern pattern;

  /** What {@code assign} names; null before it is needed. */
  private TreeMap<String, TreeSet<Integer>> assigned;

  /** @param states gives the state of a topic by its name: that of {@link Root#state}, or one that the same query was given before */
  public Subscription(Root root, Function<String, State> states, Options options) {
    this(root, root::topics, states, options);
  }

  /** @param existing gives the names of the topics that exist */
  Subscription(Root root, Supplier<List<String>> existing, Function<String, State> states, Options options) {
    this.root = root;
    this.existing = existing;
    this.states = states;
    this.options = options;
    this.pattern = options.given("subscribePattern") ? Pattern.compile(options.text("subscribePattern")) : null;
  }

  /**
   * Looks the topics up; they come by name.
   *
   * @throws PartlogException what {@link Root#requireReadable} throws, TOPIC_NOT_FOUND, TOPIC_NAME_ILLEGAL, PARTITION_NOT_FOUND,
   *     OPTION_VALUE
   */
  public List<Subscribed> resolve() {
    root.requireReadable();
    return again();
  }

  /** As {@link #resolve}, of a root that was readable before. */
  List<Subscribed> again() {
    if (options.given("assign")) {
      return assigned();
    }
    if (options.given("subscribe")) {
      return options.names("subscribe").stream().sorted().map(topic -> whole(states.apply(topic))).toList();
    }
    // A pattern may be meant for topics that do not exist yet: if it matches none, nothing is read, as in Spark's Kafka source.
    return existing.get()
        .stream()
        .filter(topic -> pattern == null || pattern.matcher(topic).matches())
        .flatMap(topic -> listed(topic).stream())
        .toList();
  }

  /** Empty if the topic was deleted since it was listed. */
  private Optional<Subscribed> listed(String topic) {
    try {
      return Optional.of(whole(states.apply(topic)));
    } catch (PartlogException e) {
      if (e.id().equals("TOPIC_NOT_FOUND")) {
        return Optional.empty();
      }
      throw e;
    }
  }

  private static Subscribed whole(State state) {
    return new Subscribed(state, IntStream.range(0, state.partitions()).toArray());
  }

  private List<Subscribed> assigned() {
    if (assigned == null) {
      assigned = PartitionJson.partitions("assign", options.text("assign"));
    }
    List<Subscribed> topics = new ArrayList<>();
    for (Map.Entry<String, TreeSet<Integer>> topic : assigned.entrySet()) {
      State state = states.apply(topic.getKey());
      requirePartition("assign", root.store(), state, topic.getValue().last());
      topics.add(new Subscribed(state, topic.getValue().stream().mapToInt(Integer::intValue).toArray()));
    }
    return topics;
  }

  /** @throws PartlogException PARTITION_NOT_FOUND */
  static void requirePartition(String option, LogStore store, State state, int partition) {
    if (partition >= state.partitions()) {
      throw PartlogException.of("PARTITION_NOT_FOUND", "option", option, "partition", partition, "topic", state.topic(), "root",
          store.root(), "last", state.partitions() - 1);
    }
  }

  /** {@code subscribe=orders} */
  @Override
  public String toString() {
    for (String option : List.of("subscribe", "subscribePattern", "assign")) {
      if (options.given(option)) {
        return option + "=" + options.text(option);
      }
    }
    return "all topics";
  }
}
