package io.sparklog.log;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Predicate;

/** What is committed of a topic at one version. Never changes. FORMAT.md sections 5 and 6. */
public final class State {
  private final Head head;
  private final long checkpointVersion;
  private final TreeMap<String, Query> queries;
  private final List<List<Segment>> segments;
  private final String tag;

  /**
   * What the newest version, or the head of a checkpoint, says about the topic after it.
   *
   * @param hash of the version's file
   * @param txn of the write that made the version; null after a checkpoint, which does not say
   * @param time when the version was written, by its writer's clock, in ms since 1970
   * @param starts log start offsets by partition
   * @param ends end offsets (exclusive) by partition
   */
  record Head(String topic, String topicId, long version, String hash, String txn, long time, long horizon, long boundary,
      TopicConfig config, long[] starts, long[] ends) {}

  private State(Head head, long checkpointVersion, TreeMap<String, Query> queries, List<List<Segment>> segments, String tag) {
    this.head = head;
    this.checkpointVersion = checkpointVersion;
    this.queries = queries;
    this.segments = segments;
    this.tag = tag;
  }

  public String topic() {
    return head.topic();
  }

  public String topicId() {
    return head.topicId();
  }

  public long version() {
    return head.version();
  }

  /** When the newest version was written, by its writer's clock, ms since 1970. */
  public long timeMs() {
    return head.time();
  }

  public TopicConfig config() {
    return head.config();
  }

