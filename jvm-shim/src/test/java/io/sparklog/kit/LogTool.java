package io.sparklog.kit;

import static java.util.stream.Collectors.joining;

import io.sparklog.admin.Vacuum;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.log.Committers;
import io.sparklog.log.Pace;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.merge.MergeCounts;
import io.sparklog.merge.Merging;
import io.sparklog.query.OffsetBounds;
import io.sparklog.query.Subscription;
import io.sparklog.read.Filter;
import io.sparklog.read.Intervals;
import io.sparklog.read.Selection;
import io.sparklog.read.Split;
import io.sparklog.read.SplitPlanner;
import io.sparklog.read.SplitReader;
import io.sparklog.read.VisibleRecords;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.StoreRef;
import io.sparklog.storage.Stores;
import io.sparklog.transfer.KafkaExport;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.view.KafkaView;
import io.sparklog.write.Once;
import io.sparklog.write.PendingReroute;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/**
 * Writes and reads topics through the log alone, in a process that starts fast: what the tests of the protocol kill and race.
 *
 * <p>{@code append root=… topic=… tag=… [commits=1] [tasks=2] [records=10] [big=<bytes of task 0's values>] [query=…
 * epoch=… [input=…] [n=…]] [txnAppId=… txnVersion=…] [partitions=4] [keys=7] [moreKeys=<with each commit>] [seed=1]
 * [pause=<ms after each commit>] [clock=<days it is wrong>] [pace=<versions of a checkpoint>] [merge=<bytes that a commit merges>]
 * [goesOn=true] [create=1] [<topic option>=…]}, {@code read root=… topic=… [startingTimestamp=…] [endingTimestamp=…]
 * [fromMs=… toMs=…] [minPartitions=…] [maxRecordsPerPartition=…] [held=<file>] [planned=<file>]}, {@code publish root=…
 * topic=…}, {@code export root=… topic=… to=…}, {@code vacuum root=… topic=… [hours=<how old>] [clock=…]}, {@code
 * merge root=… topic=… [rebatch=<bytes of a batch>]}, {@code states root=… [producers=true]}, {@code state root=…},
 * {@code bits root=… topic=… file=… [step=1]}, {@code change root=… topic=… [clock=…] what=records
 * offsets=<partition>:<offset>,…|partitions to=…|rebuild into=… to=…|close partitions=<partition>:0,… |weights
 * weights=<partition>:<weight>,…|keys keys=<key>,… to=…|config
 * <option>=…|delete|create}, of which re-routes take {@code later=true}, {@code walk root=… topic=… seconds=…}. Each takes
 * settings of Hadoop, too: {@code fs.…=…}, {@code dfs.…=…}.
 */
public final class LogTool {
  /** So small that segments are cut, and indexes used. */
  private static final int SPLIT_BYTES = 1 << 16;

  private static final Set<String> OPTIONAL_CONFIG = Set.of(TopicConfig.FILE_DELETE_DELAY_MS, TopicConfig.SEGMENT_MS,
      TopicConfig.RETENTION_MS, TopicConfig.RETENTION_BYTES, TopicConfig.KAFKA_VIEW, TopicConfig.PLACEMENT);

  private final Map<String, String> arguments = new HashMap<>();
  private final TreeMap<String, String> settings = new TreeMap<>();
  private final LogStore store;
  private final Root root;
  private final TopicLog log;

  private LogTool(String[] words) {
    for (int i = 1; i < words.length; i++) {
      String[] parts = words[i].split("=", 2);
      (isSetting(parts[0]) ? settings : arguments).put(parts[0], parts[1]);
    }
    store = Stores.open(new StoreRef(text("root", null), settings));
    Pace usual = Pace.PRODUCTION;
    root = new Root(store, new Pace(number("pace", usual.checkpointVersions()), usual.mergedSegments(), usual.pause()));
    log = root.topic(text("topic", "t"));
  }

