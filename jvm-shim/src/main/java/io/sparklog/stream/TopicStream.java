package io.sparklog.stream;

import io.sparklog.log.QueryStart;
import io.sparklog.feed.CommitReader;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.query.Bound;
import io.sparklog.query.OffsetBounds;
import io.sparklog.query.Subscription;
import io.sparklog.read.LaterState;
import io.sparklog.read.Selection;
import io.sparklog.read.WalkedSegments;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.StringJoiner;
import java.util.TreeMap;

/**
 * The topics of a root as a streaming query reads them, micro-batch by micro-batch: finds new commits, and gives the offsets of the next
 * micro-batch. Not for several threads at once.
 */
public final class TopicStream {
  private final ReadableTopics root;
  private final Options options;
  private final StreamStart start;
  private final Clock clock;
  private final LaterState.DataLoss dataLoss;
  private final StreamTopics topics;
  private final CommitReader reader;
  private final WalkedSegments walked = new WalkedSegments();

  /** Where to stop, by topic id; null if the stream goes on for ever. */
  private Map<String, State> last;

  /** The last look: one for each trigger, and the same for as long as nothing is committed. */
  private Look look = new Look(List.of());

  /** The end of the last micro-batch that {@link #next} gave; null before the first. The last look reached at least as far. */
  private StreamOffsets found;

  /** When the last micro-batch with something to read began. */
  private OptionalLong firedMs = OptionalLong.empty();

  /** The partition that comes first where a micro-batch cannot have something of all; −1 if that is not known yet. */
  private int turn = -1;

  private final LostOffsets lost = new LostOffsets();

  /**
   * @param options of a stream
   * @param start the start of the query by its checkpoint
   */
  public TopicStream(ReadableTopics root, Options options, StreamStart start, Clock clock) {
    this.root = root;
    this.options = options;
    this.start = start;
    this.clock = clock;
    this.dataLoss = new LaterState.DataLoss(options.bool("failOnDataLoss"));
    this.reader = new CommitReader(root, options.milliseconds("maxPollDelay"), clock);
    this.topics = new StreamTopics(root, reader, options, start, clock, dataLoss);
    List<String> unused = Bound.givenStarts(options);
    if (start.first().isPresent() && !unused.isEmpty()) {
      Warnings.inform(TopicStream.class, "the query goes on where its checkpoint {} says; without effect: {}", start.checkpoint(),
          String.join(", ", unused));
    }
  }

  /** Before {@link #next}, without a lock: waits while nothing is committed, by the pace of {@link CommitReader}. */
  public void await() {
    reader.await();
  }

  /** A micro-batch of the query has ended. */
  public void ended() {
    reader.busy();
  }

  /** From now on, goes no further than the present end, and waits no longer. @throws PartlogException as {@link StreamTopics#look} */
  public void stopAtNewest() {
    reader.end();
    last = new HashMap<>();
    look().topics.forEach(topic -> last.put(topic.state().topicId(), topic.state()));
  }

  /** An idle query polls many times a second: the findings stay while nothing is committed. */
  private Look look() {
    List<Subscription.Subscribed> found = topics.look();
    look = found == look.topics ? look : new Look(found);
    return look;
  }

  /** The topics of a look, as far as the stream may read them. A stream with an end reads a topic up to its state at that end. */
  private List<Subscription.Subscribed> readable(Look look) {
    List<Subscription.Subscribed> readable = new ArrayList<>();
    for (Subscription.Subscribed topic : look.topics) {
      State until = last == null ? topic.state() : last.get(topic.state().topicId());
      if (until != null) {
        readable.add(topic.in(until));
      }
    }
    return readable;
  }

  /**
   * The topics that may be read after an offset. An offset that names a topic means the topic that was noted. Another topic of its name
   * waits until an offset in Spark's log does not name it.
   */
  private List<Subscription.Subscribed> readable(Look look, StreamOffsets from) {
    return readable(look).stream().filter(topic -> !from.topics().contains(topic.state().topic()) || start.isOf(topic.state())).toList();
  }

