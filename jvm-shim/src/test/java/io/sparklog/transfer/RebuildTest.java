package io.sparklog.transfer;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.HeadersEncoder;
import io.sparklog.kit.Seed;
import io.sparklog.kit.Writes;
import io.sparklog.log.Checkpoint;
import io.sparklog.log.Rebuilt;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.read.Intervals;
import io.sparklog.read.RecordFilter;
import io.sparklog.read.Selection;
import io.sparklog.read.Split;
import io.sparklog.read.SplitPlanner;
import io.sparklog.read.SplitReader;
import io.sparklog.read.VisibleRecords;
import io.sparklog.routing.Router;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.TaskWriter;
import io.sparklog.write.TopicBuffer;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A topic is made again with another number of partitions. FORMAT.md annex D. */
final class RebuildTest {
  private static final int KEYS = 20;

  @TempDir
  Path folder;
  private Random random;
  private LogStore store;
  private Root root;
  /** How many records each key has. */
  private int[] written;
  private final TreeMap<String, String> config = Writes.config();

  /** A record as a reader sees it. @param number of its key */
  private record Row(String key, int number, String all) {}

  @BeforeEach
  void begin() {
    begin(Seed.draw());
  }

  private void begin(long seed) {
    random = new Random(seed);
    store = Stores.open(folder.resolve("root" + seed).toString());
    root = new Root(store);
    written = new int[KEYS + 1];
  }

  private Administration administration() {
    return new Administration(new TopicWork(root.topic("t"), Clock.systemUTC(), random));
  }

  private State state(String topic) {
    return new Root(store).state(topic);
  }

  /** Writes records of all kinds: every tenth has no key, every third has headers. With LogAppendTime, all have one time. */
  private void write(int records) throws IOException {
    TopicPlan plan = TopicPlan.of("t", root.topic("t").latest(), config);
    String txn = Names.identity(random);
    long time = 1_700_000_000_000L + random.nextInt(1000);
    HeadersEncoder headers = new HeadersEncoder();
    try (TaskWriter writer = new TaskWriter(store, txn, 0, 1, 7, 1 + random.nextInt(2000), 1 << 20)) {
      TopicBuffer topic = writer.topic(plan);
      for (int i = 0; i < records; i++) {
        int key = random.nextInt(10) == 0 ? KEYS : random.nextInt(KEYS);
        byte[] keyBytes = key == KEYS ? new byte[0] : ("k" + key).getBytes(StandardCharsets.UTF_8);
        byte[] value = Integer.toString(written[key]++).getBytes(StandardCharsets.UTF_8);
        byte[] row = Arrays.copyOf(keyBytes, keyBytes.length + value.length);
        System.arraycopy(value, 0, row, keyBytes.length, value.length);
        headers.begin(i % 3 == 0 ? 2 : 0);
        if (i % 3 == 0) {
          headers.add(new byte[] {'h'}, value);
          headers.add(new byte[] {'n'}, null);
        }
        topic.append(plan.config().logAppendTime() ? time : time + random.nextInt(50), row, 0, key == KEYS ? -1 : keyBytes.length,
            keyBytes.length, value.length, headers.buffer(), headers.bytes());
      }
      TopicReport report = writer.finish().get("t");
      new TopicCommits(root, txn, topicName -> Once.NEVER, Clock.systemUTC(), random).commit(plan, List.of(report));
    }
  }

  /** The records of each partition of a topic, by offset; null below the log start offset. */
  private List<List<Row>> rows(State state) throws IOException {
    List<List<Row>> rows = new ArrayList<>();
    List<Selection> all = new ArrayList<>();
    for (int p = 0; p < state.partitions(); p++) {
      rows.add(new ArrayList<>());
      IntStream.range(0, (int) state.start(p)).forEach(offset -> rows.get(rows.size() - 1).add(null));
      if (state.start(p) < state.end(p)) {
        all.add(new Selection(state, p, Intervals.of(state.start(p), state.end(p) - 1), RecordFilter.ALL_RECORDS));
      }
    }
    Root reader = new Root(store);
    for (Split split : new SplitPlanner(reader, SplitPlanner.SplitSize.WHOLE, true).plan(all)) {
      try (SplitReader read = new SplitReader(reader, split, true, false, Long.MAX_VALUE)) {
        while (read.next()) {
          VisibleRecords records = read.records();
          for (int i = records.first(); i < records.first() + records.rows(); i++) {
            assertEquals(rows.get(split.partition()).size(), records.base() + records.decoder().offsetDeltas()[i]);
            rows.get(split.partition()).add(row(records.decoder(), i));
          }
        }
      }
    }
    return rows;
  }

