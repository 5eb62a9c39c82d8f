package io.sparklog.log;

import io.sparklog.json.Damaged;
import io.sparklog.routing.Routing;
import io.sparklog.routing.RoutingChange;
import io.sparklog.segment.Segment;
import io.sparklog.spec.Invariant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Predicate;

/** Makes states of version files: applies them one after another, and refuses a version that does not follow. FORMAT.md section 5. */
final class Replay {
  /** Null before version 0. */
  private State.Head head;
  private long checkpointVersion = -1;
  private SortedMap<String, Query.Applied> queries = new TreeMap<>();
  private final List<List<Segment>> segments = new ArrayList<>();

  /** Whether the queries belong to a state and must be copied before they are changed. */
  private boolean queriesShared;

  /** By partition, whether its list belongs to a state and must be copied before it is changed. */
  private final List<Boolean> shared = new ArrayList<>();

  private String tag;
  private long tagged = -1;

  /** Whether states know the producers of the topic. */
  private final boolean knowsProducers;

  /** Begins before version 0. */
  Replay(boolean knowsProducers) {
    this.knowsProducers = knowsProducers;
  }

  /** Continues from {@code state}, which stays as it is. */
  Replay(State state) {
    head = state.head();
    knowsProducers = state.knowsProducers();
    checkpointVersion = state.checkpointVersion();
    tag = state.tag();
    tagged = state.tagged();
    queries = state.queries();
    queriesShared = true;
    segments.addAll(state.segments());
    segments.forEach(list -> shared.add(true));
  }

  /** Begins at a checkpoint. {@code live} are the live segments by partition. */
  Replay(State.Head head, Map<String, Query.Applied> queries, List<List<Segment>> live) throws Damaged {
    this.head = head;
    knowsProducers = head.producers() != null;
    checkpointVersion = head.fields().version();
    this.queries.putAll(queries);
    Damaged.unless(head.config().partitions() == head.ends().length, "config partitions differs from the number of ends");
    for (int p = 0; p < head.ends().length; p++) {
      requireWhole(p, live.get(p), head.starts()[p], head.ends()[p]);
      segments.add(Collections.unmodifiableList(live.get(p)));
      shared.add(true);
    }
  }

  /**
   * Notes the tag of a version's file. The version is the last applied version, the version of the checkpoint, or an earlier version from
   * which all versions were applied.
   */
  void tag(String tag, long version) {
    this.tag = tag;
    tagged = version;
  }

  /** The version whose tag is noted; −1 without a tag. */
  long tagged() {
    return tagged;
  }

  long nextVersion() {
    return head == null ? 0 : head.fields().version() + 1;
  }

  /** The topic after the version that was applied last; null before version 0. */
  State.Head head() {
    return head;
  }

  /** Whether {@code version} was written as the successor of the version that was applied last. */
  boolean precedes(Version version) {
    return head == null
        ? version.version() == 0
        : head.hash().equals(version.previous()) && head.fields().topicId().equals(version.head().topicId()) != begins();
  }

  /** Whether the next version begins a topic: nothing is there before it but the numbers of versions. */
  private boolean begins() {
    return head == null || head.fields().deleted();
  }

  void apply(Version version, byte[] bytes) throws Damaged {
    requireNext(version);
    boolean begins = begins();
    if (begins) {
      segments.clear();
      shared.clear();
    }
    TopicConfig config = config(version, begins);
    int partitions = config.partitions();
    long[] starts = after(begins ? new long[0] : head.starts(), version.starts(), partitions, "the log start offset");
    long[] ends = after(begins ? new long[0] : head.ends(), version.ends(), partitions, "the end");
    requireFields(version, begins, starts, ends);
    Routing routing = routing(version, begins, config, starts);
    while (segments.size() < partitions) {
      segments.add(new ArrayList<>());
      shared.add(false);
    }
    Producers producers = replaceSegments(version, begins, config, starts, ends);
    boolean ended = version.head().deleted();
    if (ended) {
      queries = new TreeMap<>();
      queriesShared = false;
      segments.replaceAll(live -> List.of());
      Collections.fill(shared, true);
    }
    forget(version, config.transactionRetentionMs());
    if (version.query() != null) {
      ownQueries().merge(version.query().id(), new Query.Applied(version.query(), version.head().time()),
          (before, applied) -> applied.query().epoch() >= before.query().epoch() ? applied : before);
    }
    head = new State.Head(version.head(), Version.sha256(bytes), version.txn(), producers, config, routing, ended ? ends : starts, ends,
        ended ? Further.NONE : begins ? version.further() : head.further().and(version.further()));
  }

  private void requireNext(Version version) throws Damaged {
    Damaged.unless(precedes(version), "it does not follow version " + (version.version() - 1));
    if (head != null) {
      Damaged.unless(version.head().horizon() >= head.fields().horizon(), "the horizon falls");
      Damaged.unless(version.head().boundary() >= head.fields().boundary(), "the boundary falls");
    }
  }

