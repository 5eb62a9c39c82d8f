package io.sparklog.stream;

import static io.sparklog.kit.Wrong.require;

import io.sparklog.admin.Administration;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.kit.Wrong;
import io.sparklog.log.State;
import io.sparklog.read.Selection;
import io.sparklog.routing.Partitioner;
import io.sparklog.routing.Router;
import io.sparklog.spec.Options;
import io.sparklog.storage.CheckpointFolders;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;

/**
 * A topic whose records have keys and numbers that rise for each key, and a query that reads it while it is written and re-routed, and
 * while records expire. In half of the histories, only records expire that the query has read.
 */
final class ReroutedHistory {
  private static final int KEYS = 25;

  private final Random random;
  /** Says what expires. */
  private final Random expiring;
  private final boolean loses;
  private final Path checkpoint;
  private final WrittenTopic topic;
  /** By partition and offset, the key and the number of a record. */
  private final List<List<int[]>> records = new ArrayList<>();
  private final int[] written = new int[KEYS];
  private final int[] read = new int[KEYS];
  /** By partition, where the query goes on. */
  private final Map<Integer, Long> positions = new HashMap<>();
  private StreamOffsets from;
  private TopicStream stream;

  /** How many cuts of partitions records expired beyond, and how many records expired before the query read them. */
  static long overtaken;
  static long lost;

  private ReroutedHistory(long seed, Path folder) throws IOException {
    random = new Random(seed);
    expiring = new Random(-1 - seed);
    loses = seed % 4 >= 2;
    checkpoint = folder.resolve("checkpoint");
    topic = new WrittenTopic(folder.resolve("root"), "t");
    write();
    start();
    from = stream.initial();
  }

  /** How a query sees a random history: {@code in order}, or {@code wrong} and why. */
  static String run(long seed, Path folder) throws IOException {
    try {
      new ReroutedHistory(seed, folder).run();
      return "in order";
    } catch (Wrong e) {
      return "wrong: " + e.getMessage();
    }
  }

  private void start() throws IOException {
    Map<String, String> options = new TreeMap<>(Map.of("subscribe", "t", "failOnDataLoss", String.valueOf(!loses)));
    if (from == null) {
      options.put("startingOffsets", "earliest");
    }
    StreamStart start = new StreamStart(CheckpointFolders.open("file:" + checkpoint, Map.<String, String>of()::entrySet), random);
    stream = new TopicStream(topic.root, Options.of(options, Options.Side.READ).ofStream(), start, Clock.systemUTC());
  }

  private void run() throws IOException {
    for (int step = 0; step < 50; step++) {
      if (expiring.nextInt(3) == 0) {
        expire();
      }
      switch (random.nextInt(6)) {
        case 0, 1 -> write();
        case 2 -> reroute();
        case 3 -> start();
        default -> micro(random.nextBoolean() ? TriggerLimits.NONE : TriggerLimits.NONE.offsetsMax(1 + random.nextInt(40)));
      }
    }
    StreamOffsets before = null;
    while (!from.equals(before)) {
      before = from;
      micro(TriggerLimits.NONE);
    }
    for (int key = 0; key < KEYS; key++) {
      skip(key, written[key]);
      require(written[key] == read[key], read[key] + " of " + written[key] + " records of key " + key);
    }
  }

  private void write() throws IOException {
    Router router = topic.root.topic("t").newest().map(State::router).orElse(new Router(Partitioner.MURMUR3, 3));
    TreeMap<Integer, Integer> counts = new TreeMap<>();
    for (int i = random.nextInt(60); i >= 0; i--) {
      int key = random.nextInt(KEYS);
      byte[] bytes = key(key);
      int partition = router.ofKey(bytes, 0, bytes.length);
      while (records.size() <= partition) {
        records.add(new ArrayList<>());
      }
      records.get(partition).add(new int[] {key, ++written[key]});
      counts.merge(partition, 1, Integer::sum);
    }
    for (Map.Entry<Integer, Integer> each : counts.entrySet()) {
      topic.segment(each.getKey(), each.getValue());
    }
    topic.commit();
  }

  private static byte[] key(int key) {
    return ("key " + key).getBytes(StandardCharsets.UTF_8);
  }

  private void reroute() {
    State state = topic.state();
    List<Integer> open = IntStream.range(0, state.partitions()).filter(state.router()::isOpen).boxed().toList();
    int one = open.get(random.nextInt(open.size()));
    switch (random.nextInt(4)) {
      case 0 -> {
        TreeMap<Integer, Integer> moves = new TreeMap<>();
        for (int i = 0; i < 2; i++) {
          moves.put(state.routing().table().slot(Partitioner.MURMUR3, key(random.nextInt(KEYS))), one);
        }
        topic.operator().move(state, moves, false);
      }
      case 1 -> topic.operator().addPartitions(state.partitions() + 1 + random.nextInt(3), Administration.RerouteTime.NOW, false);
      case 2 -> topic.operator().reroute(new TreeMap<>(Map.of(one, 1L + random.nextInt(4))), Administration.RerouteTime.NOW, false);
      default -> {
        if (open.size() > 1) {
          topic.operator().closePartitions(List.of(one), Administration.RerouteTime.NOW, false);
        }
      }
    }
  }

  private void expire() {
    State state = topic.state();
    int partition = expiring.nextInt(state.partitions());
    long start = state.start(partition);
    long end = loses ? state.end(partition) : positions.getOrDefault(partition, 0L);
    if (start < end) {
      long to = start + 1 + expiring.nextInt((int) (end - start));
      topic.operator().deleteRecords(new TreeMap<>(Map.of(partition, to)), new TreeMap<>(), false);
      overtaken += state.routing().past().stream().filter(past -> start < past.cut(partition) && past.cut(partition) <= to).count();
    }
  }

  /** Goes on after the records of a key that have expired, up to this number. */
  private void skip(int key, int number) {
    State state = topic.state();
    while (read[key] < number && hasExpired(state, key, read[key] + 1)) {
      lost++;
      read[key]++;
    }
  }

  private boolean hasExpired(State state, int key, int number) {
    return IntStream.range(0, records.size())
        .mapToObj(partition -> records.get(partition).subList(0, (int) state.start(partition)))
        .flatMap(List::stream)
        .anyMatch(record -> record[0] == key && record[1] == number);
  }

  /** Reads a micro-batch: of each key, from one partition, what comes next. */
  private void micro(TriggerLimits limits) throws IOException {
    StreamOffsets to = stream.next(from, limits);
    Map<Integer, Set<Integer>> partitions = new HashMap<>();
    for (Selection.OffsetRange range : stream.ranges(from, to)) {
      positions.put(range.partition(), range.end());
      for (long offset = range.start(); offset < range.end(); offset++) {
        int[] record = records.get(range.partition()).get((int) offset);
        partitions.computeIfAbsent(record[0], key -> new HashSet<>()).add(range.partition());
        if (loses) {
          skip(record[0], record[1] - 1);
        }
        require(read[record[0]] + 1 == record[1],
            "number " + record[1] + " after " + read[record[0]] + " of key " + record[0] + ", at " + range.partition() + ":" + offset);
        read[record[0]]++;
      }
    }
    require(partitions.values().stream().allMatch(its -> its.size() == 1), "a key comes from several partitions: " + partitions);
    from = to;
  }
}