  public static void main(String[] words) throws Exception {
    LogTool tool = new LogTool(words);
    switch (words[0]) {
      case "append" -> tool.append();
      case "read" -> tool.read();
      case "states" -> tool.states();
      case "state" -> tool.state();
      case "change" -> new Operator(tool.root, tool.log, tool.clock(), tool.arguments).change();
      case "bits" -> tool.bits();
      case "walk" -> tool.walk();
      case "merge" -> tool.merge();
      case "vacuum" -> tool.vacuum();
      case "publish" -> System.out.println("published " + KafkaView.publish(tool.log, Names.identity(new Random())));
      case "export" -> KafkaExport.export(tool.log, tool.log.newest().orElseThrow(), tool.text("to", ""), Names.identity(new Random()))
          .forEach(System.out::println);
      default -> throw new IllegalArgumentException(words[0]);
    }
  }

  /** Whether an argument is a setting of Hadoop for the root's store. */
  static boolean isSetting(String name) {
    return name.startsWith("fs.") || name.startsWith("dfs.");
  }

  private String text(String key, String otherwise) {
    return arguments.getOrDefault(key, otherwise);
  }

  private int number(String key, int otherwise) {
    return Integer.parseInt(text(key, Integer.toString(otherwise)));
  }

  /**
   * Prints {@code done <tag>-<commit> <version>} after each commit. With {@code goesOn}, an error does not end it, but prints
   * {@code error <tag>-<commit> <id>}.
   */
  private void append() throws IOException {
    TreeMap<String, String> config = Writes.config();
    config.replaceAll(this::text);
    arguments.forEach((key, value) -> {
      if (OPTIONAL_CONFIG.contains(key)) {
        config.put(key, value);
      }
    });
    Random random = new Random(Long.parseLong(text("seed", Long.toString(System.nanoTime()))));
    Clock clock = clock();
    for (int commit = 0; commit < number("commits", 1); commit++) {
      String name = text("tag", "x") + "-" + commit;
      try {
        System.out.println("done " + name + " " + append(name, commit, config, clock, random));
      } catch (IOException | PartlogException e) {
        if (!arguments.containsKey("goesOn")) {
          throw e;
        }
        System.out.println("error " + name + " " + (e instanceof PartlogException known ? known.id() : e.toString()));
      }
      System.out.flush();
      LockSupport.parkNanos(1_000_000L * number("pause", 0));
    }
  }

  /** One commit, of that name. Returns its version. */
  private long append(String name, int commit, TreeMap<String, String> config, Clock clock, Random random) throws IOException {
    String txn = Names.identity(random);
    PendingReroute.apply(log, clock, random);
    TopicPlan plan = TopicPlan.of(log.topic(), log.latest(), config);
    Writes writes = new Writes(name, number("tasks", 2), number("records", 10), number("big", 0), number("batch", 1 << 14),
        number("buffer", 64 << 20), number("fall", 0), number("keys", 7) + commit * number("moreKeys", 0));
    Once once = once(commit);
    TopicCommits commits = new TopicCommits(root, txn, topic -> once, clock, random).merging(number("merge", 0))
        .creating(number("create", 0) > 0);
    return commits.commit(plan, writes.reports(store, plan, txn))
        .version()
        .map(Version::version)
        .orElseGet(() -> log.newest().orElseThrow().version());
  }

  /** Merges all that there is. Prints {@code merged <n> into <n> bytes <n> ms <n>}. */
  private void merge() {
    Merging merging = new Merging(new Committers(log, Clock.systemUTC(), new Random()));
    long began = System.nanoTime();
    MergeCounts done = arguments.containsKey("rebatch") ? merging.rebatch(number("rebatch", 0)) : merging.all();
    System.out.println(
        "merged " + done.replaced() + " into " + done.by() + " bytes " + done.bytes() + " ms " + (System.nanoTime() - began) / 1_000_000);
  }