  private TopicConfig config(Version version, boolean begins) throws Damaged {
    TreeMap<String, String> settings = new TreeMap<>(begins ? Map.of() : head.config().entries());
    settings.putAll(version.config());
    TopicConfig config = new TopicConfig(settings);
    Damaged.unless(config.partitions() >= segments.size(), "the number of partitions falls");
    return config;
  }

  private void requireFields(Version version, boolean begins, long[] starts, long[] ends) throws Damaged {
    for (int p : version.starts().keySet()) {
      Damaged.unless(starts[p] <= ends[p], "the log start offset of partition " + p + " is above its end");
    }
    Damaged.unless(version.rebuilt() == null || begins && version.rebuilt().leads(starts, ends),
        "it is of a topic that was rebuilt, and begins none, or field passed does not lead from its starts to its ends");
    Damaged.unless(
        begins || version.head().deleted()
            || version.head().features().words().entrySet().containsAll(head.fields().features().words().entrySet()),
        "it lacks a feature that the topic has");
  }

  /** The routing after a version; not used if this program does not know all that decides where keys go, or the topic ended. */
  private Routing routing(Version version, boolean begins, TopicConfig config, long[] starts) throws Damaged {
    Features features = version.head().features();
    if (version.head().deleted() || !features.areKnownTo(Feature.Binds.KEY_READERS) || !config.areKnownTo(Feature.Binds.KEY_READERS)) {
      return Routing.modulo(config.partitions());
    }
    Routing routing = (begins ? beginning(version.routing(), config) : routing(version, config.partitions())).since(starts);
    requirePlacement(config, features, routing);
    return routing;
  }

  /** Removes and adds the segments of a version. @return the producers after it; null if they are not known */
  private Producers replaceSegments(Version version, boolean begins, TopicConfig config, long[] starts, long[] ends) throws Damaged {
    BitSet changedWithin = new BitSet();
    remove(version.removed(), changedWithin);
    // A topic may begin at any offsets; partitions that are added to one begin at 0.
    long[] reached = begins ? starts.clone() : Arrays.copyOf(head.ends(), ends.length);
    for (Segment segment : version.added()) {
      Damaged.unless(segment.partition() < ends.length, () -> "it names partition " + segment.partition() + " of " + ends.length);
    }
    Producers producers = knowsProducers ? producers(version, begins, reached, config) : null;
    for (Segment segment : version.added()) {
      if (add(segment, reached)) {
        changedWithin.set(segment.partition());
      }
    }
    int wrong = Arrays.mismatch(reached, ends);
    if (wrong >= 0) {
      throw new Damaged("its segments lead partition " + wrong + " to " + reached[wrong] + ", not to its end " + ends[wrong]);
    }
    if (!version.removed().isEmpty()) {
      // Where it only appends, a partition that was whole stays whole.
      for (int p = changedWithin.nextSetBit(0); p >= 0; p = changedWithin.nextSetBit(p + 1)) {
        requireWhole(p, segments.get(p), starts[p], ends[p]);
      }
    }
    return producers;
  }

  /** Offsets by partition after a version that names {@code changed}. @param before may be of fewer partitions: the others were at 0 */
  private static long[] after(long[] before, Map<Integer, Long> changed, int partitions, String what) throws Damaged {
    if (changed.isEmpty() && before.length == partitions) {
      return before;
    }
    long[] after = Arrays.copyOf(before, partitions);
    for (Map.Entry<Integer, Long> each : changed.entrySet()) {
      int p = each.getKey();
      Damaged.unless(p < partitions, () -> "it names partition " + p + " of " + partitions);
      Damaged.unless(each.getValue() >= after[p], () -> what + " of partition " + p + " falls");
      after[p] = each.getValue();
    }
    return after;
  }

  /** Forgets the queries that have not written for so long, but for the query of the version. */
  private void forget(Version version, long retentionMs) {
    String own = version.query() == null ? null : version.query().id();
    Predicate<Query.Applied> isOver = each -> version.head().time() - each.timeMs() >= retentionMs && !each.query().id().equals(own);
    if (retentionMs >= 0 && queries.values().stream().anyMatch(isOver)) {
      ownQueries().values().removeIf(isOver);
    }
  }

  /** The queries, copied before their first change. */
  private SortedMap<String, Query.Applied> ownQueries() {
    queries = queriesShared ? new TreeMap<>(queries) : queries;
    queriesShared = false;
    return queries;
  }

  private Producers producers(Version version, boolean begins, long[] ends, TopicConfig config) throws Damaged {
    boolean has = !version.head().deleted() && version.head().features().has(Feature.PRODUCERS);
    Producers before = begins ? Producers.NONE : head.producers();
    return has ? before.after(version.producers(), ends, version.head().time(), config) : Producers.NONE;
  }

  /** Only a topic with {@code placement} = {@code on_first_write} has slots without a partition. */
  static void requirePlacement(TopicConfig config, Features features, Routing routing) throws Damaged {
    Damaged.unless(features.has(Feature.UNBOUND) == config.bindsSlots() && !(config.bindsSlots() && routing.isModulo()),
        "its placement is " + config.get(TopicConfig.PLACEMENT) + ", and its features or its routing are of the other one");
  }

