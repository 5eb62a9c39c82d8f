package io.sparklog.log;

import io.sparklog.routing.PastReroute;
import io.sparklog.routing.Router;
import io.sparklog.routing.Routing;
import io.sparklog.routing.SlotTable;
import io.sparklog.segment.Segment;
import io.sparklog.spec.Invariant;
import io.sparklog.spec.PartlogException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/** The committed state of a topic at one version. Never changes. FORMAT.md sections 5 and 6. */
public final class State {
  private final Head head;
  private final long checkpointVersion;
  private final SortedMap<String, Query.Applied> queries;
  private final List<List<Segment>> segments;
  private final String tag;
  private final long tagged;
  private final boolean isRoutingKnown;

  /**
   * The topic after the newest version, or after the version of a checkpoint, without its segments and queries.
   *
   * @param fields that the file itself gives
   * @param hash of the version's file
   * @param txn of the write that made the version; null after a checkpoint, which does not say
   * @param producers null if they are not known: readers do not load them
   * @param routing is not used if a feature or a setting that decides where keys go is unknown
   * @param starts log start offsets by partition
   * @param ends end offsets (exclusive) by partition
   * @param further goes into the next checkpoint
   */
  record Head(TopicHead fields, String hash, String txn, Producers producers, TopicConfig config, Routing routing, long[] starts,
      long[] ends, Further further) {
    /** Whether this version of sparklog knows all features that bind these programs, and, of a topic that exists, all settings. */
    boolean areKnownTo(Feature.Binds programs) {
      return fields.features().areKnownTo(programs) && (fields.deleted() || config.areKnownTo(programs));
    }

    /** Whether the newest version has these bytes. */
    boolean isOf(byte[] bytes) {
      return hash.equals(Version.sha256(bytes));
    }

    /** Whether a checkpoint with this head agrees with {@code version}, the version that it is of. FORMAT.md section 6. */
    boolean agreesWith(Version version) {
      return fields.agreesWith(version.head()) && has(starts, version.starts()) && has(ends, version.ends())
          && (version.routing() == null || !areKnownTo(Feature.Binds.KEY_READERS) || routing.agreesWith(version.routing()))
          && config.entries().entrySet().containsAll(version.config().entrySet());
    }

    private static boolean has(long[] offsets, Map<Integer, Long> named) {
      return named.entrySet().stream().allMatch(each -> each.getKey() < offsets.length && offsets[each.getKey()] == each.getValue());
    }

    /** Refuses the topic to programs that an unknown feature or setting binds. @throws PartlogException FORMAT_TOO_NEW */
    void requireKnownTo(Feature.Binds programs) {
      fields.features().requireKnownTo(programs);
      if (!fields.deleted()) {
        config.requireKnownTo(programs, fields.features().location());
      }
    }
  }

  State(Head head, long checkpointVersion, SortedMap<String, Query.Applied> queries, List<List<Segment>> segments, String tag,
      long tagged) {
    this.head = head;
    this.checkpointVersion = checkpointVersion;
    this.queries = queries;
    this.segments = segments;
    this.tag = tag;
    this.tagged = tagged;
    this.isRoutingKnown = head.areKnownTo(Feature.Binds.KEY_READERS);
    int partitions = head.config().partitions();
    Invariant.require(segments.size() == partitions && head.starts().length == partitions && head.ends().length == partitions,
        () -> this + " has " + partitions + " partitions, segments of " + segments.size() + ", log starts of " + head.starts().length
            + " and ends of " + head.ends().length);
  }

  public String topic() {
    return head.fields().topic();
  }

  public String topicId() {
    return head.fields().topicId();
  }

  public long version() {
    return head.fields().version();
  }

  /** Whether the newest version deleted the topic: it has no segments and no queries then, and the next version begins another one. */
  public boolean isDeleted() {
    return head.fields().deleted();
  }

  /** When the newest version was written, by its writer's clock, ms since 1970. */
  public long timeMs() {
    return head.fields().time();
  }

  public TopicConfig config() {
    return head.config();
  }

  /** The configuration, for a writer to another topic. @throws PartlogException FORMAT_TOO_NEW if a value in it is unknown */
  public TopicConfig settingsOfWriters() {
    config().requireKnownTo(Feature.Binds.WRITERS, head.fields().features().location());
    return config();
  }

