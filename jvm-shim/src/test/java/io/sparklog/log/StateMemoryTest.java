package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.PutObserver;
import io.sparklog.storage.Stores;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The cost for a process to know a topic of many segments, as a stream of 25,000 epochs to 8 partitions makes them. */
final class StateMemoryTest {
  private static final int PARTITIONS = 8;
  private static final int EPOCHS = Seed.either(5_000, 25_000);
  private static final int LOOKS = 2_000;
  private static final long BYTES_MAX = 1_600L * EPOCHS;

  private final Random random = new Random(1);

  /** Puts the last version, and a checkpoint of it. Each epoch has one data file, which the partitions share. */
  private void write(LogStore store) throws Exception {
    Map<String, String> config = Map.of("partitions", String.valueOf(PARTITIONS), "partitioner", "murmur3", "compression.type", "none",
        "segment.bytes", "1048576", "max.message.bytes", "1000", "message.timestamp.type", "CreateTime", "index.interval.bytes", "4096");
    Replay builder = new Replay(false);
    String topicId = Names.identity(random);
    byte[] bytes = null;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
      String txn = Names.identity(random);
      List<Segment> added = new ArrayList<>();
      Map<Integer, Long> ends = new TreeMap<>();
      for (int p = 0; p < PARTITIONS; p++) {
        long time = 1_700_000_000_000L + epoch;
        added.add(new Segment(p, Names.dataFolder(epoch, txn) + "/pool.log", p * 100, 100, epoch, epoch + 1, 1, 1, time, time,
            Segment.Offsets.DENSE, true, true, epoch));
        ends.put(p, epoch + 1L);
      }
      String previous = bytes == null ? null : Version.sha256(bytes);
      TopicHead head = new TopicHead(Features.NONE, "t", topicId, epoch, 0, 0, 0, false);
      Version version = new Version(head, txn, previous, "write", new Query("q", epoch, null), null, null, List.of(),
          epoch == 0 ? config : Map.of(), Map.of(), ends, List.of(), added, Further.NONE);
      bytes = version.toBytes();
      builder.apply(version, bytes);
    }
    store.createFolder(Names.topicFolder("t"));
    store.putIfAbsent(Names.topicFile("t", Names.versionFile(EPOCHS - 1)), Names.topicFile("t", "tmp/x"), bytes, PutObserver.NONE);
    Checkpoint.write(store, builder.build(), Names.identity(random));
  }

  private static long used() throws InterruptedException {
    for (int i = 0; i < 3; i++) {
      System.gc();
      Thread.sleep(20);
    }
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }

  /** CPU time of this thread: seconds of the clock depend on what else the machine does. */
  private static long cpuNs() {
    return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
  }

  @Test
  void ofManySegments(@TempDir Path root) throws Exception {
    LogStore store = Stores.open(root.toString());
    write(store);
    TopicLog log = new TopicLog(store, "t");
    long before = used();
    long begun = cpuNs();
    State state = log.newest().orElseThrow();
    long loadMs = (cpuNs() - begun) / 1_000_000;
    long bytes = used() - before;
    assertSame(state.segments(0).get(7).file(), state.segments(PARTITIONS - 1).get(7).file());
    assertEquals(PARTITIONS * EPOCHS, state.segments(3).size() * PARTITIONS);
    for (int warm = 0; warm < LOOKS; warm++) {
      assertSame(state, log.newest().orElseThrow());
    }
    begun = cpuNs();
    for (int look = 0; look < LOOKS; look++) {
      log.newest();
    }
    System.out.printf("a state of %,d segments: %,d bytes, loaded in %,d ms of CPU; a look that finds nothing new: %.1f us of CPU%n",
        PARTITIONS * EPOCHS, bytes, loadMs, (cpuNs() - begun) / 1000.0 / LOOKS);
    assertTrue(bytes < BYTES_MAX, bytes + " bytes");
  }
}