  /** The routing of a topic that begins, by the field of its first version; null if that has none. */
  private static Routing beginning(RoutingChange change, TopicConfig config) throws Damaged {
    boolean binds = config.bindsSlots();
    Damaged.unless(binds ? change instanceof RoutingChange.Binding : change == null,
        "it begins a topic with placement " + config.get(TopicConfig.PLACEMENT) + (binds ? ", and is no binding" : ", and has a routing"));
    return binds ? config.routing().bound(change) : config.routing();
  }

  /** The routing after a version that neither begins nor deletes the topic. */
  private Routing routing(Version version, int partitions) throws Damaged {
    if (version.routing() == null) {
      Damaged.unless(partitions == head.ends().length, "it adds partitions without a re-route");
      return head.routing();
    }
    return head.routing().after(version.routing(), version.version(), Arrays.copyOf(head.ends(), partitions));
  }

  /** Removes segments in one walk through each partition: a merge may remove very many. @param changed gets these partitions */
  private void remove(List<Version.Removed> removed, BitSet changed) throws Damaged {
    Set<Version.Removed> left = new HashSet<>(removed);
    Damaged.unless(left.size() == removed.size(), "it removes a segment twice");
    removed.forEach(segment -> changed.set(segment.partition()));
    Set<Version.Removed> found = new HashSet<>();
    for (int p = changed.nextSetBit(0); p >= 0; p = changed.nextSetBit(p + 1)) {
      own(p).removeIf(segment -> {
        Version.Removed key = new Version.Removed(segment.partition(), segment.file(), segment.position());
        return left.contains(key) && (found.contains(key) || found.add(key));
      });
    }
    for (Version.Removed key : removed) {
      Damaged.unless(found.contains(key), () -> "it removes a segment that is not live: " + key.file() + " at byte " + key.position());
    }
  }

  /** Adds a segment. @return whether it takes the place of others, and does not extend its partition */
  private boolean add(Segment segment, long[] ends) throws Damaged {
    int p = segment.partition();
    List<Segment> live = own(p);
    if (segment.base() >= ends[p]) {
      Damaged.unless(segment.base() == ends[p],
          "a segment of partition " + p + " begins at " + segment.base() + ", not at the end " + ends[p]);
      live.add(segment);
      ends[p] = segment.end();
      return false;
    }
    // In place of segments that were removed: it must fit between its neighbours.
    int at = State.count(live, other -> other.base() < segment.base());
    Damaged.unless(at == 0 || live.get(at - 1).end() <= segment.base(),
        "a segment of partition " + p + " overlaps another at " + segment.base());
    Damaged.unless(at == live.size() ? segment.end() <= ends[p] : segment.end() <= live.get(at).base(),
        "a segment of partition " + p + " overlaps another at " + segment.base());
    live.add(at, segment);
    return true;
  }

  /** The list of a partition, copied before its first change. */
  private List<Segment> own(int partition) throws Damaged {
    Damaged.unless(partition < segments.size(), "it names partition " + partition);
    if (shared.get(partition)) {
      segments.set(partition, new ArrayList<>(segments.get(partition)));
      shared.set(partition, false);
    }
    return segments.get(partition);
  }

  private static boolean isWithin(List<Segment> live, long end) {
    return live.isEmpty() || live.get(live.size() - 1).end() <= end;
  }

  State build() {
    for (int p = 0; p < segments.size(); p++) {
      if (!shared.get(p)) {
        int partition = p;
        Invariant.require(isWithin(segments.get(p), head.ends()[p]), () -> "in version " + head.fields().version() + " of topic "
            + head.fields().topic() + ", the segments of partition " + partition + " go on after its end " + head.ends()[partition]);
        segments.set(p, Collections.unmodifiableList(segments.get(p)));
        shared.set(p, true);
      }
    }
    queries = queriesShared ? queries : Collections.unmodifiableSortedMap(queries);
    queriesShared = true;
    return new State(head, checkpointVersion, queries, new ArrayList<>(segments), tag, tagged);
  }

  /** No committed record may be missing: the live segments of a partition hold all its offsets from the log start on. */
  private static void requireWhole(int partition, List<Segment> live, long start, long end) throws Damaged {
    long at = start;
    long last = 0;
    for (Segment segment : live) {
      Damaged.unless(segment.base() >= last, () -> "segments of partition " + partition + " overlap at offset " + segment.base());
      last = segment.end();
      // Segments below the log start may still be there, or be removed.
      if (segment.end() > start) {
        Damaged.unless(segment.base() <= at && (segment.base() == at || at == start),
            "no segment of partition " + partition + " holds offset " + at);
        at = segment.end();
      }
    }
    Damaged.unless(at == end, "the segments of partition " + partition + " end at offset " + at + ", not at its end " + end);
  }
}
