package io.sparklog.stream;

import io.sparklog.feed.CommitReader;
import io.sparklog.log.QueryStart;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.query.Subscription;
import io.sparklog.read.LaterState;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import java.time.Clock;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** The topics of a streaming query: finds their newest states, and sees to it that offsets are used for the topics that they mean. */
final class StreamTopics implements Subscription.Known {
  private final ReadableTopics root;
  private final CommitReader reader;
  private final StreamStart start;
  private final Clock clock;
  private final Subscription subscription;
  private final LaterState.DataLoss dataLoss;

  /** The topics that the last look found; null before the first. */
  private List<Subscription.Subscribed> newest;

  /** The ids of lost topics that were reported. */
  private final Set<String> reported = new HashSet<>();

  StreamTopics(ReadableTopics root, CommitReader reader, Options options, StreamStart start, Clock clock, LaterState.DataLoss dataLoss) {
    this.root = root;
    this.reader = reader;
    this.start = start;
    this.clock = clock;
    this.subscription = new Subscription(root, this, options);
    this.dataLoss = dataLoss;
  }

  /**
   * The newest states of the subscribed topics; the list of the look before if nothing was committed since. That costs two stats a topic.
   *
   * @throws PartlogException STREAM_TOPIC_GONE of a topic that the options name, and what {@link Subscription#resolve} throws
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

  /** The topics that the last look found; empty before the first. */
  private List<Subscription.Subscribed> found() {
    return newest == null ? List.of() : newest;
  }

  /** Those of the last look too: a listing may be a second old. */
  @Override
  public List<String> existing() {
    TreeSet<String> names = new TreeSet<>(newest == null ? root.candidates() : root.recentTopics(clock));
    found().forEach(topic -> names.add(topic.state().topic()));
    return List.copyOf(names);
  }

  @Override
  public Map<String, State> states(Collection<String> names) {
    return reader.newest(names);
  }

  /** A query goes on without a topic that it has read, as far as failOnDataLoss allows it; any other name is a mistake. */
  @Override
  public void missing(String topic) {
    QueryStart.Topic known = start.topic(topic).orElseThrow(() -> root.notFound(topic));
    if (dataLoss.isError()) {
      throw gone(topic, known);
    }
  }

  private PartlogException gone(String topic, QueryStart.Topic known) {
    return PartlogException.of("STREAM_TOPIC_GONE", "topic", topic, "id", known.id(), "root", root.location(), "checkpoint",
        start.checkpoint());
  }

  private PartlogException replaced(State state, QueryStart.Topic known) {
    return PartlogException.of("STREAM_TOPIC_REPLACED", "topic", state.topic(), "root", root.location(), "expected", known.id(), "found",
        state.topicId(), "checkpoint", start.checkpoint());
  }

  /**
   * The newest state of a topic that an offset names. Empty if the topic is gone, or another topic has its name, and this is not an error.
   * That is reported once.
   *
   * @throws PartlogException STREAM_TOPIC_REPLACED, STREAM_TOPIC_GONE, QUERY_CHECKPOINT_CORRUPT; of a root that is not there,
   *     what {@link ReadableTopics#requireReadable} throws
   */
  Optional<State> read(String topic) {
    requireNoted(topic);
    return read(topic, root.newest(topic));
  }

  /** Like {@link #read(String)}, in the state that the last look found, if it found the topic that the offsets mean. */
  Optional<State> readAsFound(String topic) {
    requireNoted(topic);
    return found().stream()
        .map(Subscription.Subscribed::state)
        .filter(state -> state.topic().equals(topic) && start.isOf(state))
        .findFirst()
        .or(() -> read(topic));
  }

