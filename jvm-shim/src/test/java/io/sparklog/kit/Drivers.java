package io.sparklog.kit;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.sparklog.log.Committed;
import io.sparklog.log.Committer;
import io.sparklog.log.NextVersion;
import io.sparklog.log.Pace;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.view.KafkaView;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;

/** Processes that write to topic {@code t}, with a clock that a test sets. */
public abstract class Drivers {
  public Pace pace = new Pace(10, 8, ms -> {});

  @TempDir
  public Path folder;

  public final Random random = new Random(1);
  public long nowMs = 1_800_000_000_000L;

  /** A process: it remembers what it has seen of the topic. */
  public final class Driver {
    public final LogStore store;
    public final Root root;

    public Driver() {
      this(Stores.open(folder.toString()));
    }

    public Driver(LogStore store) {
      this.store = store;
      this.root = new Root(store, pace);
    }

    public TopicLog log() {
      return root.topic("t");
    }

    public TopicPlan plan(Map<String, String> settings) {
      TreeMap<String, String> config = Writes.config();
      config.putAll(settings);
      return TopicPlan.of("t", log().latest(), config);
    }

    public long commit(Map<String, String> settings, int big) throws IOException {
      TopicPlan plan = plan(settings);
      String txn = Names.identity(random);
      return commit(plan, txn, Writes.of("x", 2, 28, big).reports(store, plan, txn)).version().orElseThrow().version();
    }

    public Committed commit(TopicPlan plan, String txn, List<TopicReport> reports) {
      return new TopicCommits(root, txn, topic -> Once.NEVER, clock(), random).commit(plan, reports);
    }

    public long commit() throws IOException {
      return commit(Map.of(), 0);
    }

    /** Puts one version that replaces all segments of each partition with copies of them in another file. */
    public void replace() throws IOException {
      String txn = Names.identity(random);
      TopicPlan plan = plan(Map.of());
      List<Segment> added = new ArrayList<>();
      String file = plan.folder(txn) + "/" + Names.poolFile();
      State state = log().newest().orElseThrow();
      try (var out = store.create(Names.topicFile("t", file))) {
        for (int p = 0; p < state.partitions(); p++) {
          for (Segment s : state.segments(p)) {
            byte[] bytes = new byte[(int) s.bytes()];
            try (SegmentFile in = SegmentFile.open(store, "t", s)) {
              in.read(s.position(), bytes, 0, bytes.length);
            }
            added.add(new Segment(p, file, out.position(), s.bytes(), s.base(), s.end(), s.records(), s.batches(), s.minTimestamp(),
                s.maxTimestamp(), s.offsets(), s.routed(), s.ordered(), s.headerCrc()));
            out.write(bytes, 0, bytes.length);
          }
        }
        out.sync();
      }
      new Committer(log(), txn, clock(), random).commit(newest -> {
        List<Segment> removed = new ArrayList<>();
        newest.orElseThrow().segments().forEach(removed::addAll);
        return Optional.of(new NextVersion(newest.get(), "merge").replace(removed, added));
      });
    }
  }

  public Clock clock() {
    return Clock.fixed(Instant.ofEpochMilli(nowMs), ZoneOffset.UTC);
  }

  public State state() {
    return new TopicLog(Stores.open(folder.toString()), "t").newest().orElseThrow();
  }

  public List<String> files(String in) throws IOException {
    if (!Files.exists(folder.resolve(in))) {
      return List.of();
    }
    try (Stream<Path> files = Files.walk(folder.resolve(in))) {
      return files.filter(Files::isRegularFile).map(file -> folder.relativize(file).toString()).sorted().toList();
    }
  }

  public List<String> files(String in, String pattern) throws IOException {
    return files(in).stream().filter(file -> file.matches(pattern)).toList();
  }

  public List<String> data() throws IOException {
    return files("_partlog/t/data");
  }

  /** The view has what the topic's setting lets in and nothing else, all of it right: comparing every byte changes nothing. */
  public void assertViewIsRight() throws IOException {
    int live = 0;
    for (int p = 0; p < state().partitions(); p++) {
      live += state().segments(p).stream().filter(state().config()::isInView).count();
    }
    List<String> view = new ArrayList<>();
    for (int p = 0; p < state().partitions(); p++) {
      view.addAll(files("t-" + p));
    }
    assertEquals(3 * live, view.size(), view.toString());
    assertEquals(0, KafkaView.publish(new Driver().log(), Names.identity(random)));
  }

}