  private static Row row(BatchDecoder decoder, int i) {
    String key = decoder.keyLengths()[i] < 0 ? null : text(decoder, decoder.keyAt()[i], decoder.keyLengths()[i]);
    String value = text(decoder, decoder.valueAt()[i], decoder.valueLengths()[i]);
    String headers = text(decoder, decoder.headersAt()[i], decoder.headersEnd()[i] - decoder.headersAt()[i]);
    return new Row(key, Integer.parseInt(value), decoder.timestamps()[i] + " " + decoder.isLogAppendTime() + " " + headers);
  }

  private static String text(BatchDecoder decoder, int at, int length) {
    return new String(decoder.data(), at, length, StandardCharsets.ISO_8859_1);
  }

  /** How often each record is below these offsets. */
  private static Map<Row, Integer> below(List<List<Row>> rows, long[] offsets) {
    Map<Row, Integer> found = new HashMap<>();
    for (int p = 0; p < offsets.length; p++) {
      rows.get(p).subList(0, (int) offsets[p]).stream().filter(row -> row != null).forEach(row -> found.merge(row, 1, Integer::sum));
    }
    return found;
  }

  private static void assertOrdered(State state, List<List<Row>> rows) {
    Router router = state.router();
    Map<String, Integer> last = new HashMap<>();
    for (int p = 0; p < rows.size(); p++) {
      for (Row row : rows.get(p)) {
        if (row.key != null) {
          byte[] key = row.key.getBytes(StandardCharsets.UTF_8);
          assertEquals(p, router.ofKey(key, 0, key.length), row.key);
          Integer before = last.put(row.key, row.number);
          assertTrue(before == null || row.number > before, () -> "of key " + row.key + ", record " + row.number + " after " + before);
        }
      }
    }
  }

  private Rebuilt rebuilt(String topic, long version) throws IOException {
    return root.topic(topic).version(version).orElseThrow().rebuilt();
  }

  /** Rebuilds topic t, and checks all that holds of the new topic. @return how many frontiers it knows */
  private int rebuild(String to, int partitions, long bufferBytes) throws IOException {
    State origin = state("t");
    List<List<Row>> old = rows(origin);
    long[] ends = Rebuild.planned(root, "t", to, partitions).run(1 + random.nextInt(4000), bufferBytes, Clock.systemUTC(), random);
    State state = state(to);
    List<List<Row>> now = rows(state);
    assertArrayEquals(ends, state.ends());
    assertArrayEquals(new long[partitions], state.starts());
    assertTrue(state.routing().isModulo());
    assertOrdered(state, now);
    assertEquals(below(old, origin.ends()), below(now, ends));
    TreeMap<String, String> expected = new TreeMap<>(origin.config().entries());
    expected.put("partitions", Integer.toString(partitions));
    assertEquals(expected, state.config().entries());
    Rebuilt rebuilt = rebuilt(to, state.version());
    assertEquals(List.of("t", origin.topicId(), origin.version()), List.of(rebuilt.topic(), rebuilt.topicId(), rebuilt.version()));
    for (Rebuilt.Frontier frontier : rebuilt.passed()) {
      assertEquals(below(old, frontier.origin()), below(now, frontier.own()));
    }
    assertArrayEquals(origin.starts(), rebuilt.passed().get(0).origin());
    assertArrayEquals(origin.ends(), rebuilt.passed().get(rebuilt.passed().size() - 1).origin());
    assertEquals(origin.version(), state("t").version());
    return rebuilt.passed().size();
  }

  /** Puts a checkpoint and deletes most of the version files before it, as a clean-up does: then only cuts are known of the old order. */
  private void forget() throws IOException {
    State state = state("t");
    Checkpoint.write(store, state, Names.identity(random));
    for (long version = 0; version < state.version() - random.nextInt(4); version++) {
      store.delete(Names.topicFile("t", Names.versionFile(version)));
    }
    root = new Root(store);
  }

  private void change() throws IOException {
    State state = state("t");
    int[] weights = state.routing().weights();
    List<Integer> open = IntStream.range(0, weights.length).filter(p -> weights[p] > 0).boxed().toList();
    int any = open.get(random.nextInt(open.size()));
    switch (random.nextInt(8)) {
      case 0, 1 -> administration().addPartitions(state.partitions() + 1 + random.nextInt(3), Administration.RerouteTime.NOW, false);
      case 2 -> {
        if (open.size() > 1) {
          administration().closePartitions(List.of(any), Administration.RerouteTime.NOW, false);
        }
      }
      case 3, 4 -> administration().reroute(new TreeMap<>(Map.of(any, 1L + random.nextInt(5))), Administration.RerouteTime.NOW, false);
      case 5 -> administration().configure(Map.of("message.timestamp.type", random.nextBoolean() ? "CreateTime" : "LogAppendTime"));
      case 6 -> new TopicWork(root.topic("t"), Clock.systemUTC(), random).merge(0);
      default -> administration().deleteRecords(new TreeMap<>(Map.of(any, state.end(any) / 3)), new TreeMap<>(), false);
    }
  }

