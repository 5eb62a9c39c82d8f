package io.sparklog.admin;

import io.sparklog.format.BatchDecoder;
import io.sparklog.log.PastReroute;
import io.sparklog.log.ForeignSegments;
import io.sparklog.log.Names;
import io.sparklog.log.Rebuilt;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.read.Intervals;
import io.sparklog.read.RecordFilter;
import io.sparklog.read.Selection;
import io.sparklog.read.Split;
import io.sparklog.read.SplitPlanner;
import io.sparklog.read.SplitReader;
import io.sparklog.read.SplitSize;
import io.sparklog.read.VisibleRecords;
import io.sparklog.spec.PartlogException;
import io.sparklog.write.Once;
import io.sparklog.write.Piece;
import io.sparklog.write.TaskWriter;
import io.sparklog.write.TopicBuffer;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
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
 * A new topic with the records of another one, its origin, and another number of partitions: the records of each key in their order, and
 * all of them in the version that begins the topic. FORMAT.md section 5.
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
   * @throws PartlogException TOPIC_NOT_FOUND, TOPIC_NAME_ILLEGAL, TOPIC_EXISTS, FOREIGN_SEGMENTS
   */
  public static Rebuild planned(Root root, String topic, String to, int partitions) throws IOException {
    State origin = root.state(topic);
    TopicLog log = root.topic(to);
    Optional<State> latest = log.latest();
    if (latest.isPresent() && !latest.get().isDeleted()) {
      throw log.exists();
    }
    if (latest.isEmpty()) {
      ForeignSegments.requireNone(log, 0, partitions);
    }
    Map<String, String> config = new TreeMap<>(origin.config().entries());
    config.put(TopicConfig.PARTITIONS, Integer.toString(partitions));
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
   *     RECORD_TOO_LARGE; those of a read and of a commit
   */
  public long[] run(int batchBytes, long bufferBytes, Clock clock, RandomGenerator random) throws IOException {
    root.prepare();
    String txn = Names.identity(random);
    Passed passed = new Passed(Rebuilt.most(origin.partitions(), plan.config().partitions()));
    List<Piece> pieces;
    try (TaskWriter writer = new TaskWriter(root.store(), txn, 0, 1, 0, batchBytes, bufferBytes)) {
      try {
        copy(frontiers(passed.most), writer.topic(plan), passed);
        pieces = writer.finish().get(plan.topic());
      } catch (IOException | RuntimeException e) {
        writer.abort();
        throw e;
      }
    }
    Rebuilt rebuilt = new Rebuilt(origin.topic(), origin.topicId(), origin.version(), passed.all());
    new TopicCommits(root, txn, topic -> Once.NEVER, clock, random).rebuilding(rebuilt).commit(plan, List.of(pieces));
    return passed.newest.getLast().own();
  }

  /** The frontiers that the new topic will know: the first, and the newest of the others. */
  private static final class Passed {
    private final int most;
    private final Deque<Rebuilt.Frontier> newest = new ArrayDeque<>();
    private Rebuilt.Frontier first;

    private Passed(int most) {
      this.most = most;
    }

    private void add(long[] offsets, long[] own) {
      Rebuilt.Frontier frontier = new Rebuilt.Frontier(offsets, own.clone());
      first = first == null ? frontier : first;
      newest.add(frontier);
      if (newest.size() > most) {
        newest.remove();
      }
    }

    private List<Rebuilt.Frontier> all() {
      List<Rebuilt.Frontier> all = new ArrayList<>(newest);
      all.set(0, first);
      return all;
    }
  }

  /** Offsets of the origin by partition, each not below the one before it. @param versions the most to look at, the newest */
  private List<long[]> frontiers(int versions) throws IOException {
    TreeMap<Long, long[]> after = new TreeMap<>();
    for (PastReroute past : origin.slots().past()) {
      after.put(past.version() - 1, past.cut());
    }
    int cuts = after.size();
    root.topic(origin.topic()).newest(origin, version -> {
      after.put(version.version(), version.ends());
      return after.size() - cuts >= versions;
    });
    after.put(origin.version(), origin.ends());
    List<long[]> frontiers = new ArrayList<>(List.of(origin.starts()));
    for (long[] ends : after.values()) {
      long[] offsets = Arrays.copyOf(ends, origin.partitions());
      for (int p = 0; p < offsets.length; p++) {
        offsets[p] = Math.max(offsets[p], origin.start(p));
      }
      if (!Arrays.equals(offsets, frontiers.get(frontiers.size() - 1))) {
        frontiers.add(offsets);
      }
    }
    return frontiers;
  }

  private void copy(List<long[]> frontiers, TopicBuffer to, Passed passed) throws IOException {
    SplitPlanner planner = new SplitPlanner(root, SplitSize.WHOLE, true);
    long[] own = new long[plan.config().partitions()];
    long[] before = frontiers.get(0);
    for (long[] frontier : frontiers) {
      List<Selection> selections = new ArrayList<>();
      for (int p = 0; p < frontier.length; p++) {
        if (before[p] < frontier[p]) {
          selections.add(new Selection(origin, p, Intervals.of(before[p], frontier[p] - 1), RecordFilter.ALL_RECORDS));
        }
      }
      for (Split split : planner.plan(selections)) {
        copy(split, to, own);
      }
      passed.add(frontier, own);
      before = frontier;
    }
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
