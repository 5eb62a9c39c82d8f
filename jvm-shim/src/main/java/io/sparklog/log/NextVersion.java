package io.sparklog.log;

import io.sparklog.json.Damaged;
import io.sparklog.routing.Routing;
import io.sparklog.routing.RoutingChange;
import io.sparklog.routing.SlotTable;
import io.sparklog.segment.Segment;
import io.sparklog.spec.Invariant;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * The next version of a topic in the making. It equals the state before it, except for the values that are set here. Whether it may follow
 * that state, {@link Committer} checks as readers do. FORMAT.md section 5.
 */
public final class NextVersion {
  /** The state that it is the version after; null for version 0. */
  private final State before;

  private final String topic;
  private final String topicId;
  private final long number;
  private final String previous;
  private final String operation;
  private long horizon;
  private long boundary;
  private boolean deleted;
  private Features features = Features.NONE;
  private RoutingChange routing;
  private Rebuilt rebuilt;
  private final Map<String, String> config = new TreeMap<>();
  private long[] starts;
  private long[] ends;
  private final List<Version.Removed> removed = new ArrayList<>();
  private final List<Segment> added = new ArrayList<>();
  private Query query;
  private List<Producers.Sent> sent = List.of();

  /**
   * The version after {@code newest}, whose topic exists.
   *
   * @param operation its operation, in one word for people, such as {@code write}
   */
  public NextVersion(State newest, String operation) {
    this(newest, newest.topicId(), operation, newest.starts(), newest.ends());
  }

  /** Version 0, which creates the topic. */
  public NextVersion(String topic, String topicId, TopicConfig config, String operation) {
    before = null;
    this.topic = topic;
    this.topicId = topicId;
    number = 0;
    previous = null;
    this.operation = operation;
    this.config.putAll(config.entries());
    starts = new long[config.partitions()];
    ends = new long[config.partitions()];
    begin(config);
  }

  /** The version after {@code deleted}, which begins another topic of the same name. @param topicId a new identity */
  public NextVersion(State deleted, String topicId, TopicConfig config, String operation) {
    this(deleted, topicId, operation, new long[config.partitions()], new long[config.partitions()]);
    this.config.putAll(config.entries());
    begin(config);
  }

  /**
   * The version that begins a topic.
   *
   * @param deleted the state of an earlier topic of the name, whose Kafka view is this topic's now; empty without an earlier topic
   * @param topicId a new identity
   * @throws PartlogException FOREIGN_SEGMENTS
   */
  public static NextVersion beginning(TopicLog log, Optional<State> deleted, String topicId, TopicConfig config, String operation)
      throws IOException {
    if (deleted.isPresent()) {
      ForeignSegments.removeLeft(log, deleted.get(), config.partitions());
      return new NextVersion(deleted.get(), topicId, config, operation);
    }
    ForeignSegments.requireNone(log, 0, config.partitions());
    return new NextVersion(log.topic(), topicId, config, operation);
  }

  private NextVersion(State before, String topicId, String operation, long[] starts, long[] ends) {
    this.before = before;
    topic = before.topic();
    this.topicId = topicId;
    number = before.version() + 1;
    previous = before.hash();
    this.operation = operation;
    horizon = before.horizon();
    boundary = before.boundary();
    features = extendsTopic() ? before.head().fields().features() : Features.NONE;
    this.starts = starts;
    this.ends = ends;
  }

  /** The version that deletes the topic of {@code newest}, and does nothing else. */
  public static NextVersion deleting(State newest) {
    NextVersion next = new NextVersion(newest, "delete");
    next.deleted = true;
    next.features = Features.NONE;
    // A write that was planned before it must not commit to a topic that begins after it, and files below it will be deleted.
    next.horizon = next.number + 1;
    next.boundary = next.number;
    return next;
  }

  /** Notes the query that this version applies. @param query may be null */
  public NextVersion apply(Query query) {
    this.query = query;
    return this;
  }

  /** Notes the batches of producers among the batches that this version adds. */
  public NextVersion send(Sequences sequences) {
    sent = sequences.sent();
    features = sent.isEmpty() ? features : features.and(List.of(Feature.PRODUCERS));
    return this;
  }

  /** Adds a segment at the end of its partition. */
  public void append(Segment segment) {
    Invariant.require(segment.base() == 0 && segment.partition() < ends.length,
        () -> "a segment of " + this + " to be placed does not count from offset 0, or has no partition: " + segment);
    Segment placed = segment.at(ends[segment.partition()]);
    ends[segment.partition()] = placed.end();
    added.add(placed);
  }

  /** Puts {@code added} in the place of live segments that hold the same offsets. */
  public NextVersion replace(List<Segment> removed, List<Segment> added) {
    Invariant.require(records(removed) == records(added),
        () -> this + " replaces " + records(removed) + " records with " + records(added) + ": " + removed + " with " + added);
    removed.forEach(this::remove);
    this.added.addAll(added);
    return this;
  }

  private static long records(List<Segment> segments) {
    return segments.stream().mapToLong(Segment::records).sum();
  }

  private void remove(Segment segment) {
    removed.add(new Version.Removed(segment.partition(), segment.file(), segment.position()));
  }

  /** Raises the log start offset of a partition, unless it is as high, and removes the segments that are wholly below it. */
  public NextVersion raiseStart(int partition, long offset) {
    Invariant.require(offset <= ends[partition],
        () -> this + " raises the log start offset of partition " + partition + " to " + offset + ", above its end " + ends[partition]);
    starts[partition] = Math.max(starts[partition], offset);
    before.segments(partition).stream().takeWhile(segment -> segment.end() <= starts[partition]).forEach(this::remove);
    return this;
  }