  @Test
  void eachKeyIsInOrderAndEachFrontierIsExactAfterAnyHistory() throws IOException {
    long seed = Seed.draw();
    int frontiers = 0;
    int rounds = Seed.either(10, 500);
    for (int round = 0; round < rounds; round++) {
      System.out.println("seed " + (seed + round));
      begin(seed + round);
      config.put("partitions", Integer.toString(1 + random.nextInt(5)));
      config.put("partitioner", random.nextBoolean() ? "murmur2" : "murmur3");
      config.put("compression.type", random.nextBoolean() ? "lz4" : "none");
      write(1 + random.nextInt(300));
      for (int step = 0; step < 12; step++) {
        change();
        if (random.nextInt(3) > 0) {
          write(1 + random.nextInt(200));
        }
      }
      if (random.nextInt(3) > 0) {
        forget();
      }
      frontiers += rebuild("n", 1 + random.nextInt(12), random.nextBoolean() ? 1 << 20 : 1 << 10);
    }
    assertTrue(frontiers > 3 * rounds, "there are frontiers within the history: " + frontiers);
  }

  @Test
  void manyPartitionsBecomeFewAndATopicBeginsAnew() throws IOException {
    config.put("key.type", "string");
    config.put("retention.ms", "9000000000000");
    config.put("segment.bytes", "1024");
    write(400);
    rebuild("n", 1, 1 << 10);
    new Administration(new TopicWork(root.topic("n"), Clock.systemUTC(), random)).delete(false);
    assertEquals(2, rebuild("n", 200, 1 << 10));
    assertEquals(2, state("n").version());
  }

  @Test
  void anEmptyTopicIsRebuiltToo() throws IOException {
    administration().create(TopicConfig.of(config), Names.identity(random));
    assertEquals(1, rebuild("n", 3, 1 << 20));
  }

  @Test
  void onlyTheNewestFrontiersAreKeptBeyondTheLimit() {
    assertEquals(50, Rebuilt.most(10_000, 10_000));
    assertEquals(500_000, Rebuilt.most(1, 1));
  }

  private void assertRefused(String id, String topic, String to, int partitions) throws IOException {
    List<String> before = files();
    PartlogException e = assertThrows(PartlogException.class,
        () -> Rebuild.planned(root, topic, to, partitions).run(1000, 1 << 20, Clock.systemUTC(), random));
    assertEquals(id, e.id(), e.getMessage());
    assertEquals(before, files());
  }

  private List<String> files() throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      return all.filter(Files::isRegularFile).map(Path::toString).sorted().toList();
    }
  }

  @Test
  void whatCannotBeDoneIsRefusedAndChangesNothing() throws IOException {
    write(100);
    assertRefused("TOPIC_NOT_FOUND", "other", "n", 3);
    assertRefused("TOPIC_EXISTS", "t", "t", 3);
    rebuild("n", 3, 1 << 20);
    assertRefused("TOPIC_EXISTS", "t", "n", 4);
    assertRefused("TOPIC_NAME_ILLEGAL", "t", "a/b", 4);
    new Administration(new TopicWork(root.topic("n"), Clock.systemUTC(), random)).delete(false);
    assertRefused("TOPIC_NOT_FOUND", "n", "m", 4);
  }

  @Test
  void anErrorWhileItReadsLeavesNothing() throws IOException {
    write(3000);
    Rebuild planned = Rebuild.planned(root, "t", "n", 3);
    administration().delete(false);
    assertThrows(PartlogException.class, () -> planned.run(1000, 1 << 10, Clock.systemUTC(), random));
    assertFalse(files().stream().anyMatch(file -> file.contains("/n/")), files().toString());
  }

  @Test
  void anotherTopicOfTheNameIsNotTouched() throws IOException {
    write(300);
    Rebuild planned = Rebuild.planned(root, "t", "n", 3);
    Rebuild other = Rebuild.planned(root, "t", "n", 5);
    other.run(1000, 1 << 10, Clock.systemUTC(), random);
    List<String> before = files();
    PartlogException e = assertThrows(PartlogException.class, () -> planned.run(1000, 1 << 10, Clock.systemUTC(), random));
    assertEquals("TOPIC_EXISTS", e.id());
    assertEquals(before, files());
    assertEquals(5, state("n").partitions());
  }
}
