package io.sparklog.source;

import io.sparklog.admin.Administration;
import io.sparklog.kit.Writes;
import io.sparklog.log.Committers;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.merge.Merging;
import io.sparklog.segment.Names;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.TaskWriter;
import io.sparklog.write.TopicBuffer;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;

/** A root whose topics have routed segments and others: keys that are null, partitions that are given, or added later. */
final class KeyedLog {
  private final Path directory;
  private final Random ids = new Random(1);

  /** Whether what happens to topics gives slots to other partitions. */
  private boolean reroutes;

  KeyedLog(Path directory) {
    this.directory = directory;
  }

  /** A log whose topics get slots. */
  static KeyedLog withSlots(Path directory) {
    KeyedLog log = new KeyedLog(directory);
    log.reroutes = true;
    return log;
  }

  private Root root() {
    return new Root(Stores.open(directory.toString()));
  }

  /** A record. @param key its bytes as Latin-1, or null @param partition null: the partitioner chooses */
  record Given(String key, Integer partition) {}

  void write(String topic, Map<String, String> config, int batchBytes, List<Given> records) throws IOException {
    Root root = root();
    TreeMap<String, String> all = Writes.config();
    all.putAll(config);
    TopicPlan plan = TopicPlan.of(topic, root.topic(topic).latest(), all);
    String txn = Names.identity(ids);
    try (TaskWriter writer = new TaskWriter(root.store(), txn, 0, 1, 0, batchBytes, 1 << 20)) {
      TopicBuffer buffer = writer.topic(plan);
      for (int i = 0; i < records.size(); i++) {
        Given record = records.get(i);
        byte[] key = record.key == null ? new byte[0] : record.key.getBytes(StandardCharsets.ISO_8859_1);
        byte[] row = Arrays.copyOf(key, key.length + 1);
        row[key.length] = 'x';
        int keyLength = record.key == null ? -1 : key.length;
        if (record.partition == null) {
          buffer.append(i % 4, row, 0, keyLength, key.length, i % 3 - 1, null, TopicBuffer.NO_HEADERS_BYTES);
        } else {
          buffer.appendTo(record.partition, i % 4, row, 0, keyLength, key.length, i % 3 - 1, null, TopicBuffer.NO_HEADERS_BYTES);
        }
      }
      new TopicCommits(root, txn, name -> Once.NEVER, Clock.systemUTC(), ids).commit(plan, List.of(writer.finish().get(topic)));
    }
  }

  Administration of(String topic) {
    return new Administration(new TopicWork(root().topic(topic), Clock.systemUTC(), ids));
  }

  /** Changes where keys go: adds partitions, or gives the partitions other weights, or closes one. */
  private void reroute(String topic, Random random) {
    State state = state(topic);
    List<Integer> open = open(state);
    int one = open.get(random.nextInt(open.size()));
    switch (random.nextInt(4)) {
      case 0, 1 -> of(topic).addPartitions(state.partitions() + 1 + random.nextInt(2), Administration.RerouteTime.NOW, false);
      case 2 -> of(topic).reroute(new TreeMap<>(Map.of(one, 1L + random.nextInt(5))), Administration.RerouteTime.NOW, false);
      default -> {
        if (open.size() > 1) {
          of(topic).closePartitions(List.of(one), Administration.RerouteTime.NOW, false);
        }
      }
    }
  }

  private static List<Integer> open(State state) {
    return IntStream.range(0, state.partitions()).filter(state.router()::isOpen).boxed().toList();
  }

  void merge(String topic) {
    new Merging(new Committers(root().topic(topic), Clock.systemUTC(), ids)).all();
  }

  State state(String topic) {
    return root().topic(topic).newest().orElseThrow();
  }

  /** This many records with keys, of 50. */
  static List<Given> routed(int records) {
    return IntStream.range(0, records).mapToObj(i -> new Given("k" + i % 50, null)).toList();
  }

  static int home(State state, String key) {
    byte[] bytes = key.getBytes(StandardCharsets.UTF_8);
    return state.router().ofKey(bytes, 0, bytes.length);
  }

  /** One of the things that can happen to a topic, which it creates if it is not there. Topic {@code b} hashes by murmur2. */
  void change(String topic, Random random) throws IOException {
    List<Integer> open = root().topic(topic).newest().map(KeyedLog::open).orElse(List.of(0, 1));
    switch (random.nextInt(9)) {
      case 0 -> {
        if (reroutes) {
          reroute(topic, random);
        }
      }
      case 1, 2 -> merge(topic);
      default -> {
        int kind = random.nextInt(4);
        List<Given> records = new ArrayList<>();
        for (int i = 1 + random.nextInt(20); i > 0; i--) {
          boolean isNull = kind == 1 && random.nextInt(3) == 0;
          String key = isNull ? null : RandomPredicates.KEYS[random.nextInt(RandomPredicates.KEYS.length)];
          records.add(new Given(key, kind == 2 && random.nextBoolean() ? open.get(random.nextInt(open.size())) : null));
        }
        write(topic, Map.of("partitions", "2", "partitioner", topic.equals("b") ? "murmur2" : "murmur3"), 100, records);
      }
    }
  }
}