  /** Changes the configuration. Partitions that are added by it start and end at 0. */
  public NextVersion configure(Map<String, String> changes) {
    config.putAll(changes);
    if (changes.containsKey(TopicConfig.PARTITIONS)) {
      int partitions = Integer.parseInt(changes.get(TopicConfig.PARTITIONS));
      Invariant.require(partitions >= ends.length, () -> this + " takes partitions away: " + ends.length + " become " + partitions);
      starts = Arrays.copyOf(starts, partitions);
      ends = Arrays.copyOf(ends, partitions);
    }
    return this;
  }

  /**
   * The version that re-routes the topic of {@code newest}.
   *
   * @param weights by partition; partitions that the topic lacks are added
   * @param moves of slots, with which partitions have these weights
   * @param config that changes too
   * @throws PartlogException FOREIGN_SEGMENTS, REROUTES_TOO_MANY
   */
  public static NextVersion rerouting(TopicLog log, State newest, int[] weights, List<SlotTable.SlotMoves> moves,
      Map<String, String> config) throws IOException {
    Routing routing = newest.routing();
    NextVersion next = new NextVersion(newest, "reroute").configure(config);
    if (weights.length > newest.partitions()) {
      ForeignSegments.requireNone(log, newest.partitions(), weights.length);
      next.configure(Map.of(TopicConfig.PARTITIONS, Integer.toString(weights.length)));
    }
    if (!routing.fits(weights.length, moves)) {
      throw PartlogException.of("REROUTES_TOO_MANY", "topic", log.topic(), "root", log.store().root(), "count", routing.past().size());
    }
    return next.routing(routing.reroute(weights, moves));
  }

  /** Changes where keys go. Partitions that a re-route adds must be set before, and its version must not have records of a write. */
  public NextVersion routing(RoutingChange change) {
    if (change instanceof RoutingChange.Reroute reroute) {
      Invariant.require(reroute.weights().length == ends.length && added.isEmpty(),
          () -> this + " has " + ends.length + " partitions and " + added.size() + " segments, and re-routes " + reroute.weights().length);
      features = features.and(List.of(Feature.SLOTS));
    }
    routing = change;
    return this;
  }

  private void begin(TopicConfig config) {
    if (config.bindsSlots()) {
      features = features.and(List.of(Feature.SLOTS, Feature.UNBOUND));
      routing(config.routing().binding(List.of()));
    }
  }

  /** Notes whose records a version has that begins a topic. @param origin may be null: they are its own */
  public NextVersion rebuilt(Rebuilt origin) {
    Invariant.require(origin == null || !extendsTopic(), () -> this + " does not begin the topic");
    rebuilt = origin;
    return this;
  }

  /** Writes that were planned at a lower version must not commit from now on; a lower horizon changes nothing. */
  public NextVersion raiseHorizon(long version) {
    horizon = Math.max(horizon, version);
    return this;
  }

  /** Version files below it may be deleted from now on; a lower boundary changes nothing. */
  public NextVersion raiseBoundary(long version) {
    boundary = Math.max(boundary, version);
    return this;
  }

  /** The state that this would make of the one before it, which there must be. Nothing is committed by it. */
  public State preview() {
    Version version = version(topicId, before.timeMs());
    Replay replay = new Replay(before);
    try {
      replay.apply(version, version.toBytes());
    } catch (Damaged e) {
      throw new IllegalStateException(e);
    }
    return replay.build();
  }

  /** The finished version. @param timeMs when it is written, ms since 1970 */
  Version version(String txn, long timeMs) {
    requireNext();
    TopicHead head = new TopicHead(features, topic, topicId, number, timeMs, horizon, boundary, deleted);
    State.Head known = extendsTopic() ? before.head() : null;
    return new Version(head, txn, previous, operation, query, routing, rebuilt, sent, config,
        changed(known == null ? new long[0] : known.starts(), starts), changed(known == null ? new long[0] : known.ends(), ends), removed,
        added, Further.NONE);
  }

  private boolean extendsTopic() {
    return before != null && topicId.equals(before.topicId());
  }

  /** The offsets that are others than before, by partition. @param from may be of fewer partitions: the others were at 0 */
  private static Map<Integer, Long> changed(long[] from, long[] to) {
    Map<Integer, Long> changed = new TreeMap<>();
    for (int p = 0; p < to.length; p++) {
      if (to[p] != (p < from.length ? from[p] : 0)) {
        changed.put(p, to[p]);
      }
    }
    return changed;
  }

  /** Nothing falls that may only rise, and no log start offset is above its end. */
  private void requireNext() {
    for (int p = 0; p < ends.length; p++) {
      int partition = p;
      Invariant.require(starts[p] <= ends[p],
          () -> "in " + this + ", partition " + partition + " starts at " + starts[partition] + ", above its end " + ends[partition]);
    }
    if (before == null) {
      return;
    }
    requireRisen("horizon", before.horizon(), horizon, number + 1);
    requireRisen("boundary", before.boundary(), boundary, number);
    for (int p = 0; extendsTopic() && p < before.partitions(); p++) {
      int partition = p;
      Invariant.require(starts[p] >= before.start(p) && ends[p] >= before.end(p),
          () -> this + " lowers the log start or the end of partition " + partition + ": " + starts[partition] + " and " + ends[partition]);
    }
  }

  private void requireRisen(String what, long from, long to, long most) {
    Invariant.require(to == from || to > from && to <= most, () -> this + " takes the " + what + " from " + from + " to " + to);
  }

  @Override
  public String toString() {
    return "version " + number + " of topic " + topic + ", a " + operation;
  }
}
