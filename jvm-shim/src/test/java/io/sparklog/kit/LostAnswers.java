package io.sparklog.kit;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.log.Committer;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.io.SyncFailedException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.LoggerFactory;

/**
 * {@code LostAnswers <root> <seconds> <seed>}: four threads commit to one topic through stores that lose answers, before a call takes
 * effect and after it, while their threads are interrupted. Two of them commit
 * epochs, each until it is told that it is done. Afterwards every outcome is held against what is there (I3, I6); what does not fit is
 * printed with {@code WRONG}.
 */
public final class LostAnswers {
  private static final int RECORDS = 5;
  private static final int TASKS = 2;
  private static final Set<String> LOSSY = Set.of("putIfAbsent", "flush", "read");

  private final LogStore real;
  private final long untilNanos;
  private final long seed;
  /** By tag, one for each attempt. */
  private final ConcurrentMap<String, String> outcomes = new ConcurrentHashMap<>();
  private final AtomicLong faults = new AtomicLong();
  private final AtomicLong interrupts = new AtomicLong();

  private LostAnswers(String root, long seconds, long seed) {
    this.real = Stores.open(root);
    this.untilNanos = System.nanoTime() + seconds * 1_000_000_000L;
    this.seed = seed;
  }

  public static void main(String[] words) throws Exception {
    // An interrupt in its first start would break the logger for good.
    LoggerFactory.getLogger(Committer.class).info("started");
    LostAnswers test = new LostAnswers(words[0], Long.parseLong(words[1]), Long.parseLong(words[2]));
    List<Thread> threads = new ArrayList<>();
    for (int number = 0; number < 4; number++) {
      int mine = number;
      Thread thread = new Thread(() -> test.write(mine));
      thread.start();
      threads.add(thread);
    }
    for (Thread thread : threads) {
      thread.join();
    }
    test.audit();
  }

  private void write(int thread) {
    Random random = new Random(seed * 31 + thread);
    boolean epochs = thread >= 2;
    long epoch = 0;
    for (int attempt = 0; System.nanoTime() < untilNanos; attempt++) {
      String tag = epochs ? "Q" + thread + "." + epoch + "." + attempt : "T" + thread + "." + attempt;
      double rate = random.nextInt(4) == 0 ? 0.6 : 0.15;
      boolean[] on = {false};
      LogStore store = FaultyStore.of(real).at((call, name, when) -> {
        if (!on[0]) {
          return;
        }
        if (LOSSY.contains(call) && random.nextDouble() < rate) {
          faults.incrementAndGet();
          switch (random.nextInt(5)) {
            case 0 -> throw new IOException("lost");
            case 1 -> throw new IllegalStateException("lost");
            case 2 -> throw new OutOfMemoryError("thrown by the test");
            case 3 -> throw call.equals("read") ? new IOException("lost") : new SyncFailedException("lost");
            default -> throw new FileAlreadyExistsException(name);
          }
        }
        if (random.nextInt(12) == 0) {
          interrupts.incrementAndGet();
          Thread.currentThread().interrupt();
        }
      }).store();
      String outcome;
      try {
        Root root = new Root(store);
        TopicPlan plan = TopicPlan.of("t", root.topic("t").latest(), Writes.config());
        String txn = Names.identity(random);
        List<TopicReport> reports = Writes.of(tag, TASKS, RECORDS, random.nextInt(3) == 0 ? 300_000 : 0).reports(store, plan, txn);
        on[0] = true;
        Once once = epochs ? Once.epoch("q" + thread, epoch, HexFormat.of().toHexDigits(epoch)) : Once.NEVER;
        new TopicCommits(root, txn, topic -> once, Clock.systemUTC(), random).commit(plan, reports);
        outcome = "done";
      } catch (PartlogException e) {
        outcome = e.id();
      } catch (Throwable e) {
        outcome = e.toString();
      }
      Thread.interrupted();
      outcomes.put(tag, outcome);
      if (epochs && outcome.equals("done")) {
        epoch++;
      }
    }
  }

  private void audit() throws IOException, BadBatch {
    Map<String, Integer> counts = counts();
    Map<String, Integer> kinds = new TreeMap<>();
    Map<String, Set<String>> epochs = new TreeMap<>();
    Set<String> epochsDone = new TreeSet<>();
    for (Map.Entry<String, String> each : outcomes.entrySet()) {
      String tag = each.getKey();
      String outcome = each.getValue();
      int count = counts.getOrDefault(tag, 0);
      kinds.merge(outcome + (count > 0 ? " and there" : " and absent"), 1, Integer::sum);
      if (count != 0 && count != TASKS * RECORDS) {
        System.out.println("WRONG in part or twice: " + each + ", records " + count);
      }
      boolean isEpoch = tag.startsWith("Q");
      if (isEpoch) {
        String epoch = tag.substring(0, tag.lastIndexOf('.'));
        if (count > 0) {
          epochs.computeIfAbsent(epoch, e -> new TreeSet<>()).add(tag);
        }
        if (outcome.equals("done")) {
          epochsDone.add(epoch);
        }
      } else if (outcome.equals("done") && count == 0) {
        System.out.println("WRONG done and absent: " + each);
      }
      if (!outcome.equals("done") && !outcome.equals("COMMIT_UNKNOWN") && count > 0) {
        System.out.println("WRONG not done and there: " + each);
      }
    }
    epochs.forEach((epoch, tags) -> {
      if (tags.size() > 1) {
        System.out.println("WRONG epoch twice: " + tags);
      }
    });
    epochsDone.stream()
        .filter(epoch -> !epochs.containsKey(epoch))
        .forEach(epoch -> System.out.println("WRONG epoch done and absent: " + epoch));
    System.out.println("commits tried " + outcomes.size() + ", faults " + faults + ", interrupts " + interrupts + ", outcomes " + kinds);
  }

  /** How many records of each tag are there; offsets are seen to be dense. */
  private Map<String, Integer> counts() throws IOException, BadBatch {
    State state = new TopicLog(real, "t").newest().orElseThrow();
    Map<String, Integer> counts = new HashMap<>();
    BatchDecoder decoder = new BatchDecoder(state.config().decompressedBytesMax());
    for (int p = 0; p < state.partitions(); p++) {
      long at = 0;
      for (Segment segment : state.segments(p)) {
        if (segment.base() != at) {
          System.out.println("WRONG a gap before " + segment);
        }
        at = segment.end();
        byte[] bytes = new byte[(int) segment.bytes()];
        try (SegmentFile file = SegmentFile.open(real, "t", segment)) {
          file.read(segment.position(), bytes, 0, bytes.length);
          for (BatchWalk walk = new BatchWalk(file); walk.next();) {
            decoder.decode(bytes, (int) (walk.position() - segment.position()), (int) walk.bytes());
            for (int i = 0; i < decoder.count(); i++) {
              String value = new String(decoder.data(), decoder.valueAt()[i], Math.min(60, decoder.valueLengths()[i]),
                  StandardCharsets.UTF_8);
              counts.merge(value.substring(0, value.indexOf(':')), 1, Integer::sum);
            }
          }
        }
      }
    }
    return counts;
  }
}