  /**
   * Where the query begins: what its checkpoint says, or its options if it is new.
   *
   * @throws PartlogException what {@link OffsetBounds#resolveStarts} and {@link StreamTopics#look} throw
   */
  public StreamOffsets initial() throws IOException {
    if (start.first().isEmpty()) {
      TreeMap<String, QueryStart.Topic> begun = new TreeMap<>();
      List<Subscription.Subscribed> readable = readable(look());
      for (Subscription.Subscribed topic : readable) {
        begun.put(topic.state().topic(), new QueryStart.Topic(topic.state().topicId(), new TreeMap<>()));
      }
      for (Selection.OffsetRange range : new OffsetBounds(root, options).resolveStarts(readable)) {
        begun.get(range.state().topic()).offsets().put(range.partition(), range.start());
      }
      start.add(new QueryStart(begun));
    }
    TreeMap<String, TreeMap<Integer, Long>> offsets = new TreeMap<>();
    start.first().orElseThrow().forEach((topic, about) -> {
      // Another topic may have the name now, and be noted: it begins at its own beginning.
      if (!about.offsets().isEmpty() && about.equals(start.topics().get(topic))) {
        offsets.put(topic, new TreeMap<>(about.offsets()));
      }
    });
    return new StreamOffsets(offsets);
  }

  /** Spark has logged an offset: then the query has begun. @throws PartlogException QUERY_CHECKPOINT_CORRUPT */
  public void requireBegun() {
    start.requireFirst();
  }

  /** The ends of the topics, as the last look found them. */
  public StreamOffsets newest() {
    return look.ends();
  }

  /**
   * Where the next micro-batch ends, which begins at {@code from}; {@code from} itself, the same object, if there is nothing to read.
   *
   * @throws PartlogException what {@link StreamTopics#look} and {@link StreamTopics#subscribed} throw; if a limit cuts segments,
   *     SEGMENT_MISSING, BATCH_CORRUPT, SEGMENT_CORRUPT
   */
  public StreamOffsets next(StreamOffsets from, TriggerLimits limits) throws IOException {
    StreamOffsets next = found(from, limits);
    reader.refreshed(!next.equals(from));
    return next;
  }

  private StreamOffsets found(StreamOffsets from, TriggerLimits limits) throws IOException {
    while (true) {
      Look now = look();
      if (from.equals(now.allRead)) {
        return from;
      }
      StreamOffsets read = topics.subscribed(from);
      List<Subscription.Subscribed> readable = readable(now, from);
      topics.note(readable.stream().map(Subscription.Subscribed::state).toList());
      List<Selection.OffsetRange> waiting = waiting(now, read, readable);
      if (after(read, waiting).equals(from)) {
        now.allRead = from;
        return from;
      }
      if (last == null && !fires(limits, waiting)) {
        return read.equals(from) ? from : read;
      }
      try {
        StreamOffsets next = after(read, taken(Barrier.before(waiting), limits));
        firedMs = OptionalLong.of(clock.millis());
        found = next;
        return next;
      } catch (SegmentGone gone) {
        requireLater(gone, waiting);
      }
    }
  }

  /** After a data file is gone, other files hold its offsets, or the offsets have expired. @throws PartlogException if neither is so */
  private void requireLater(SegmentGone gone, List<Selection.OffsetRange> waiting) throws IOException {
    State known = waiting.stream()
        .map(Selection.OffsetRange::state)
        .filter(state -> state.topic().equals(gone.topic()))
        .findFirst()
        .orElseThrow();
    if (topics.isThere(gone.topic())) {
      new LaterState(root, dataLoss).after(gone, known, Long.MAX_VALUE);
    }
  }

  private long begin(StreamOffsets from, String topic, int partition) {
    Long read = from.of(topic).get(partition);
    return read == null ? start.offset(topic, partition) : read;
  }