  public int partitions() {
    return head.config().partitions();
  }

  /** Whether the topic has the feature {@link Feature#PRODUCERS}. */
  boolean hasProducers() {
    return head.fields().features().has(Feature.PRODUCERS);
  }

  /** Whether the newest batches of producers are known. Only writers need them: see {@link TopicLog#knowing}. */
  public boolean knowsProducers() {
    return head.producers() != null;
  }

  /** The newest batches of producers, which must be known; empty without the feature. */
  Producers producers() {
    Invariant.require(knowsProducers(), () -> "the producers of " + this + " are not known");
    return head.producers();
  }

  /** This state with an empty list of producers: the topic lacks the feature. */
  State withoutProducers() {
    Head known = new Head(head.fields(), head.hash(), head.txn(), Producers.NONE, head.config(), head.routing(), head.starts(), head.ends(),
        head.further());
    return new State(known, checkpointVersion, queries, segments, tag, tagged);
  }

  /** This state, for a program that writes to the topic, also in a dry run. @throws PartlogException FORMAT_TOO_NEW */
  public State forWriters() {
    head.requireKnownTo(Feature.Binds.WRITERS);
    return this;
  }

  /** Whether this version of sparklog knows all that decides where keys go. Otherwise it reads the topic by offset only. */
  public boolean isRoutingKnown() {
    return isRoutingKnown;
  }

  /** How the topic routes and has routed. @throws PartlogException FORMAT_TOO_NEW; so all the methods about keys here */
  public Routing routing() {
    if (!isRoutingKnown) {
      head.requireKnownTo(Feature.Binds.KEY_READERS);
    }
    return head.routing();
  }

  /** Whether a table of slots gives each key its partition, which a partitioner of Kafka's clients does not know. */
  public boolean hasSlots() {
    return config().bindsSlots() || routing().epoch() > 0;
  }

  /** Where records go by their keys: what two writers must agree on. */
  public Router router() {
    return routing().router(head.config().partitioner(), head.config().bindsSlots());
  }

  /**
   * The offset of each partition from which on records without a key are levelled. It is the log start offset, or the partition's cut of
   * the newest re-route that changed the slots of every open partition, if that cut is higher.
   */
  public long[] levelledSince() {
    long[] since = starts();
    Optional<PastReroute> last = routing().lastOfAll();
    last.ifPresent(past -> Arrays.setAll(since, p -> Math.max(since[p], past.cut(p))));
    return since;
  }

  /** The number of re-routes that an offset of a partition comes after. Only re-routes with records from before them count. */
  public int reroutesBefore(int partition, long offset) {
    return routing().after(partition, offset);
  }

  /** Whether a re-route cut the partition of a segment where the segment begins. */
  public boolean isAfterCut(Segment segment) {
    long before = Math.max(0, segment.base() - 1);
    return reroutesBefore(segment.partition(), segment.base()) > reroutesBefore(segment.partition(), before);
  }

  /** The partition whose routed segments after {@code reroutes} re-routes may have this key; {@link SlotTable#UNBOUND} if none. */
  public int home(int reroutes, byte[] key) {
    return routing().partition(head.config().partitioner(), key, reroutes);
  }

  /** The weights that the topic is to be re-routed to before the next write. There may be more weights than partitions. */
  public Optional<int[]> pendingWeights() {
    return wanted(TopicConfig.PENDING_WEIGHTS, config().usable(TopicConfig.PENDING_WEIGHTS), 0);
  }

  /** The shares of partitions in the slots that get a partition next. If this is empty, the weights are the shares. */
  public Optional<int[]> shares(long nowMs) {
    return wanted(TopicConfig.PLACEMENT_SHARES, config().usable(TopicConfig.PLACEMENT_SHARES), nowMs);
  }

  /** The numbers by partition in the value of either of these two keys. Empty if the value has no effect on this state. */
  public Optional<int[]> wanted(String key, String value, long nowMs) {
    Router router = router();
    int most = key.equals(TopicConfig.PENDING_WEIGHTS) ? Router.PARTITIONS_MAX : config().bindsSlots() ? partitions() : 0;
    return TopicConfig.wanted(value, routing().epoch(), nowMs)
        .filter(wanted -> wanted.length >= partitions() && wanted.length <= most)
        .filter(wanted -> IntStream.range(0, partitions()).allMatch(p -> wanted[p] == 0 || router.isOpen(p)))
        .filter(wanted -> Arrays.stream(wanted).anyMatch(number -> number > 0));
  }