  /** Prints {@code vacuumed <files> bytes <n> horizon <n>}. */
  private void vacuum() {
    Vacuum.Vacuumed done = new Vacuum(new TopicWork(log, clock(), new Random())).run(Duration.ofHours(number("hours", 1)), false);
    System.out.println("vacuumed " + done.files().size() + " bytes " + done.bytes() + " horizon " + done.horizon());
  }

  private Clock clock() {
    return Clock.offset(Clock.systemUTC(), Duration.ofDays(number("clock", 0)));
  }

  /** The identity that makes a commit exactly once; {@code n} tells a batch write within an epoch. Each commit has the next number. */
  private Once once(int commit) {
    if (arguments.containsKey("txnAppId")) {
      return Once.transaction(text("txnAppId", null), number("txnVersion", 0) + commit);
    }
    if (!arguments.containsKey("query")) {
      return Once.NEVER;
    }
    String query = text("query", null);
    int epoch = number("epoch", 0) + commit;
    String input = text("input", null);
    return arguments.containsKey("n") ? Once.inEpoch(query, number("n", 0), epoch, input) : Once.epoch(query, epoch, input);
  }

  /**
   * Reads as Spark's tasks do, in small splits. Prints {@code <partition> <offset> <value up to its padding>} for every record, then {@code
   * version <n> id <topic id>}. With {@code held}, prints {@code held} when it knows the state, and waits for that file before it plans;
   * with {@code planned}, it does the same after that.
   */
  private void read() throws IOException {
    Optional<State> newest = log.newest();
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    if (newest.isEmpty()) {
      out.println("none");
      out.flush();
      return;
    }
    State state = newest.get();
    waitAt("held", out);
    Map<String, String> options = new TreeMap<>(arguments);
    options.keySet().retainAll(Set.of("startingTimestamp", "endingTimestamp"));
    int[] partitions = IntStream.range(0, state.partitions()).toArray();
    List<Selection.OffsetRange> ranges = new OffsetBounds(new Root(store), Options.of(options, Options.Side.READ))
        .resolve(List.of(new Subscription.Subscribed(state, partitions)));
    Filter filter = arguments.containsKey("fromMs")
        ? Filter.time(Intervals.of(1000L * Long.parseLong(text("fromMs", null)), 1000L * Long.parseLong(text("toMs", null))))
        : Filter.ALL_RECORDS;
    SplitPlanner.SplitSize size = new SplitPlanner.SplitSize(SPLIT_BYTES, 1, 1, number("minPartitions", 1),
        number("maxRecordsPerPartition", Integer.MAX_VALUE));
    List<Split> splits = new SplitPlanner(new Root(store), size, true).plan(Selection.of(ranges, filter));
    waitAt("planned", out);
    for (Split split : splits) {
      print(split, out);
    }
    out.println("version " + state.version() + " id " + state.topicId());
    out.flush();
  }

  private void waitAt(String point, PrintStream out) {
    if (arguments.containsKey(point)) {
      out.println(point);
      out.flush();
      while (!Files.exists(Path.of(text(point, null)))) {
        LockSupport.parkNanos(1_000_000);
      }
    }
  }

  private void print(Split split, PrintStream out) throws IOException {
    try (SplitReader reader = new SplitReader(new Root(store), split, true, false, Long.MAX_VALUE)) {
      while (reader.next()) {
        VisibleRecords records = reader.records();
        BatchDecoder decoder = records.decoder();
        for (int i = records.first(); i < records.first() + records.rows(); i++) {
          String value = new String(decoder.data(), decoder.valueAt()[i], Math.max(0, decoder.valueLengths()[i]), StandardCharsets.UTF_8)
              .replaceAll("v+$", "");
          out.println(split.partition() + " " + (records.base() + decoder.offsetDeltas()[i]) + " " + value);
        }
      }
    }
  }