  /** The offsets that may be read of each partition, in the newest state: merges may have replaced the files of earlier ones. */
  private List<Selection.OffsetRange> waiting(Look look, StreamOffsets from, List<Subscription.Subscribed> readable) {
    List<Selection.OffsetRange> waiting = new ArrayList<>();
    Map<String, State> newest = new HashMap<>();
    look.topics.forEach(topic -> newest.put(topic.state().topic(), topic.state()));
    for (Subscription.Subscribed topic : readable) {
      State state = newest.get(topic.state().topic());
      for (int partition : topic.partitions()) {
        long begin = begin(from, state.topic(), partition);
        topics.requireEnd(state, partition, begin);
        // Offsets that have expired count for nothing if that is not an error.
        long first = dataLoss.isError() ? begin : Math.max(begin, state.start(partition));
        waiting.add(new Selection.OffsetRange(state, partition, first, Math.max(first, topic.state().end(partition))));
      }
    }
    return waiting;
  }

  /** The batches that were met so far: the plan of a micro-batch need not walk to them again. */
  public WalkedSegments walked() {
    return walked;
  }

  private boolean fires(TriggerLimits limits, List<Selection.OffsetRange> waiting) {
    double offsets = waiting.stream().mapToDouble(range -> range.end() - range.start()).sum();
    return offsets >= limits.offsetsMin() || firedMs.isEmpty() || clock.millis() - firedMs.getAsLong() >= limits.delayMs();
  }

  private List<Selection.OffsetRange> taken(List<Selection.OffsetRange> waiting, TriggerLimits limits) throws IOException {
    if (waiting.isEmpty()) {
      return waiting;
    }
    if (turn < 0 || turn >= waiting.size()) {
      // The sum moves on with every offset that is read, so a query that is often restarted does not begin at one partition for ever.
      turn = (int) Math.floorMod(waiting.stream().mapToLong(Selection.OffsetRange::start).sum(), (long) waiting.size());
    }
    List<Selection.OffsetRange> within = waiting;
    int next = turn;
    if (limits.bytesMax() < Long.MAX_VALUE) {
      try (ByteShares bytes = new ByteShares(root, waiting, limits.bytesMax(), turn, walked)) {
        within = bytes.ranges();
        next = bytes.nextTurn();
      }
    }
    OffsetShares offsets = new OffsetShares(within.stream().mapToLong(range -> range.end() - range.start()).toArray(), limits.offsetsMax(),
        turn);
    turn = offsets.nextTurn() == turn ? next : offsets.nextTurn();
    List<Selection.OffsetRange> taken = new ArrayList<>();
    for (int i = 0; i < waiting.size(); i++) {
      Selection.OffsetRange range = waiting.get(i);
      taken.add(new Selection.OffsetRange(range.state(), range.partition(), range.start(), range.start() + offsets.shares()[i]));
    }
    return taken;
  }

  /** A partition is left out if nothing is or was read from it: to name it would look like something to read. */
  private StreamOffsets after(StreamOffsets from, List<Selection.OffsetRange> taken) {
    TreeMap<String, TreeMap<Integer, Long>> next = new TreeMap<>();
    for (String topic : from.topics()) {
      next.put(topic, new TreeMap<>(from.of(topic)));
    }
    for (Selection.OffsetRange range : taken) {
      String topic = range.state().topic();
      if (from.of(topic).containsKey(range.partition()) || range.end() > start.offset(topic, range.partition())) {
        next.computeIfAbsent(topic, first -> new TreeMap<>()).put(range.partition(), range.end());
      }
    }
    return new StreamOffsets(next);
  }

