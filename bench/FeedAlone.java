import com.sun.management.OperatingSystemMXBean;
import io.sparklog.admin.Administration;
import io.sparklog.feed.CommitReader;
import io.sparklog.feed.CommitWaits;
import io.sparklog.log.Root;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.Names;
import io.sparklog.spec.Options;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Clock;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

/**
 * Readers that wait for commits, on a disk that is watched and on another one: the time from the end of a put to the reader, and the cost
 * of topics where nothing is committed. Prints a row for each: reader, disk, milliseconds (median, 99 %), share of a core, looks a second.
 */
final class FeedAlone {
  private static final int COMMITS = 200;
  private static final long IDLE_MS = 10_000;

  /** Spark asks again after this pause if a trigger finds nothing. */
  private static final long SPARK_MS = 10;

  private final String path;
  private final boolean isWatched;
  private final AtomicInteger looks = new AtomicInteger();

  private FeedAlone(String path, boolean isWatched) {
    this.path = path;
    this.isWatched = isWatched;
  }

  /** @param arguments an empty folder */
  public static void main(String[] arguments) throws Exception {
    for (boolean isWatched : new boolean[] {true, false}) {
      for (String reader : List.of("fetch", "query")) {
        FeedAlone alone = new FeedAlone(arguments[0] + "/" + reader + isWatched, isWatched);
        IntStream.range(0, 20).forEach(alone::create);
        double[] ms = alone.latencies(reader.equals("fetch"));
        alone.looks.set(0);
        double share = alone.idle(reader.equals("fetch"));
        System.out.printf("%s %s %.2f %.2f %.5f %.2f%n", reader, isWatched ? "watched" : "other", ms[COMMITS / 2], ms[COMMITS * 99 / 100],
            share, alone.looks.get() * 1e3 / IDLE_MS);
      }
    }
    System.exit(0);
  }

  private void create(int number) {
    Root root = new Root(Stores.open(path));
    root.prepare();
    new Administration(new TopicWork(root.topic("t" + number), Clock.systemUTC(), new Random()))
        .create(TopicConfig.of(Options.of(Map.of("partitions", "1"), Options.Side.WRITE).topicConfig()), Names.identity(new Random()));
  }

  /** A root as another process has it: it shares nothing with the root of the writer. */
  private Root reading() {
    LogStore real = Stores.open(path);
    return new Root(
        (LogStore) Proxy.newProxyInstance(LogStore.class.getClassLoader(), new Class<?>[] {LogStore.class}, (proxy, method, given) -> {
          if (method.getName().equals("watch") && !isWatched) {
            return false;
          }
          if (method.getName().equals("tag")) {
            looks.incrementAndGet();
          }
          try {
            return method.invoke(real, given);
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
        }));
  }

  /** Sorted. */
  private double[] latencies(boolean isFetch) throws Exception {
    Root writing = new Root(Stores.open(path));
    Administration writer = new Administration(new TopicWork(writing.topic("t0"), Clock.systemUTC(), new Random()));
    AtomicLong putNs = new AtomicLong();
    double[] ms = new double[COMMITS];
    Root root = reading();
    ExecutorService work = Executors.newFixedThreadPool(2);
    Random random = new Random(1);
    try (CommitWaits waits = new CommitWaits(root, work, Clock.systemUTC())) {
      CommitReader reader = new CommitReader(root, 1_000, Clock.systemUTC());
      for (int i = 0; i < COMMITS; i++) {
        long version = writing.state("t0").version() + 1;
        CompletableFuture<Long> seenNs = new CompletableFuture<>();
        if (isFetch) {
          waits.await(Set.of("t0"), () -> waits.recent("t0").orElseThrow().version() >= version, 600_000)
              .thenRun(() -> seenNs.complete(System.nanoTime()));
        } else {
          work.execute(() -> {
            while (reader.newest(List.of("t0")).get("t0").version() < version) {
              reader.refreshed(false);
              reader.await();
            }
            seenNs.complete(System.nanoTime());
            reader.refreshed(true);
          });
        }
        Thread.sleep(200 + random.nextInt(400));
        writer.configure(Map.of("retention.ms", Integer.toString(1_000_000_000 + i)));
        putNs.set(System.nanoTime());
        ms[i] = Math.max(0, (seenNs.get() - putNs.get()) / 1e6);
      }
    } finally {
      work.shutdownNow();
    }
    Arrays.sort(ms);
    return ms;
  }

  /** The share of a core for 20 topics where nothing is committed. */
  private double idle(boolean isFetch) throws Exception {
    Root root = reading();
    List<String> names = IntStream.range(0, 20).mapToObj(number -> "t" + number).toList();
    OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    ExecutorService work = Executors.newFixedThreadPool(2);
    AtomicBoolean isOver = new AtomicBoolean();
    try (CommitWaits waits = new CommitWaits(root, work, Clock.systemUTC())) {
      CommitReader reader = new CommitReader(root, 1_000, Clock.systemUTC());
      if (isFetch) {
        names.forEach(name -> waits.await(Set.of(name), () -> waits.recent(name).isEmpty(), 600_000));
      } else {
        work.execute(() -> {
          while (!isOver.get()) {
            reader.await();
            reader.newest(names);
            reader.refreshed(false);
            pause(SPARK_MS);
          }
        });
      }
      pause(IDLE_MS);
      looks.set(0);
      long began = system.getProcessCpuTime();
      pause(IDLE_MS);
      double share = (system.getProcessCpuTime() - began) / (IDLE_MS * 1e6);
      isOver.set(true);
      return share;
    } finally {
      work.shutdownNow();
    }
  }

  private static void pause(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
