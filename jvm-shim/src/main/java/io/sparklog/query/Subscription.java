package io.sparklog.query;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.spec.Option;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Which topics and partitions a read asks for. */
public final class Subscription {
  /** A topic in the state that the read was planned from, and the partitions to read of it, in order. */
  public record Subscribed(State state, int[] partitions) {
    /** The part of it that an earlier state has. */
    public Subscribed in(State earlier) {
      return new Subscribed(earlier, Arrays.stream(partitions).filter(partition -> partition < earlier.partitions()).toArray());
    }
  }

  /** The knowledge of the topics to read. */
  public interface Known {
    /** The names of all existing topics. Names of folders without a state may be among them. */
    List<String> existing();

    /** The states of the topics that exist among {@code names}, by name. */
    Map<String, State> states(Collection<String> names);

    /** The options name a topic that does not exist. If this returns, the read goes on without it. */
    void missing(String topic);
  }

  private final ReadableTopics root;
  private final Known topics;
  private final Options options;

  /** Null if the topics are not given by a pattern. */
  private final Pattern pattern;

  /** The part of each topic that is read; null for all of it. */
  private final Share share;

  /** The partitions that {@code assign} names; null before it is needed. */
  private TreeMap<String, TreeSet<Integer>> assigned;

  /**
   * @param states gives the states of the topics that exist among names: the newest state, or the state that the same query got before
   */
  public Subscription(ReadableTopics root, Function<Collection<String>, Map<String, State>> states, Options options) {
    this(root, new Known() {
      @Override
      public List<String> existing() {
        return root.candidates();
      }

      @Override
      public Map<String, State> states(Collection<String> names) {
        return states.apply(names);
      }

      @Override
      public void missing(String topic) {
        throw root.notFound(topic);
      }
    }, options);
  }

  public Subscription(ReadableTopics root, Known topics, Options options) {
    this.root = root;
    this.topics = topics;
    this.options = options;
    this.pattern = options.given("subscribePattern") ? Pattern.compile(options.text("subscribePattern")) : null;
    this.share = options.given("share") ? Share.of(options.text("share")) : null;
  }

  /**
   * Looks the topics up; they come by name.
   *
   * @throws PartlogException what {@link ReadableTopics#requireReadable} throws, TOPIC_NOT_FOUND, TOPIC_NAME_ILLEGAL, PARTITION_NOT_FOUND,
   *     OPTION_VALUE
   */
  public List<Subscribed> resolve() {
    return look(root::requireReadable);
  }

  /** As {@link #resolve}, of a root that was readable before. */
  public List<Subscribed> again() {
    return look(() -> {});
  }

  /** @param proof that the root is readable; left out if topics are found, since these prove it without a request */
  private List<Subscribed> look(Runnable proof) {
    if (options.given("assign")) {
      return named(List.copyOf(assigned().keySet()), proof).map(state -> parts(state, assigned().get(state.topic()))).toList();
    }
    if (options.given("subscribe")) {
      return named(options.names("subscribe").stream().sorted().toList(), proof).map(this::shared).toList();
    }
    // A pattern may be meant for topics that do not exist yet: if it matches no topic, nothing is read, like in Spark's Kafka source.
    List<String> existing = proving(topics::existing, names -> !names.isEmpty(), proof);
    List<String> matching = existing.stream().filter(this::names).toList();
    Map<String, State> states = topics.states(matching);
    return matching.stream().filter(states::containsKey).map(states::get).map(this::shared).toList();
  }

  /** The answer of {@code ask}. Without an answer that proves the root, the root may be why. */
  private static <T> T proving(Supplier<T> ask, Predicate<T> proves, Runnable proof) {
    T answer;
    try {
      answer = ask.get();
    } catch (PartlogException e) {
      proof.run();
      throw e;
    }
    if (!proves.test(answer)) {
      proof.run();
    }
    return answer;
  }

  /** Whether the options mean a topic of this name. */
  public boolean names(String topic) {
    if (options.given("assign")) {
      return assigned().containsKey(topic);
    }
    return options.given("subscribe") ? options.names("subscribe").contains(topic) : pattern == null || pattern.matcher(topic).matches();
  }

  /** Whether the options mean this partition of a topic that has it. */
  public boolean names(String topic, int partition) {
    return names(topic) && (!options.given("assign") || assigned().get(topic).contains(partition))
        && (share == null || share.has(partition));
  }

  private Stream<State> named(List<String> names, Runnable proof) {
    Map<String, State> states = proving(() -> topics.states(names), found -> found.keySet().containsAll(names), proof);
    names.stream().filter(name -> !states.containsKey(name)).forEach(topics::missing);
    return names.stream().filter(states::containsKey).map(states::get);
  }

  private Subscribed shared(State state) {
    return new Subscribed(state,
        IntStream.range(0, state.partitions()).filter(partition -> share == null || share.has(partition)).toArray());
  }

  private Subscribed parts(State state, TreeSet<Integer> partitions) {
    state.requirePartition("assign", root.location(), partitions.last());
    return new Subscribed(state, partitions.stream().mapToInt(Integer::intValue).toArray());
  }

  private TreeMap<String, TreeSet<Integer>> assigned() {
    if (assigned == null) {
      assigned = PartitionJson.partitions("assign", options.text("assign"));
    }
    return assigned;
  }

  /** {@code subscribe=orders} */
  @Override
  public String toString() {
    for (String option : List.of("subscribe", "subscribePattern", "assign")) {
      if (options.given(option)) {
        return option + "=" + options.text(option) + part();
      }
    }
    return "all topics" + part();
  }

  private String part() {
    return share == null ? "" : ", share=" + share;
  }

  /**
   * One of several parts of each topic: every n-th partition, so that partitions that are added change no part of those before.
   *
   * @param place from 0 on
   * @param parts at least 1
   */
  private record Share(int place, int parts) {
    private static final Pattern TEXT = Pattern.compile("([0-9]{1,5})/([0-9]{1,5})");

    /** @throws io.sparklog.spec.PartlogException OPTION_VALUE */
    static Share of(String text) {
      Matcher found = TEXT.matcher(text);
      if (found.matches()) {
        Share share = new Share(Integer.parseInt(found.group(1)) - 1, Integer.parseInt(found.group(2)));
        if (share.place >= 0 && share.place < share.parts) {
          return share;
        }
      }
      throw Option.invalidValue("share", text, "it must be k/n with k from 1 to n, as 2/5 for the second of five shares");
    }

    boolean has(int partition) {
      return partition % parts == place;
    }

    /** {@code 2/5} */
    @Override
    public String toString() {
      return place + 1 + "/" + parts;
    }
  }
}