  /**
   * The offsets of a micro-batch, as the newest states have them. The planned topics are read, also if the options no longer name them.
   * A topic that is gone, or has been replaced, has no record left to read.
   *
   * <p>Where each look takes requests, the states of the look that ended at {@code to} will do: a moment ago they were the newest. If a
   * topic has gone since, the tasks see that by its files. Such a task throws TOPIC_NOT_FOUND, not
   * STREAM_TOPIC_GONE. Without failOnDataLoss, {@code dataLoss} does not count the records.
   *
   * @throws PartlogException STREAM_TOPIC_REPLACED, STREAM_TOPIC_GONE, OFFSETS_OUT_OF_RANGE, OFFSETS_EXPIRED, QUERY_CHECKPOINT_CORRUPT
   */
  public List<Selection.OffsetRange> ranges(StreamOffsets from, StreamOffsets to) {
    List<Selection.OffsetRange> ranges = new ArrayList<>();
    lost.begin(to);
    for (String topic : to.topics()) {
      Optional<State> state = root.isRemote() && to.equals(found) ? topics.readAsFound(topic) : topics.read(topic);
      to.of(topic).forEach((partition, end) -> {
        long begin = begin(from, topic, partition);
        if (begin > end) {
          throw start.corrupt(null, "",
              "a micro-batch of topic " + topic + ", partition " + partition + " goes from offset " + begin + " to " + end);
        }
        state.ifPresentOrElse(exists -> ranges.add(range(exists, partition, begin, end)), () -> lost.add(end - begin));
      });
    }
    return ranges;
  }

  private Selection.OffsetRange range(State state, int partition, long begin, long end) {
    topics.requireEnd(state, partition, end);
    long first = Math.min(end, Math.max(begin, state.start(partition)));
    if (first > begin) {
      dataLoss.report(PartlogException.of("OFFSETS_EXPIRED", "offset", begin, "end", first, "count", first - begin, "topic", state.topic(),
          "partition", partition, "root", root.location(), "start", state.start(partition)));
      lost.add(first - begin);
    }
    return new Selection.OffsetRange(state, partition, first, end);
  }

  /**
   * The metrics in Spark's progress, from the findings of the last look.
   *
   * @param read null if nothing was read yet
   */
  public Map<String, String> metrics(StreamOffsets read) {
    // Spark repeats a micro-batch without a look for more: then it is not known how much is left.
    Map<String, String> metrics = read == null || look.topics.isEmpty() ? new TreeMap<>() : Lag.metrics(unread(read));
    metrics.put("dataLoss", Long.toString(lost.total()));
    StringJoiner ids = new StringJoiner(",", "{", "}");
    start.topics().forEach((topic, about) -> ids.add("\"" + topic + "\":\"" + about.id() + "\""));
    metrics.put("topicIds", ids.toString());
    return metrics;
  }

  private List<Selection.OffsetRange> unread(StreamOffsets read) {
    List<Selection.OffsetRange> unread = new ArrayList<>();
    for (Subscription.Subscribed topic : look.topics) {
      State state = topic.state();
      if (read.topics().contains(state.topic()) && !start.isOf(state)) {
        continue;
      }
      for (int partition : topic.partitions()) {
        long end = state.end(partition);
        unread.add(new Selection.OffsetRange(state, partition, Math.min(end, begin(read, state.topic(), partition)), end));
      }
    }
    return unread;
  }

  /** {@code subscribe=orders} */
  @Override
  public String toString() {
    return topics.toString();
  }

  /** The topics as one look found them, and values that follow from the topics. */
  private static final class Look {
    private final List<Subscription.Subscribed> topics;

    /** The offsets of a query that has read all topics of this look; null if no query has. */
    private StreamOffsets allRead;
    private StreamOffsets ends;

    private Look(List<Subscription.Subscribed> topics) {
      this.topics = topics;
    }

    /** Made when a caller asks first. */
    private StreamOffsets ends() {
      if (ends == null) {
        TreeMap<String, TreeMap<Integer, Long>> found = new TreeMap<>();
        for (Subscription.Subscribed topic : topics) {
          for (int partition : topic.partitions()) {
            found.computeIfAbsent(topic.state().topic(), first -> new TreeMap<>()).put(partition, topic.state().end(partition));
          }
        }
        ends = new StreamOffsets(found);
      }
      return ends;
    }
  }

  /** How many offsets had expired; each micro-batch counts once, however often it is planned. */
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
