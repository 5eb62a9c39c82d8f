package io.sparklog.read;

import io.sparklog.log.QueryStart;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;

/**
 * What a streaming query reads of a root, micro-batch by micro-batch: finds what was committed since, and says which of it comes next. Not
 * for several threads at once.
 */
public final class TopicStream {
  private final Root root;
  private final Options options;
  private final StreamStart start;
  private final Clock clock;
  private final Subscription subscription;
  private final DataLoss dataLoss;

  /** What the last look found. */
  private List<Subscription.Subscribed> newest;

  /** Where to stop, by topic; null if the stream goes on for ever. */
  private Map<String, State> last;

  private OptionalLong firedMs = OptionalLong.empty();
  private int turn = -1;
  private final LostOffsets lost = new LostOffsets();

  /** @param start what the query's checkpoint says */
  public TopicStream(Root root, Options options, StreamStart start, Clock clock) {
    this.root = root;
    this.options = options;
    this.start = start;
    this.clock = clock;
    this.subscription = new Subscription(root, this::existing, this::state, options);
    this.dataLoss = new DataLoss(options.bool("failOnDataLoss"));
  }

  /** From now on, goes no further than what is committed now. */
  public void stopAtNewest() {
    last = new HashMap<>();
    look().forEach(topic -> last.put(topic.state().topic(), topic.state()));
  }

  /**
   * Where the query begins: what its checkpoint says, or its options if it is new.
   *
   * @throws PartlogException what {@link OffsetBounds#resolveStarts} and {@link Subscription#resolve} throw, and QUERY_CHECKPOINT_CORRUPT
   */
  public StreamOffsets initial() throws IOException {
    if (start.first().isEmpty()) {
      TreeMap<String, QueryStart.Topic> topics = new TreeMap<>();
      for (Subscription.Subscribed topic : subscribed(look())) {
        topics.put(topic.state().topic(), new QueryStart.Topic(topic.state().topicId(), new TreeMap<>()));
      }
      for (OffsetBounds.Range range : new OffsetBounds(root.store(), options).resolveStarts(subscribed(newest))) {
        topics.get(range.state().topic()).offsets().put(range.partition(), range.start());
      }
      start.add(new QueryStart(topics));
    }
    TreeMap<String, TreeMap<Integer, Long>> offsets = new TreeMap<>();
    start.first().orElseThrow().forEach((topic, about) -> {
      if (!about.offsets().isEmpty()) {
        offsets.put(topic, new TreeMap<>(about.offsets()));
      }
    });
    return new StreamOffsets(offsets);
  }

  /** What of the topics may be read: of those that are there since {@link #stopAtNewest}, what they had then. */
  private List<Subscription.Subscribed> subscribed(List<Subscription.Subscribed> found) {
    if (last == null) {
      return found;
    }
    List<Subscription.Subscribed> topics = new ArrayList<>();
    for (Subscription.Subscribed topic : found) {
      State state = last.get(topic.state().topic());
      if (state != null) {
        topics.add(topic.in(state));
      }
    }
    return topics;
  }

  /** The ends of what is committed, as far as the stream may go. */
  public StreamOffsets newest() {
    TreeMap<String, TreeMap<Integer, Long>> ends = new TreeMap<>();
    for (Subscription.Subscribed topic : newest == null ? look() : newest) {
      for (int partition : topic.partitions()) {
        ends.computeIfAbsent(topic.state().topic(), first -> new TreeMap<>()).put(partition, topic.state().end(partition));
      }
    }
    return new StreamOffsets(ends);
  }

  /**
   * Where the next micro-batch ends, which begins at {@code from}; {@code from} itself if there is nothing to read.
   *
   * @throws PartlogException STREAM_TOPIC_REPLACED, STREAM_TOPIC_GONE, STREAM_UNSUBSCRIBED, OFFSETS_OUT_OF_RANGE,
   *     QUERY_CHECKPOINT_CORRUPT, and what {@link Subscription#resolve} throws
   */
  public StreamOffsets next(StreamOffsets from, TriggerLimits given) throws IOException {
    TriggerLimits limits = last == null ? given : given.atOnce();
    addNew(subscribed(look()));
    StreamOffsets kept = withoutUnsubscribed(from);
    List<OffsetBounds.Range> waiting = waiting(kept);
    if (!fires(limits, waiting)) {
      return from;
    }
    StreamOffsets next = after(kept, taken(waiting, limits));
    if (!next.equals(from)) {
      firedMs = OptionalLong.of(clock.millis());
    }
    return next;
  }

