package io.sparklog.serve.topics;

import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Names;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;

/** The topics of a root by name and by id. Each question reads files, if only two stats: so ask on a thread that may block. */
public final class ServedTopics {
  /** The {@code cleanup.policy} of the topic of groups: the server compacts it. */
  public static final String GROUPS_POLICY = "compact";

  private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final Root root;
  private final Clock clock;

  /** The name that a topic id was last seen with. */
  private final Map<String, String> names = new ConcurrentHashMap<>();

  /** When all topics were looked at for an unknown id. */
  private final AtomicLong walked = new AtomicLong(System.nanoTime() - FRESH_NANOS);

  public ServedTopics(Root root, Clock clock) {
    this.root = root;
    this.clock = clock;
  }

  public Root root() {
    return root;
  }

  /**
   * The newest state of a topic; empty if the topic does not exist, or the name is illegal.
   *
   * @throws PartlogException of a topic that cannot be read
   */
  public Optional<State> newest(String name) {
    return known(name, TopicLog::newest);
  }

  /** As {@link TopicLog#recent}; else as {@link #newest}. */
  public Optional<State> recent(String name) {
    return known(name, TopicLog::recent);
  }

  private Optional<State> known(String name, Function<TopicLog, Optional<State>> question) {
    if (Names.illegalTopic(name).isPresent()) {
      return Optional.empty();
    }
    Optional<State> state = question.apply(root.topic(name));
    state.ifPresent(this::know);
    return state;
  }

  /**
   * The newest state of a topic that the client may read.
   *
   * @throws ApiException TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
   * @throws PartlogException of a topic that cannot be read
   */
  public State readable(ClientRequest asked, String name) {
    if (!asked.rights().mayRead(name)) {
      throw Errors.TOPIC_AUTHORIZATION_FAILED.exception();
    }
    return newest(name).orElseThrow(Errors.UNKNOWN_TOPIC_OR_PARTITION::exception);
  }

  /** As the other, of a partition that the topic must have. @param epoch of the leader that the client knows: the only one is 0 */
  public State readable(ClientRequest asked, String name, int partition, int epoch) {
    State state = readable(asked, name);
    if (!state.hasPartition(partition)) {
      throw Errors.UNKNOWN_TOPIC_OR_PARTITION.exception();
    }
    if (epoch > 0) {
      throw Errors.UNKNOWN_LEADER_EPOCH.exception();
    }
    return state;
  }

  /** As {@link #newest}. @param topicId FORMAT.md section 5: 22 characters, which are Kafka's form of a topic id too */
  public Optional<State> newestById(String topicId) {
    return name(topicId).flatMap(this::newest).filter(state -> state.topicId().equals(topicId));
  }

  /** As {@link #name}, without a look at files: empty also for a topic that this process has not seen. */
  public Optional<String> knownName(String topicId) {
    return Optional.ofNullable(names.get(topicId));
  }

  /** The name of the topic; empty if no topic of the root has this id. */
  public Optional<String> name(String topicId) {
    String name = names.get(topicId);
    long now = System.nanoTime();
    if (name == null && now - walked.get() >= FRESH_NANOS) {
      // Clients may ask for any id: all that were unknown a moment ago are answered by one walk.
      walked.set(now);
      all();
      name = names.get(topicId);
    }
    return Optional.ofNullable(name);
  }

  /** All topics that can be read, by name, as they were at most a second ago; a topic that was created in this process is there at once. */
  public SortedMap<String, State> all() {
    TreeMap<String, State> states = new TreeMap<>();
    read(names(), (name, found) -> found.ifPresent(state -> states.put(name, state)));
    return states;
  }

  /** All topics that the client may read. */
  List<State> all(ClientRequest asked) {
    return all().values().stream().filter(state -> asked.rights().mayRead(state.topic())).toList();
  }

  /** The names of all topics, as {@link #all} has them. */
  public List<String> names() {
    return root.recentTopics(clock);
  }

  /**
   * Reads the newest state of each topic, several at once if the store is not a disk.
   *
   * @param taker given each topic that can be read, with an empty state if it does not exist
   */
  public void read(Collection<String> names, BiConsumer<String, Optional<State>> taker) {
    root.readable(names.stream().filter(name -> Names.illegalTopic(name).isEmpty()).toList(), (name, found) -> {
      found.ifPresent(this::know);
      taker.accept(name, found);
    }, (name, e) -> Warnings.warn(ServedTopics.class, "Topic {} is not served: {}", name, e.getMessage()));
  }

  /** As {@link #read}, and may use states of a moment ago: {@link TopicLog#seen}. */
  public void readRecent(Collection<String> names, BiConsumer<String, Optional<State>> taker) {
    List<String> unseen = new ArrayList<>();
    for (String name : names) {
      Optional<State> seen = Names.illegalTopic(name).isPresent() ? Optional.empty() : root.topic(name).seen();
      seen.ifPresentOrElse(state -> taker.accept(name, seen), () -> unseen.add(name));
    }
    read(unseen, taker);
  }

  private void know(State state) {
    names.put(state.topicId(), state.topic());
  }
}
