package io.sparklog.log;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.SortedMap;
import java.util.TreeMap;

/** What is committed of a topic at one version. Never changes. FORMAT.md sections 5 and 6. */
public final class State {
  private final Version newest;
  private final String hash;
  private final long checkpointVersion;
  private final TopicConfig config;
  private final TreeMap<String, Long> epochs;
  private final List<List<Segment>> segments;

  private State(Version newest, String hash, long checkpointVersion, TopicConfig config, TreeMap<String, Long> epochs,
      List<List<Segment>> segments) {
    this.newest = newest;
    this.hash = hash;
    this.checkpointVersion = checkpointVersion;
    this.config = config;
    this.epochs = epochs;
    this.segments = segments;
  }

  public String topic() {
    return newest.topic();
  }

  public String topicId() {
    return newest.topicId();
  }

  public long version() {
    return newest.version();
  }

  /** When the newest version was written, by its writer's clock, ms since 1970. */
  public long timeMs() {
    return newest.time();
  }

  public TopicConfig config() {
    return config;
  }

  public int partitions() {
    return config.partitions();
  }

  /** The log start offset of a partition. */
  public long start(int partition) {
    return newest.starts()[partition];
  }

  /** The end offset (exclusive) of a partition. */
  public long end(int partition) {
    return newest.ends()[partition];
  }

  /** The live segments of a partition by base offset. */
  public List<Segment> segments(int partition) {
    return segments.get(partition);
  }

  /** The segments of a partition that hold offsets of [{@code start}, {@code end}), by base offset. */
  public List<Segment> segments(int partition, long start, long end) {
    List<Segment> all = segments.get(partition);
    int low = 0;
    int high = all.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (all.get(middle).end() <= start) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    int last = low;
    while (last < all.size() && all.get(last).base() < end) {
      last++;
    }
    return start < end ? all.subList(low, last) : List.of();
  }

  /** The greatest epoch that was applied of a query; empty if none was. */
  public OptionalLong epoch(String queryId) {
    Long epoch = epochs.get(queryId);
    return epoch == null ? OptionalLong.empty() : OptionalLong.of(epoch);
  }

  /** A write planned at a lower version must not commit. */
  public long horizon() {
    return newest.horizon();
  }

  long boundary() {
    return newest.boundary();
  }

  String hash() {
    return hash;
  }

  String txn() {
    return newest.txn();
  }

  /** The version of the newest checkpoint that is known; −1 if none is. */
  long checkpointVersion() {
    return checkpointVersion;
  }

  SortedMap<String, Long> epochs() {
    return Collections.unmodifiableSortedMap(epochs);
  }

  long[] starts() {
    return newest.starts().clone();
  }

  long[] ends() {
    return newest.ends().clone();
  }

  State withCheckpoint(long version) {
    return new State(newest, hash, version, config, epochs, segments);
  }

  /** Applies versions one after another, and refuses one that does not follow. */
  static final class Builder {
    private Version newest;
    private String hash;
    private long checkpointVersion = -1;
    private TopicConfig config;
    private final TreeMap<String, Long> epochs = new TreeMap<>();
    private final List<List<Segment>> segments = new ArrayList<>();
    private final List<Boolean> shared = new ArrayList<>();

    Builder() {}

    /** Goes on from {@code state}, which stays as it is. */
    Builder(State state) {
      newest = state.newest;
      hash = state.hash;
      checkpointVersion = state.checkpointVersion;
      config = state.config;
      epochs.putAll(state.epochs);
      segments.addAll(state.segments);
      segments.forEach(list -> shared.add(true));
    }

    /** Begins at a checkpoint. {@code head} has the fields of a version but adds nothing; {@code live} are the segments by partition. */
    Builder(Version head, String hash, Map<String, Long> epochs, List<List<Segment>> live) throws Damaged {
      newest = head;
      this.hash = hash;
      checkpointVersion = head.version();
      config = new TopicConfig(head.config());
      this.epochs.putAll(epochs);
      Damaged.unless(config.partitions() == head.ends().length, "config partitions differs from the number of ends");
      for (int p = 0; p < head.ends().length; p++) {
        requireWhole(p, live.get(p), head.starts()[p], head.ends()[p]);
        segments.add(live.get(p));
        shared.add(true);
      }
    }