  private Optional<State> read(String topic, Optional<State> state) {
    Optional<State> same = state.filter(start::isOf);
    if (same.isEmpty()) {
      QueryStart.Topic known = start.topic(topic).orElseThrow();
      PartlogException loss = state.isPresent() ? replaced(state.get(), known) : gone(topic, known);
      if (!dataLoss.isError()) {
        // A file system that is not mounted has lost nothing.
        root.requireReadable();
      }
      if (dataLoss.isError() || reported.add(known.id())) {
        dataLoss.report(loss);
      }
    }
    return same;
  }

  /** Whether the topic that offsets mean is still there. */
  boolean isThere(String topic) {
    return root.newest(topic).filter(start::isOf).isPresent();
  }

  /**
   * Whether the files name all topics of an offset. To note it only now could take another topic, which has that name today, for the topic
   * that was read.
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

  /**
   * Notes topics that are read from now on, unless an offset in Spark's log still means others of their names.
   *
   * @throws PartlogException STREAM_TOPIC_REPLACED if another driver of the query noted others
   */
  void note(List<State> topics) {
    while (true) {
      TreeMap<String, QueryStart.Topic> found = new TreeMap<>();
      for (State topic : topics) {
        if (!start.isOf(topic)) {
          found.put(topic.topic(), new QueryStart.Topic(topic.topicId(), new TreeMap<>()));
        }
      }
      if (found.isEmpty()) {
        return;
      }
      Map<String, QueryStart.Topic> before = new HashMap<>(start.topics());
      start.add(new QueryStart(found));
      for (State topic : topics) {
        Optional<QueryStart.Topic> noted = start.topic(topic.topic());
        if (noted.isPresent() && !start.isOf(topic) && noted.get() != before.get(topic.topic())) {
          throw replaced(topic, noted.get());
        }
      }
    }
  }

  /**
   * Leaves out partitions that the query has read and its options no longer name. Leaves out topics that are gone or have been replaced, if
   * this is not an error.
   *
   * @throws PartlogException STREAM_UNSUBSCRIBED, OFFSETS_OUT_OF_RANGE, and as {@link #read}
   */
  StreamOffsets subscribed(StreamOffsets from) {
    TreeMap<String, TreeMap<Integer, Long>> kept = new TreeMap<>();
    Map<String, State> found = new HashMap<>();
    found().forEach(topic -> found.put(topic.state().topic(), topic.state()));
    for (String topic : from.topics()) {
      requireNoted(topic);
      Optional<State> newest = Optional.ofNullable(found.get(topic)).or(() -> root.newest(topic));
      Optional<State> state = subscription.names(topic) ? read(topic, newest) : newest.filter(start::isOf);
      if (subscription.names(topic) && state.isEmpty()) {
        continue;
      }
      from.of(topic).forEach((partition, offset) -> {
        state.ifPresent(exists -> requireEnd(exists, partition, offset));
        if (subscription.names(topic, partition)) {
          kept.computeIfAbsent(topic, first -> new TreeMap<>()).put(partition, offset);
        } else {
          dataLoss.report(PartlogException.of("STREAM_UNSUBSCRIBED", "checkpoint", start.checkpoint(), "topic", topic, "partition",
              partition, "root", root.location(), "offset", offset, "subscription", subscription));
        }
      });
    }
    return new StreamOffsets(kept);
  }

  /**
   * The log must have the offsets that were read or will be read: it may have been restored from a copy that has fewer.
   *
   * @throws PartlogException OFFSETS_OUT_OF_RANGE, QUERY_CHECKPOINT_CORRUPT
   */
  void requireEnd(State state, int partition, long offset) {
    boolean exists = partition < state.partitions();
    if (offset > (exists ? state.end(partition) : 0)) {
      throw PartlogException.of("OFFSETS_OUT_OF_RANGE", "option", start.checkpoint(), "offset", offset, "topic", state.topic(), "partition",
          partition, "root", root.location(), "start", exists ? state.start(partition) : 0, "end", exists ? state.end(partition) : 0, "way",
          "If the log was put back from an older copy, start the query with a new checkpoint");
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
