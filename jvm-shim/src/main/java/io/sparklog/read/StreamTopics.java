package io.sparklog.read;

import io.sparklog.log.QueryStart;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import java.time.Clock;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;

/** The topics of a streaming query: finds their newest states, and sees to it that they are the topics that the query began to read. */
final class StreamTopics {
  private final Root root;
  private final StreamStart start;
  private final Clock clock;
  private final Subscription subscription;
  private final DataLoss dataLoss;

  /** What the last look found; null before the first. */
  private List<Subscription.Subscribed> newest;

  StreamTopics(Root root, Options options, StreamStart start, Clock clock, DataLoss dataLoss) {
    this.root = root;
    this.start = start;
    this.clock = clock;
    this.subscription = new Subscription(root, this::existing, this::state, options);
    this.dataLoss = dataLoss;
  }

  /**
   * The newest states of what is subscribed to; the list of the look before if nothing was committed since. That costs two stats a topic.
   *
   * @throws PartlogException STREAM_TOPIC_REPLACED, STREAM_TOPIC_GONE, and what {@link Subscription#resolve} throws
   */
  List<Subscription.Subscribed> look() {
    List<Subscription.Subscribed> seen = newest == null ? subscription.resolve() : subscription.again();
    newest = newest != null && states(seen).equals(states(newest)) ? newest : seen;
    return newest;
  }

  /** Each is one object for as long as nothing is committed. */
  private static List<State> states(List<Subscription.Subscribed> topics) {
    return topics.stream().map(Subscription.Subscribed::state).toList();
  }

  /** What the last look found; none before the first. */
  List<Subscription.Subscribed> found() {
    return newest == null ? List.of() : newest;
  }

  /** The names of the topics that exist, and of those that the last look found: it is noticed if one of these is gone. */
  private List<String> existing() {
    TreeSet<String> names = new TreeSet<>(newest == null ? root.topics() : root.recentTopics(clock));
    found().forEach(topic -> names.add(topic.state().topic()));
    return List.copyOf(names);
  }

  /** The newest state of a topic that the query reads, or begins to read. @throws PartlogException as {@link #look} */
  State state(String topic) {
    Optional<State> state = root.topic(topic).newest();
    Optional<QueryStart.Topic> known = start.topic(topic);
    if (state.isEmpty() && known.isPresent()) {
      throw PartlogException.of("STREAM_TOPIC_GONE", "topic", topic, "id", known.get().id(), "root", root.store().root(), "checkpoint",
          start.checkpoint());
    }
    if (state.isPresent() && known.isPresent() && !known.get().id().equals(state.get().topicId())) {
      throw PartlogException.of("STREAM_TOPIC_REPLACED", "topic", topic, "root", root.store().root(), "expected", known.get().id(), "found",
          state.get().topicId(), "checkpoint", start.checkpoint());
    }
    return state.isPresent() ? state.get() : root.state(topic);
  }

  /** The newest state of a topic that an offset names. @throws PartlogException QUERY_CHECKPOINT_CORRUPT, and as {@link #look} */
  State read(String topic) {
    requireNoted(topic);
    return state(topic);
  }

  /**
   * Whether the files name all topics of an offset. To note one only now would take whatever topic has that name today for the one that was
   * read.
   *
   * @throws PartlogException QUERY_CHECKPOINT_CORRUPT
   */
  void requireNoted(StreamOffsets read) {
    read.topics().forEach(this::requireNoted);
  }

  private void requireNoted(String topic) {
    if (start.topic(topic).isEmpty()) {
      start.readOn();
    }
    if (start.topic(topic).isEmpty()) {
      throw start.corrupt(null, "", "an offset names topic " + topic + ", and no file there does");
    }
  }

  /** Notes topics that are read from now on. If another driver of the query noted one before, they must be the same. */
  void note(List<String> topics) {
    while (true) {
      TreeMap<String, QueryStart.Topic> found = new TreeMap<>();
      for (String topic : topics) {
        if (start.topic(topic).isEmpty()) {
          found.put(topic, new QueryStart.Topic(state(topic).topicId(), new TreeMap<>()));
        }
      }
      if (found.isEmpty()) {
        return;
      }
      start.add(new QueryStart(found));
      found.keySet().forEach(this::state);
    }
  }

  /**
   * Leaves out what the query has read and its options no longer name.
   *
   * @throws PartlogException STREAM_UNSUBSCRIBED, OFFSETS_OUT_OF_RANGE, QUERY_CHECKPOINT_CORRUPT, and as {@link #look}
   */
  StreamOffsets subscribed(StreamOffsets from) {
    TreeMap<String, TreeMap<Integer, Long>> kept = new TreeMap<>();
    Map<String, Subscription.Subscribed> named = new HashMap<>();
    found().forEach(topic -> named.put(topic.state().topic(), topic));
    for (String topic : from.topics()) {
      State state = named.containsKey(topic) ? named.get(topic).state() : read(topic);
      from.of(topic).forEach((partition, offset) -> {
        requireEnd(state, partition, offset);
        if (named.containsKey(topic) && named.get(topic).has(partition)) {
          kept.computeIfAbsent(topic, first -> new TreeMap<>()).put(partition, offset);
        } else {
          dataLoss.report(PartlogException.of("STREAM_UNSUBSCRIBED", "checkpoint", start.checkpoint(), "topic", topic, "partition",
              partition, "root", root.store().root(), "offset", offset, "subscription", subscription));
        }
      });
    }
    return new StreamOffsets(kept);
  }

  /**
   * Offsets that are read, or are to be read, must be those of the log: it may have been put back from a copy that has fewer.
   *
   * @throws PartlogException OFFSETS_OUT_OF_RANGE, QUERY_CHECKPOINT_CORRUPT
   */
  void requireEnd(State state, int partition, long offset) {
    boolean exists = partition < state.partitions();
    if (offset > (exists ? state.end(partition) : 0)) {
      throw PartlogException.of("OFFSETS_OUT_OF_RANGE", "option", start.checkpoint(), "offset", offset, "topic", state.topic(), "partition",
          partition, "root", root.store().root(), "start", exists ? state.start(partition) : 0, "end", exists ? state.end(partition) : 0);
    }
    if (!exists) {
      throw start.corrupt(null, "", "an offset names partition " + partition + " of topic " + state.topic() + ", whose last partition is "
          + (state.partitions() - 1));
    }
  }

  /** {@code subscribe=orders} */
  @Override
  public String toString() {
    return subscription.toString();
  }
}