  /** The partition that a key goes to; empty if its first record decides that. */
  public Optional<Integer> partition(byte[] key) {
    int found = routing().table().partition(head.config().partitioner(), key);
    return found == SlotTable.UNBOUND ? Optional.empty() : Optional.of(found);
  }

  /**
   * Checks that there is a partition of this number.
   *
   * @param option that names it
   * @param root for messages
   * @throws PartlogException PARTITION_NOT_FOUND
   */
  public void requirePartition(String option, String root, int partition) {
    if (!hasPartition(partition)) {
      throw PartlogException.of("PARTITION_NOT_FOUND", "option", option, "partition", partition, "topic", topic(), "root", root, "last",
          partitions() - 1);
    }
  }

  public boolean hasPartition(int partition) {
    return partition >= 0 && partition < partitions();
  }

  /** The log start offset of a partition. */
  public long start(int partition) {
    return head.starts()[partition];
  }

  /** The end offset (exclusive) of a partition. */
  public long end(int partition) {
    return head.ends()[partition];
  }

  /** The live segments of a partition, in order of base offset. The list cannot be changed. */
  public List<Segment> segments(int partition) {
    return segments.get(partition);
  }

  /** How many segments are live, in all partitions. */
  public long liveSegments() {
    return segments.stream().mapToLong(List::size).sum();
  }

  /** The segments of a partition that hold offsets of [{@code start}, {@code end}), by base offset. */
  public List<Segment> segments(int partition, long start, long end) {
    List<Segment> all = segments.get(partition);
    return start < end
        ? all.subList(count(all, segment -> segment.end() <= start), count(all, segment -> segment.base() < end))
        : List.of();
  }

  /** How many segments, the first ones of their partition, meet a condition that none after them meets. */
  static int count(List<Segment> all, Predicate<Segment> condition) {
    int low = 0;
    int high = all.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (condition.test(all.get(middle))) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /** The greatest epoch of a query that was applied, with its input; empty if none was. */
  public Optional<Query> query(String id) {
    return Optional.ofNullable(queries.get(id)).map(Query.Applied::query);
  }

  /** A write planned at a lower version must not commit. */
  public long horizon() {
    return head.fields().horizon();
  }

  /** Version files below it may be gone. */
  public long boundary() {
    return head.fields().boundary();
  }

  public String hash() {
    return head.hash();
  }

  /** The answer of {@link io.sparklog.storage.ReadStore#tag} for the file of {@link #tagged}, before it was read; null if it was absent. */
  String tag() {
    return tag;
  }

  /**
   * The version whose tag proves that no version file of this state was deleted. An earlier version than the state's own will do: files are
   * deleted lowest first.
   */
  long tagged() {
    return tagged;
  }

  /** Whether the newest version is known to be of the write {@code txn}. A state that came from a checkpoint alone does not tell. */
  boolean isOf(String txn) {
    return txn.equals(head.txn());
  }

  /** Whether there should be a checkpoint of this state: {@code versions} have passed since the newest known one. FORMAT.md section 6. */
  public boolean isCheckpointDue(int versions) {
    return isDeleted() ? checkpointVersion < version() : version() - Math.max(0, checkpointVersion) >= versions;
  }

  /** The version of the newest known checkpoint; −1 without a checkpoint. */
  public long checkpointVersion() {
    return checkpointVersion;
  }

  /** The greatest epoch of each query, by id. Cannot be changed. */
  public SortedMap<String, Query.Applied> queries() {
    return queries;
  }

  Head head() {
    return head;
  }

  /** The live segments by partition, each list in order of base offset. */
  public List<List<Segment>> segments() {
    return Collections.unmodifiableList(segments);
  }

  public long[] starts() {
    return head.starts().clone();
  }

  public long[] ends() {
    return head.ends().clone();
  }

  @Override
  public String toString() {
    return "version " + version() + " of topic " + topic();
  }

  State withCheckpoint(long version) {
    return new State(head, version, queries, segments, tag, tagged);
  }
}