    long nextVersion() {
      return newest == null ? 0 : newest.version() + 1;
    }

    /** Whether {@code version} was written as the successor of what is here. */
    boolean precedes(Version version) {
      return newest == null ? version.version() == 0 : hash.equals(version.previous()) && newest.topicId().equals(version.topicId());
    }

    void apply(Version version, byte[] bytes) throws Damaged {
      Damaged.unless(precedes(version),
          "it does not follow version " + (version.version() - 1) + " (its field previous or topicId differs)");
      TreeMap<String, String> settings = new TreeMap<>(config == null ? Map.of() : config.entries());
      settings.putAll(version.config());
      TopicConfig changed = new TopicConfig(settings);
      int known = segments.size();
      Damaged.unless(changed.partitions() >= known, "the number of partitions falls");
      Damaged.unless(changed.partitions() == version.ends().length, "config partitions differs from the number of ends");
      for (int p = 0; p < known; p++) {
        Damaged.unless(version.starts()[p] >= newest.starts()[p], "the log start offset of partition " + p + " falls");
        Damaged.unless(version.ends()[p] >= newest.ends()[p], "the end of partition " + p + " falls");
      }
      if (newest != null) {
        Damaged.unless(version.horizon() >= newest.horizon(), "the horizon falls");
        Damaged.unless(version.boundary() >= newest.boundary(), "the boundary falls");
      }
      for (int p = known; p < changed.partitions(); p++) {
        segments.add(new ArrayList<>());
        shared.add(false);
      }
      for (Version.Removed removed : version.removed()) {
        remove(removed);
      }
      // A topic may begin at any offsets; partitions that are added to one begin at 0.
      long[] ends = newest == null ? version.starts().clone() : Arrays.copyOf(newest.ends(), changed.partitions());
      for (Segment segment : version.added()) {
        add(segment, ends);
      }
      for (int p = 0; p < ends.length; p++) {
        Damaged.unless(ends[p] == version.ends()[p],
            "its segments lead partition " + p + " to " + ends[p] + ", not to its end " + version.ends()[p]);
      }
      if (!version.removed().isEmpty()) {
        for (int p = 0; p < segments.size(); p++) {
          requireWhole(p, segments.get(p), version.starts()[p], version.ends()[p]);
        }
      }
      if (version.query() != null) {
        epochs.merge(version.query().id(), version.query().epoch(), Math::max);
      }
      config = changed;
      newest = version;
      hash = Version.sha256(bytes);
    }

    private void remove(Version.Removed removed) throws Damaged {
      boolean found = own(removed.partition())
          .removeIf(segment -> segment.position() == removed.position() && segment.file().equals(removed.file()));
      Damaged.unless(found, "it removes a segment that is not live: " + removed.file() + " at byte " + removed.position());
    }

    private void add(Segment segment, long[] ends) throws Damaged {
      int p = segment.partition();
      List<Segment> live = own(p);
      if (segment.base() >= ends[p]) {
        Damaged.unless(segment.base() == ends[p],
            "a segment of partition " + p + " begins at " + segment.base() + ", not at the end " + ends[p]);
        live.add(segment);
        ends[p] = segment.end();
        return;
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
    }

    /** The list of a partition, copied once before it is changed. */
    private List<Segment> own(int partition) throws Damaged {
      Damaged.unless(partition < segments.size(), "it names partition " + partition);
      if (shared.get(partition)) {
        segments.set(partition, new ArrayList<>(segments.get(partition)));
        shared.set(partition, false);
      }
      return segments.get(partition);
    }

    State build() {
      for (int p = 0; p < shared.size(); p++) {
        shared.set(p, true);
      }
      return new State(newest, hash, checkpointVersion, config, new TreeMap<>(epochs), new ArrayList<>(segments));
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
