package io.sparklog.sim;

import io.sparklog.log.Committed;
import io.sparklog.log.State;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.write.Once;
import io.sparklog.write.TaskWriter;
import io.sparklog.write.TopicBuffer;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

/** The actors that write: appenders without an identity, and queries as Spark drives them. */
final class Writers {
  /** The errors that a write may give, without any fault: others were faster, or cleaned up while it slept. */
  private static final Set<String> EXPECTED = Set.of("COMMIT_UNKNOWN", "TOPIC_RECREATED", "WRITE_EXPIRED", "EPOCH_DIFFERS",
      "ROUTING_CHANGED", "FILE_NOT_SHARED");

  /** The most bytes that a write merges after its commit: the default. */
  private static final int MERGE_BYTES = 32 << 20;

  private Writers() {}

  /** One write of the driver of a process: all of it, and what follows. */
  static boolean write(Process process, TreeMap<Integer, List<String>> records, Once once) throws IOException {
    World world = process.world;
    int life = world.truth.life();
    int faults = process.faults();
    List<String> all = records.values().stream().flatMap(List::stream).toList();
    TopicCommits commits = null;
    List<Map<String, TopicReport>> reports = List.of();
    try {
      Optional<State> latest = process.latest();
      TopicPlan plan = TopicPlan.of(Truth.TOPIC, latest, world.config, false, world.nowMs());
      String txn = Names.identity(world.random);
      commits = new TopicCommits(process.root(), txn, topic -> once, process.clock, world.random).merging(MERGE_BYTES);
      reports = List.of(report(process, plan, txn, records));
      Set<String> existing = latest.isPresent() ? Set.of(Truth.TOPIC) : Set.of();
      List<Committed> committed = commits.commit(new TreeMap<>(Map.of(Truth.TOPIC, plan)), existing, reports);
      Optional<Long> version = committed.get(0).version().map(put -> put.version());
      world.say(process.name + " has done " + all + " in version " + version);
      process.check(() -> world.truth.done(all, life, version));
      return true;
    } catch (PartlogException e) {
      process.excuse(e, faults, EXPECTED);
      if (once == Once.NEVER && !e.id().equals("COMMIT_UNKNOWN")) {
        world.truth.notDone(all, life);
      }
    } catch (IOException e) {
      process.excuse(e, faults);
    }
    if (commits != null) {
      commits.abort(reports);
    }
    return false;
  }

  /** The report of a task: its batches are in files of partitions, or travel, if they are few. */
  private static Map<String, TopicReport> report(Process process, TopicPlan plan, String txn, TreeMap<Integer, List<String>> records)
      throws IOException {
    World world = process.world;
    int bufferBytes = world.chance(2) ? 1 : 1 << 20;
    int batchBytes = 100 + world.random.nextInt(200);
    try (TaskWriter writer = new TaskWriter(process.store, txn, 0, 1, 0, batchBytes, bufferBytes)) {
      TopicBuffer topic = writer.topic(plan);
      for (Map.Entry<Integer, List<String>> partition : records.entrySet()) {
        for (String record : partition.getValue()) {
          byte[] value = (record + " " + "x".repeat(world.random.nextInt(60))).getBytes(StandardCharsets.UTF_8);
          long time = world.nowMs() - world.random.nextInt(100);
          if (Homes.isKeyed(record)) {
            byte[] key = Homes.key(record);
            byte[] row = Arrays.copyOf(key, key.length + value.length);
            System.arraycopy(value, 0, row, key.length, value.length);
            topic.append(time, row, 0, key.length, key.length, value.length, null, TopicBuffer.NO_HEADERS_BYTES);
            continue;
          }
          topic.appendTo(partition.getKey(), time, value, 0, -1, 0, value.length, null, TopicBuffer.NO_HEADERS_BYTES);
        }
      }
      return new HashMap<>(writer.finish());
    }
  }