  /** Walks the newest segment of each partition again and again, while others write; prints {@code walks <n> batches <n> unstamped <n>}. */
  private void walk() throws IOException {
    long until = System.nanoTime() + number("seconds", 1) * 1_000_000_000L;
    long walks = 0;
    long batches = 0;
    long unstamped = 0;
    while (System.nanoTime() < until) {
      State state = log.newest().orElse(null);
      for (int p = 0; state != null && p < state.partitions(); p++) {
        List<Segment> segments = state.segments(p);
        if (!segments.isEmpty()) {
          Segment newest = segments.get(segments.size() - 1);
          try (SegmentFile file = SegmentFile.open(store, log.topic(), newest)) {
            BatchWalk walk = new BatchWalk(file);
            for (; walk.next(); batches++) {
              unstamped += BatchHeader.baseOffset(walk.buffer(), walk.at()) == walk.base() ? 0 : 1;
            }
            walk.requireHeaderCrc();
          }
          walks++;
        }
      }
    }
    System.out.println("walks " + walks + " batches " + batches + " unstamped " + unstamped);
  }

  /** For each topic under the root prints its name and {@code ok}, or the error that its state is. With {@code producers} for a server. */
  private void states() throws IOException {
    Root root = new Root(store);
    for (String topic : root.topics()) {
      String found;
      try {
        Optional<State> state = root.topic(topic).newest();
        state = arguments.containsKey("producers") ? root.topic(topic).knowing(state) : state;
        found = state.isPresent() ? "ok" : "none";
      } catch (PartlogException e) {
        found = e.id();
      }
      System.out.println(topic + " " + found);
    }
  }

  /** For each topic under the root prints {@code topic <name>}, then its state, a line for each partition and segment, or the error. */
  private void state() {
    Root root = new Root(store);
    for (String topic : root.topics()) {
      System.out.println("topic " + topic);
      try {
        print(root.state(topic));
      } catch (PartlogException e) {
        System.out.println(e.id());
      }
    }
  }

  private static void print(State state) {
    System.out.println(
        state.version() + " " + state.topicId() + " " + state.hash() + " horizon " + state.horizon() + " boundary " + state.boundary());
    System.out
        .println(state.config().entries().entrySet().stream().map(entry -> entry.getKey() + "=" + entry.getValue()).collect(joining(" ")));
    for (int p = 0; p < state.partitions(); p++) {
      System.out.println("partition " + p + " from " + state.start(p) + " to " + state.end(p));
      for (Segment segment : state.segments(p)) {
        System.out.println(segment.file() + " " + segment.position() + " " + segment.bytes() + " " + segment.base() + " " + segment.end()
            + " " + segment.routed() + " " + segment.ordered());
      }
    }
  }

  /**
   * Flips each bit of a file in the topic's folder, one at a time, and prints how often the state was what it is without that, another, or
   * an error.
   */
  private void bits() throws IOException {
    Path file = Path.of(store.location(Names.topicFile(log.topic(), text("file", null))));
    byte[] bytes = Files.readAllBytes(file);
    String right = everything(log.newest().orElseThrow());
    Map<String, Integer> found = new TreeMap<>();
    for (int bit = 0; bit < 8 * bytes.length; bit += number("step", 1)) {
      bytes[bit >> 3] ^= (byte) (1 << (bit & 7));
      Files.write(file, bytes);
      bytes[bit >> 3] ^= (byte) (1 << (bit & 7));
      String what;
      try {
        what = everything(new TopicLog(store, log.topic()).newest().orElseThrow()).equals(right) ? "same" : "another";
      } catch (PartlogException e) {
        what = e.id();
      }
      found.merge(what, 1, Integer::sum);
    }
    Files.write(file, bytes);
    found.forEach((what, times) -> System.out.println(what + " " + times));
  }

  private static String everything(State state) {
    StringBuilder all = new StringBuilder(state.topicId() + state.version() + state.hash() + state.config().entries() + state.queries());
    for (int p = 0; p < state.partitions(); p++) {
      all.append(state.start(p)).append(' ').append(state.end(p)).append(state.segments(p));
    }
    return all.toString();
  }
}
