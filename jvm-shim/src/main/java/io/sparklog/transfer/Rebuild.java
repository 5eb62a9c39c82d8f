package io.sparklog.transfer;

import io.sparklog.format.BatchDecoder;
import io.sparklog.log.ForeignSegments;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.Rebuilt;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.read.Intervals;
import io.sparklog.read.RecordFilter;
import io.sparklog.read.Selection;
import io.sparklog.read.Split;
import io.sparklog.read.SplitPlanner;
import io.sparklog.read.SplitReader;
import io.sparklog.read.VisibleRecords;
import io.sparklog.routing.PastReroute;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.write.Once;
import io.sparklog.write.TaskWriter;
import io.sparklog.write.TopicBuffer;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.time.Clock;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.random.RandomGenerator;

/**
 * A new topic with the records of another topic, its origin, and another number of partitions. The records of each key keep their order,
 * and all records are in the version that begins the topic. FORMAT.md annex D.
 */
public final class Rebuild {
  private final Root root;
  private final State origin;
  private final TopicPlan plan;

  private Rebuild(Root root, State origin, TopicPlan plan) {
    this.root = root;
    this.origin = origin;
    this.plan = plan;
  }

  /**
   * Plans it from the newest state of the origin. Nothing is changed by this.
   *
   * @param to the name of the new topic
   * @param partitions of it, from 1 to 10,000
   * @throws PartlogException TOPIC_NOT_FOUND, TOPIC_NAME_ILLEGAL, TOPIC_OF_SERVER, TOPIC_EXISTS, FOREIGN_SEGMENTS
   */
  public static Rebuild planned(Root root, String topic, String to, int partitions) throws IOException {
    ReadableTopics.requireOfPrograms(to, root.location());
    State origin = root.state(topic);
    TopicLog log = root.topic(to);
    Optional<State> latest = log.latest();
    if (latest.isPresent() && !latest.get().isDeleted()) {
      throw log.exists();
    }
    if (latest.isEmpty()) {
      ForeignSegments.requireNone(log, 0, partitions);
    }
    Map<String, String> config = new TreeMap<>(origin.settingsOfWriters().entries());
    config.put(TopicConfig.PARTITIONS, Integer.toString(partitions));
    config.keySet().removeAll(List.of(TopicConfig.PENDING_WEIGHTS, TopicConfig.PLACEMENT_SHARES));
    return new Rebuild(root, origin, TopicPlan.of(to, latest, config));
  }

  /** The state of the origin whose records the new topic gets. */
  public State origin() {
    return origin;
  }

  /**
   * Reads and writes all records, and commits them.
   *
   * @param batchBytes the target size of a batch before compression
   * @param bufferBytes the most memory that batches may take
   * @return the end offset of each partition of the new topic
   * @throws PartlogException TOPIC_EXISTS, FOREIGN_SEGMENTS, OFFSETS_EXPIRED, TOPIC_NOT_FOUND, TOPIC_REPLACED, TIMESTAMP_NEGATIVE,
   *     RECORD_TOO_LARGE; the errors of a read and of a commit
   */
  public long[] run(int batchBytes, long bufferBytes, Clock clock, RandomGenerator random) throws IOException {
    root.prepare();
    String txn = Names.identity(random);
    List<Rebuilt.Frontier> passed;
    TopicReport report;
    try (TaskWriter writer = new TaskWriter(root.store(), txn, 0, 1, 0, batchBytes, bufferBytes)) {
      try {
        passed = copy(writer.topic(plan)).known;
        report = writer.finish().get(plan.topic());
      } catch (IOException | RuntimeException e) {
        writer.abort();
        throw e;
      }
    }
    Rebuilt rebuilt = new Rebuilt(origin.topic(), origin.topicId(), origin.version(), passed);
    new TopicCommits(root, txn, topic -> Once.NEVER, clock, random).rebuilding(rebuilt).commit(plan, List.of(report));
    return passed.get(passed.size() - 1).own();
  }

  /** The frontiers that the new topic will know: the first, and the newest of the others. */
  private static final class Passed {
    private final int all;
    private final int most;
    private final List<Rebuilt.Frontier> known = new ArrayList<>();
    private int count;

    /** @param all how many there will be */
    private Passed(int all, int most) {
      this.all = all;
      this.most = most;
    }

    private void add(long[] offsets, long[] own) {
      if (count == 0 || all - count < most) {
        known.add(new Rebuilt.Frontier(offsets.clone(), own.clone()));
      }
      count++;
    }
  }

  /**
   * The end offsets of the origin at its re-routes and at its newest versions, from old to new. Ends are left out if no partition has more
   * records than before. There may be fewer than partitions: a state has room for many cuts if they are short.
   *
   * @param versions the most to look at, the newest
   */
  private List<long[]> ends(int versions) throws IOException {
    TreeMap<Long, long[]> after = new TreeMap<>();
    for (PastReroute past : origin.routing().past()) {
      after.put(past.version() - 1, past.cut());
    }
    Deque<Version> newest = new ArrayDeque<>();
    root.topic(origin.topic()).newest(origin, version -> {
      newest.addFirst(version);
      return newest.size() >= versions || version.version() <= origin.boundary();
    });
    Optional<State> oldest = newest.isEmpty() ? Optional.empty() : root.topic(origin.topic()).at(origin, newest.getFirst().version());
    if (oldest.isPresent()) {
      long[] ends = Arrays.copyOf(oldest.get().ends(), origin.partitions());
      for (Version version : newest) {
        version.ends().forEach((partition, end) -> ends[partition] = end);
        after.putIfAbsent(version.version(), ends.clone());
      }
    }
    after.put(origin.version(), origin.ends());
    long[] at = origin.starts();
    return after.values().stream().filter(ends -> !advance(at, ends).isEmpty()).toList();
  }

  /** Takes each partition to its end, unless it is further on. @return the offsets that are passed */
  private List<Selection> advance(long[] at, long[] ends) {
    List<Selection> passed = new ArrayList<>();
    for (int p = 0; p < Math.min(at.length, ends.length); p++) {
      if (at[p] < ends[p]) {
        passed.add(new Selection(origin, p, Intervals.of(at[p], ends[p] - 1), RecordFilter.ALL_RECORDS));
        at[p] = ends[p];
      }
    }
    return passed;
  }

  private Passed copy(TopicBuffer to) throws IOException {
    SplitPlanner planner = new SplitPlanner(root, SplitPlanner.SplitSize.WHOLE, true);
    long[] own = new long[plan.config().partitions()];
    int most = Rebuilt.most(origin.partitions(), own.length);
    List<long[]> all = ends(most);
    Passed passed = new Passed(1 + all.size(), most);
    long[] at = origin.starts();
    passed.add(at, own);
    for (long[] ends : all) {
      for (Split split : planner.plan(advance(at, ends))) {
        copy(split, to, own);
      }
      passed.add(at, own);
    }
    return passed;
  }

  private void copy(Split split, TopicBuffer to, long[] own) throws IOException {
    try (SplitReader reader = new SplitReader(root, split, true, false, Long.MAX_VALUE)) {
      while (reader.next()) {
        VisibleRecords records = reader.records();
        BatchDecoder decoder = records.decoder();
        for (int i = records.first(); i < records.first() + records.rows(); i++) {
          own[to.append(decoder, i)]++;
        }
      }
    }
  }
}