  static void append(Process process, int writes) throws IOException {
    World world = process.world;
    for (int n = 0; n < writes; n++) {
      process.sleep(world.random.nextInt(30));
      TreeMap<Integer, List<String>> records = new TreeMap<>();
      for (int p = 0; p < world.partitions; p++) {
        if (p == 0 || world.chance(2)) {
          for (int i = world.random.nextInt(3); i >= 0; i--) {
            records.computeIfAbsent(p, absent -> new ArrayList<>()).add(process.name + "." + n + "." + p + "." + i);
          }
        }
      }
      for (int i = 0; world.bindsSlots() && i < 5; i++) {
        records.computeIfAbsent(0, absent -> new ArrayList<>()).add(Homes.keyed(world, process.name + "." + n + "." + i));
      }
      Known begun = world.truth.top();
      int life = world.truth.life();
      if (write(process, records, Once.NEVER) && begun != null && !begun.deleted() && life == world.truth.life()) {
        process.check(() -> requireAfter(world.truth, begun, records));
      }
    }
  }

  private static void requireAfter(Truth truth, Known begun, TreeMap<Integer, List<String>> records) {
    records.forEach((partition, written) -> {
      for (long offset = 0; offset < begun.ends()[partition]; offset++) {
        if (written.contains(truth.record(begun.topicId(), partition, offset))) {
          throw new Truth.Broken("I5: " + written + " lies before what had returned when its write began");
        }
      }
    });
  }

  /** A query: plans an epoch in the offset log, which refuses another plan, commits it, notes it in the commit log. */
  static void drive(Process process, String query, int epochs) throws IOException {
    World world = process.world;
    World.Query spark = world.queries.computeIfAbsent(query, absent -> new World.Query(new TreeMap<>(), -1));
    TreeMap<Long, World.Cut> mine = new TreeMap<>(spark.planned);
    long done = spark.done;
    for (int n = 0; n < epochs; n++) {
      process.sleep(world.random.nextInt(10));
      long epoch = done + 1;
      if (!mine.containsKey(epoch)) {
        if (spark.planned.containsKey(epoch) || epoch > 0 && !mine.containsKey(epoch - 1)) {
          return; // Spark finds that another driver is at work.
        }
        int first = epoch == 0 ? 0 : mine.get(epoch - 1).end();
        World.Cut cut = new World.Cut(first, first + (world.chance(3) ? 0 : 1 + world.random.nextInt(3)));
        mine.put(epoch, cut);
        spark.planned.put(epoch, cut);
      }
      World.Cut cut = mine.get(epoch);
      int life = world.truth.life();
      TreeMap<Integer, List<String>> records = new TreeMap<>();
      for (int i = cut.first(); i < cut.end(); i++) {
        records.computeIfAbsent(i % world.partitions, absent -> new ArrayList<>()).add(query + "." + i);
      }
      Once once = Once.epoch(query, epoch, cut.input()).withInputs(earlier -> input(mine, earlier));
      if (!write(process, records, once) || life != world.truth.life()) {
        return; // The query fails, or writes to a new topic from its middle on; another driver may come.
      }
      done = epoch;
      spark.done = Math.max(spark.done, epoch);
    }
  }

  private static String input(TreeMap<Long, World.Cut> mine, long epoch) {
    World.Cut cut = mine.get(epoch);
    return cut == null ? null : cut.input();
  }

  /** A user puts an older copy of a checkpoint in the query's place, and starts it; drivers that still run keep the one they have. */
  static void restore(Process process, String query) throws IOException {
    World world = process.world;
    process.sleep(50 + world.random.nextInt(500));
    World.Query spark = world.queries.get(query);
    if (spark == null || spark.done <= 0) {
      return;
    }
    long done = world.random.nextInt((int) spark.done);
    // The epochs after it read other offsets than before; or the next one still reads the same.
    long last = world.chance(2) ? done : done + 1;
    world.queries.put(query, new World.Query(new TreeMap<>(spark.planned.headMap(last, true)), done));
    world.say("the checkpoint of " + query + " is restored to epoch " + done + ", planned to " + last);
    drive(process, query, 4);
  }
}