  /** The newest states of what is subscribed to, each the topic that the query has read so far. */
  private List<Subscription.Subscribed> look() {
    newest = newest == null ? subscription.resolve() : subscription.again();
    return newest;
  }

  private List<String> existing() {
    return newest == null ? root.topics() : root.recentTopics(clock);
  }

  private State state(String topic) {
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

  /** Notes topics that no file of the checkpoint names; what another driver of the query noted is then compared with what is there. */
  private void addNew(List<Subscription.Subscribed> topics) {
    while (true) {
      TreeMap<String, QueryStart.Topic> found = new TreeMap<>();
      for (Subscription.Subscribed topic : topics) {
        if (start.topic(topic.state().topic()).isEmpty()) {
          found.put(topic.state().topic(), new QueryStart.Topic(topic.state().topicId(), new TreeMap<>()));
        }
      }
      if (found.isEmpty()) {
        return;
      }
      start.add(new QueryStart(found));
      found.keySet().forEach(this::state);
    }
  }

  /** Leaves out what the query has read and its options no longer name. */
  private StreamOffsets withoutUnsubscribed(StreamOffsets from) {
    TreeMap<String, TreeMap<Integer, Long>> kept = new TreeMap<>();
    Map<String, Subscription.Subscribed> named = new HashMap<>();
    newest.forEach(topic -> named.put(topic.state().topic(), topic));
    for (String topic : from.topics()) {
      requireNoted(topic);
      from.of(topic).forEach((partition, offset) -> {
        if (named.containsKey(topic) && named.get(topic).has(partition)) {
          kept.computeIfAbsent(topic, first -> new TreeMap<>()).put(partition, offset);
        } else {
          State state = state(topic);
          requireEnd(state, partition, offset);
          dataLoss.report(PartlogException.of("STREAM_UNSUBSCRIBED", "checkpoint", start.checkpoint(), "topic", topic, "partition",
              partition, "root", root.store().root(), "offset", offset, "subscription", subscription));
        }
      });
    }
    return new StreamOffsets(kept);
  }

  private void requireNoted(String topic) {
    if (start.topic(topic).isEmpty()) {
      throw start.corrupt(null, "", "an offset names topic " + topic + ", and no file there does");
    }
  }

  private long begin(StreamOffsets from, String topic, int partition) {
    Long read = from.of(topic).get(partition);
    return read == null ? start.offset(topic, partition) : read;
  }

  private List<OffsetBounds.Range> waiting(StreamOffsets from) {
    List<OffsetBounds.Range> waiting = new ArrayList<>();
    for (Subscription.Subscribed topic : newest) {
      State state = topic.state();
      State until = last == null ? state : last.get(state.topic());
      for (int partition : topic.partitions()) {
        long begin = begin(from, state.topic(), partition);
        requireEnd(state, partition, begin);
        if (until != null && partition < until.partitions()) {
          // Offsets that have expired count for nothing if that is no error.
          long first = dataLoss.isError() ? begin : Math.max(begin, state.start(partition));
          waiting.add(new OffsetBounds.Range(state, partition, first, Math.max(first, until.end(partition))));
        }
      }
    }
    return waiting;
  }

  /** Offsets that are read, or are to be read, must be those of the log: it may have been put back from a copy that has fewer. */
  private void requireEnd(State state, int partition, long offset) {
    long end = partition < state.partitions() ? state.end(partition) : 0;
    if (offset > end) {
      throw PartlogException.of("OFFSETS_OUT_OF_RANGE", "option", start.checkpoint(), "offset", offset, "topic", state.topic(), "partition",
          partition, "root", root.store().root(), "start", partition < state.partitions() ? state.start(partition) : 0, "end", end);
    }
  }

  private boolean fires(TriggerLimits limits, List<OffsetBounds.Range> waiting) {
    double offsets = waiting.stream().mapToDouble(range -> range.end() - range.start()).sum();
    return offsets >= limits.offsetsMin() || firedMs.isEmpty() || clock.millis() - firedMs.getAsLong() >= limits.delayMs();
  }

  private List<OffsetBounds.Range> taken(List<OffsetBounds.Range> waiting, TriggerLimits limits) throws IOException {
    if (waiting.isEmpty()) {
      return waiting;
    }
    if (turn < 0 || turn >= waiting.size()) {
      // The sum moves on with every offset that is read, so a query that is often restarted does not begin at one partition for ever.
      long sum = waiting.stream().mapToLong(OffsetBounds.Range::start).sum();
      turn = (int) Math.floorMod(sum, (long) waiting.size());
    }
    OffsetShares shares = new OffsetShares(waiting.stream().mapToLong(range -> range.end() - range.start()).toArray(), limits.offsetsMax(),
        turn);
    turn = shares.nextTurn();
    List<OffsetBounds.Range> taken = new ArrayList<>();
    for (int i = 0; i < waiting.size(); i++) {
      OffsetBounds.Range range = waiting.get(i);
      taken.add(new OffsetBounds.Range(range.state(), range.partition(), range.start(), range.start() + shares.shares()[i]));
    }
    return taken;
  }

  /** A partition of which nothing is or was read is left out: to name it would look like something to read. */
  private StreamOffsets after(StreamOffsets from, List<OffsetBounds.Range> taken) {
    TreeMap<String, TreeMap<Integer, Long>> next = new TreeMap<>();
    for (String topic : from.topics()) {
      next.put(topic, new TreeMap<>(from.of(topic)));
    }
    for (OffsetBounds.Range range : taken) {
      String topic = range.state().topic();
      if (from.of(topic).containsKey(range.partition()) || range.end() > start.offset(topic, range.partition())) {
        next.computeIfAbsent(topic, first -> new TreeMap<>()).put(range.partition(), range.end());
      }
    }
    return new StreamOffsets(next);
  }

  /**
   * The offsets of a micro-batch, as the newest states have them.
   *
   * @throws PartlogException STREAM_TOPIC_REPLACED, STREAM_TOPIC_GONE, OFFSETS_OUT_OF_RANGE, OFFSETS_EXPIRED, QUERY_CHECKPOINT_CORRUPT
   */
  public List<OffsetBounds.Range> ranges(StreamOffsets from, StreamOffsets to) {
    List<OffsetBounds.Range> ranges = new ArrayList<>();
    lost.begin(to);
    for (String topic : to.topics()) {
      requireNoted(topic);
      State state = state(topic);
      to.of(topic).forEach((partition, end) -> {
        long begin = begin(from, topic, partition);
        requireEnd(state, partition, end);
        if (begin > end) {
          throw start.corrupt(null, "",
              "a micro-batch of topic " + topic + ", partition " + partition + " goes from " + begin + " to " + end);
        }
        long first = Math.min(end, Math.max(begin, state.start(partition)));
        if (first > begin) {
          dataLoss.report(PartlogException.of("OFFSETS_EXPIRED", "offset", begin, "end", first, "count", first - begin, "topic", topic,
              "partition", partition, "root", root.store().root(), "start", state.start(partition)));
          lost.add(first - begin);
        }
        ranges.add(new OffsetBounds.Range(state, partition, first, end));
      });
    }
    return ranges;
  }

  /** How many offsets of finished and planned micro-batches had expired. */
  public long lostOffsets() {
    return lost.total();
  }

  /** {@code subscribe=orders} */
  @Override
  public String toString() {
    return subscription.toString();
  }

  /** Counts each micro-batch once, however often it is planned. */
  private static final class LostOffsets {
    private long before;
    private long current;
    private StreamOffsets batch;

    private void begin(StreamOffsets to) {
      before += to.equals(batch) ? 0 : current;
      current = 0;
      batch = to;
    }

    private void add(long offsets) {
      current += offsets;
    }

    private long total() {
      return before + current;
    }
  }
}
