package io.sparklog.kit;

import com.sun.management.OperatingSystemMXBean;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Names;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.time.Clock;
import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.LongStream;

/**
 * Runs the epochs of a streaming query as fast as the log takes them, without Spark, and measures.
 *
 * <p>Arguments: root, epochs, records of an epoch, and {@code key=value} for the configuration of the topic. Every tenth part of the epochs
 * prints {@code epoch <e> ms <median of a whole commit> slowest <ms> cpu <ms of a commit, of all threads> heap <bytes in use> live
 * <most segments of a partition> versions <version files>}, of the epochs since the last such line. {@code live} and {@code versions} are
 * the most that any epoch left.
 */
public final class Epochs {
  private static final String TOPIC = "t";
  private static final long MERGE_BYTES = 32 << 20;

  private Epochs() {}

  public static void main(String[] words) throws IOException {
    int epochs = Integer.parseInt(words[1]);
    int records = Integer.parseInt(words[2]);
    TreeMap<String, String> config = Writes.config();
    config.put("partitions", "8");
    for (int i = 3; i < words.length; i++) {
      String[] parts = words[i].split("=", 2);
      config.put(parts[0], parts[1]);
    }
    LogStore store = Stores.open(words[0]);
    Root root = new Root(store);
    TopicLog log = root.topic(TOPIC);
    Random random = new Random(epochs);
    int part = epochs / 10;
    long[] ns = new long[part];
    int live = 0;
    int versions = 0;
    long cpuNs = cpuNs();
    for (int epoch = 0; epoch < epochs; epoch++) {
      String txn = Names.identity(random);
      long began = System.nanoTime();
      TopicPlan plan = TopicPlan.of(TOPIC, log.newest(), config);
      // Records without keys go where least are: the partitions take turns. With keys, each epoch reaches all partitions.
      Writes writes = new Writes("e-" + epoch, 1, records, 0, 1 << 14, 64 << 20, 0, records < 8 ? 0 : 64);
      Once once = Once.epoch("query", epoch, String.format(Locale.ROOT, "%016x", epoch));
      new TopicCommits(root, txn, topic -> once, Clock.systemUTC(), random).merging(MERGE_BYTES)
          .commit(plan, writes.reports(store, plan, txn));
      ns[epoch % part] = System.nanoTime() - began;
      State state = log.newest().orElseThrow();
      live = Math.max(live, most(state));
      if (epoch % 10 == 9) {
        versions = Math.max(versions,
            (int) store.list(Names.topicFolder(TOPIC)).stream().filter(name -> Names.versionOf(name).isPresent()).count());
      }
      if (epoch % part == part - 1) {
        Arrays.sort(ns);
        System.out.printf(Locale.ROOT, "epoch %d ms %.3f slowest %.0f cpu %.3f heap %d live %d versions %d%n", epoch + 1,
            ns[part / 2] / 1e6, ns[part - 1] / 1e6, (cpuNs() - cpuNs) / 1e6 / part, heap(), live, versions);
        cpuNs = cpuNs();
        live = 0;
        versions = 0;
      }
    }
  }

  private static int most(State state) {
    int most = 0;
    for (int p = 0; p < state.partitions(); p++) {
      long bytes = state.segments(p).stream().flatMapToLong(segment -> LongStream.of(segment.bytes())).sum();
      int allowance = (int) (2 * (bytes / (16 << 20)));
      most = Math.max(most, state.segments(p).size() - allowance);
    }
    return most;
  }

  private static long cpuNs() {
    return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
  }

  private static long heap() {
    System.gc();
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }
}
