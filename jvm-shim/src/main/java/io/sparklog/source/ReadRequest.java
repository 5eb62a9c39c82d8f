package io.sparklog.source;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.query.OffsetBounds;
import io.sparklog.query.Subscription;
import io.sparklog.read.Selection;
import io.sparklog.spark.QueryMemory;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import io.sparklog.stream.TriggerLimits;
import java.lang.ref.SoftReference;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The request of a read: the offsets that its options name, in the states of its topics. A state is taken when a scan of the query first
 * needs it.
 */
public final class ReadRequest {
  private final ReadableTopics root;
  private final Options options;
  private final Subscription subscription;
  private List<Selection.OffsetRange> ranges;

  /** The identity that its topic must have; null if the topics that have the names will do. */
  private String topicId;

  /** The version that the options are of, in words; null if they are a user's. */
  private String version;

  private Optional<State> then = Optional.empty();

  ReadRequest(ReadableTopics root, Options options) {
    this.root = root;
    this.options = options;
    this.subscription = new Subscription(root, new QueryStates(root)::states, options);
  }

  ReadableTopics root() {
    return root;
  }

  Options options() {
    return options;
  }

  /** The offsets of each partition that a batch reads; the same at every call. */
  synchronized List<Selection.OffsetRange> ranges() {
    if (ranges == null) {
      ranges = SparkErrors.run(() -> {
        List<Subscription.Subscribed> topics = subscription.resolve();
        topics.forEach(topic -> requireMeant(topic.state()));
        List<Subscription.Subscribed> read = topics.stream().map(topic -> then.map(topic::in).orElse(topic)).toList();
        return new OffsetBounds(root, options.ofBatch(), version).resolve(read);
      });
      if (!options.givenOfStream().isEmpty()) {
        Warnings.warn(ReadRequest.class, "options without effect in a batch read: {}", String.join(", ", options.givenOfStream()));
      }
    }
    return ranges;
  }

  /**
   * @param id the identity that its topic must have
   * @param asked the version that the options are of, as an error names it
   * @param state to read; empty for the newest one
   */
  void only(String id, String asked, Optional<State> state) {
    then = state;
    topicId = id;
    version = asked;
  }

  private void requireMeant(State state) {
    if (topicId != null && !topicId.equals(state.topicId())) {
      throw PartlogException.of("TOPIC_REPLACED", "topic", state.topic(), "root", root.location());
    }
  }

  /** Whether there is at most one topic, so that the number of a partition alone identifies it. */
  boolean isOfOneTopic() {
    return ranges().stream().map(range -> range.state().topic()).distinct().count() <= 1;
  }

  /** Whether it asks for the same offsets of the same topics, at the same versions of them. */
  boolean isSame(ReadRequest other) {
    return this == other || root.reference().equals(other.root.reference()) && offsets().equals(other.offsets());
  }

  private List<List<Object>> offsets() {
    return ranges().stream()
        .map(range -> List.<Object>of(range.state().topicId(), range.state().version(), range.partition(), range.start(), range.end()))
        .toList();
  }

  /** {@code partlog[subscribe=orders] /data/log} */
  @Override
  public String toString() {
    return "partlog[" + subscription + "] " + root.location();
  }

  /**
   * Refuses, where the stream is defined, options with which no query can run. The checkpoint of a query says where the query begins, and
   * whether it has read a topic that is gone.
   *
   * @param options of a read
   * @throws io.sparklog.spec.PartlogException OPTION_VALUE, and the errors of {@link Subscription#resolve}
   */
  public static void requireStream(ReadableTopics root, Options options) {
    Options ofStream = options.ofStream();
    TriggerLimits.of(ofStream);
    if (ofStream.bool("failOnDataLoss") && (ofStream.given("subscribe") || ofStream.given("assign"))) {
      new Subscription(root, root::newest, ofStream).resolve();
    } else {
      root.requireReadable();
    }
  }

  /**
   * The topics under a root as one query sees them. All scans of a query share the state of a topic. So both sides of a self-join and every
   * subquery read the same offsets, although other writers commit meanwhile.
   */
  private static final class QueryStates {
    private record TopicOfRoot(ReadableTopics.Reference topics, String topic) {}

    private final ReadableTopics root;
    private final Map<Object, SoftReference<?>> memory;

    /** The states for a scan of the query that this thread plans. */
    QueryStates(ReadableTopics root) {
      this.root = root;
      this.memory = QueryMemory.ofThisQuery();
    }

    /** The newest state of each topic, by name, when a scan of the query first asked for it. Topics that do not exist are left out. */
    Map<String, State> states(Collection<String> topics) {
      synchronized (memory) {
        Map<String, State> states = new HashMap<>();
        for (String topic : topics) {
          SoftReference<?> known = memory.get(new TopicOfRoot(root.reference(), topic));
          if (known != null && known.get() instanceof State state) {
            states.put(topic, state);
          }
        }
        root.newest(topics.stream().filter(topic -> !states.containsKey(topic)).toList()).forEach((topic, newest) -> {
          memory.put(new TopicOfRoot(root.reference(), topic), new SoftReference<>(newest));
          states.put(topic, newest);
        });
        return states;
      }
    }
  }
}