  public int partitions() {
    return head.config().partitions();
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
  private static int count(List<Segment> all, Predicate<Segment> condition) {
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
    return Optional.ofNullable(queries.get(id));
  }

  /** A write planned at a lower version must not commit. */
  public long horizon() {
    return head.horizon();
  }

  /** Version files below it may be gone. */
  public long boundary() {
    return head.boundary();
  }

  String hash() {
    return head.hash();
  }

  /** What {@link io.sparklog.storage.LogStore#tag} gave of the version's file, just before it was read; null if it was absent. */
  String tag() {
    return tag;
  }

  /** Whether the newest version is known to be of the write {@code txn}. A state that came from a checkpoint alone does not tell. */
  boolean isOf(String txn) {
    return txn.equals(head.txn());
  }

  /** Whether so many versions have passed since the newest known checkpoint that there should be one of this state. FORMAT.md section 6. */
  public boolean isCheckpointDue() {
    return version() - Math.max(0, checkpointVersion) >= Checkpoint.VERSIONS;
  }

  /** The version of the newest known checkpoint; −1 if there is none. */
  long checkpointVersion() {
    return checkpointVersion;
  }

  /** The greatest epoch of each query, by id. */
  SortedMap<String, Query> queries() {
    return Collections.unmodifiableSortedMap(queries);
  }

  long[] starts() {
    return head.starts().clone();
  }

  long[] ends() {
    return head.ends().clone();
  }

  State withCheckpoint(long version) {
    return new State(head, version, queries, segments, tag);
  }

  /** Applies versions one after another, and refuses one that does not follow. */
  static final class Builder {
    /** Null before version 0. */
    private Head head;
    private long checkpointVersion = -1;
    private TreeMap<String, Query> queries = new TreeMap<>();
    private final List<List<Segment>> segments = new ArrayList<>();

    /** Whether the queries belong to a state and must be copied before they are changed. */
    private boolean queriesShared;

    /** By partition, whether its list belongs to a state and must be copied before it is changed. */
    private final List<Boolean> shared = new ArrayList<>();

    private String tag;

    Builder() {}

    /** Continues from {@code state}, which stays as it is. */
    Builder(State state) {
      head = state.head;
      checkpointVersion = state.checkpointVersion;
      tag = state.tag;
      queries = state.queries;
      queriesShared = true;
      segments.addAll(state.segments);
      segments.forEach(list -> shared.add(true));
    }

    /** Begins at a checkpoint. {@code live} are the live segments by partition. */
    Builder(Head head, Map<String, Query> queries, List<List<Segment>> live) throws Damaged {
      this.head = head;
      checkpointVersion = head.version();
      this.queries.putAll(queries);
      Damaged.unless(head.config().partitions() == head.ends().length, "config partitions differs from the number of ends");
      for (int p = 0; p < head.ends().length; p++) {
        requireWhole(p, live.get(p), head.starts()[p], head.ends()[p]);
        segments.add(Collections.unmodifiableList(live.get(p)));
        shared.add(true);
      }
    }

    /** Notes the tag of the file of the version that was applied last, or that the checkpoint is of. */
    void tag(String tag) {
      this.tag = tag;
    }

    long nextVersion() {
      return head == null ? 0 : head.version() + 1;
    }

    /** Whether the version that was applied last, or that the checkpoint is of, has these bytes. */
    boolean isAt(byte[] bytes) {
      return head.hash().equals(Version.sha256(bytes));
    }

    /** Whether {@code version} was written as the successor of the version that was applied last. */
    boolean precedes(Version version) {
      return head == null ? version.version() == 0 : head.hash().equals(version.previous()) && head.topicId().equals(version.topicId());
    }

    void apply(Version version, byte[] bytes) throws Damaged {
      Damaged.unless(precedes(version), "it does not follow version " + (version.version() - 1));
      TreeMap<String, String> settings = new TreeMap<>(head == null ? Map.of() : head.config().entries());
      settings.putAll(version.config());
      TopicConfig changed = new TopicConfig(settings);
      int known = segments.size();
      Damaged.unless(changed.partitions() >= known, "the number of partitions falls");
      Damaged.unless(changed.partitions() == version.ends().length, "config partitions differs from the number of ends");
      for (int p = 0; p < known; p++) {
        Damaged.unless(version.starts()[p] >= head.starts()[p], "the log start offset of partition " + p + " falls");
        Damaged.unless(version.ends()[p] >= head.ends()[p], "the end of partition " + p + " falls");
      }
      if (head != null) {
        Damaged.unless(version.horizon() >= head.horizon(), "the horizon falls");
        Damaged.unless(version.boundary() >= head.boundary(), "the boundary falls");
      }
      for (int p = known; p < changed.partitions(); p++) {
        segments.add(new ArrayList<>());
        shared.add(false);
      }
      BitSet changedWithin = new BitSet();
      for (Version.Removed removed : version.removed()) {
        remove(removed);
        changedWithin.set(removed.partition());
      }
      // A topic may begin at any offsets; partitions that are added to one begin at 0.
      long[] ends = head == null ? version.starts().clone() : Arrays.copyOf(head.ends(), changed.partitions());
      for (Segment segment : version.added()) {
        if (add(segment, ends)) {
          changedWithin.set(segment.partition());
        }
      }
      for (int p = 0; p < ends.length; p++) {
        Damaged.unless(ends[p] == version.ends()[p],
            "its segments lead partition " + p + " to " + ends[p] + ", not to its end " + version.ends()[p]);
      }
      if (!version.removed().isEmpty()) {
        // Where it only appends, a partition that was whole stays whole.
        for (int p = changedWithin.nextSetBit(0); p >= 0; p = changedWithin.nextSetBit(p + 1)) {
          requireWhole(p, segments.get(p), version.starts()[p], version.ends()[p]);
        }
      }
      if (version.query() != null) {
        queries = queriesShared ? new TreeMap<>(queries) : queries;
        queriesShared = false;
        queries.merge(version.query().id(), version.query(), (before, applied) -> applied.epoch() >= before.epoch() ? applied : before);
      }
      head = new Head(version.topic(), version.topicId(), version.version(), Version.sha256(bytes), version.txn(), version.time(),
          version.horizon(), version.boundary(), changed, version.starts(), version.ends());
    }

    private void remove(Version.Removed removed) throws Damaged {
      boolean found = own(removed.partition())
          .removeIf(segment -> segment.position() == removed.position() && segment.file().equals(removed.file()));
      Damaged.unless(found, "it removes a segment that is not live: " + removed.file() + " at byte " + removed.position());
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
      int at = 0;
      while (at < live.size() && live.get(at).base() < segment.base()) {
        at++;
      }
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

    State build() {
      for (int p = 0; p < segments.size(); p++) {
        if (!shared.get(p)) {
          segments.set(p, Collections.unmodifiableList(segments.get(p)));
          shared.set(p, true);
        }
      }
      queriesShared = true;
      return new State(head, checkpointVersion, queries, new ArrayList<>(segments), tag);
    }

    /** No committed record may be missing: the live segments of a partition hold all its offsets from the log start on. */
    private static void requireWhole(int partition, List<Segment> live, long start, long end) throws Damaged {
      long at = start;
      long last = 0;
      for (Segment segment : live) {
        Damaged.unless(segment.base() >= last, "segments of partition " + partition + " overlap at offset " + segment.base());
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
}
