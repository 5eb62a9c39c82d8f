import io.sparklog.log.Change;
import io.sparklog.log.NextVersion;
import io.sparklog.log.Root;
import io.sparklog.log.Sequences;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Offsets;
import io.sparklog.segment.Segment;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * The commits of a server, without clients, to topics that know few producers and many:
 * {@code <folder> <seconds of a round> <rounds> <producers>…}.
 *
 * <p>Each commit adds a batch of a producer that the topic knows, in a data file of its own. The upkeep is done as a server does it: with
 * checkpoints, beside the commits, a second after the first commit that it follows. Prints for each round and topic its producers, and the
 * commits a second.
 */
final class ProducersAlone {
  private static final int SENT_AT_ONCE = 100_000;
  private static final int BYTES = 1_000;

  private final Clock clock = Clock.systemUTC();
  private final Random random = new Random(1);
  private final ScheduledExecutorService threads = Executors.newSingleThreadScheduledExecutor(work -> {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    return thread;
  });
  private final Path folder;
  private final String name;
  private final int producers;
  private final TopicLog log;
  private final TopicWork work;
  private final Path data;
  private final int[] next;
  private TopicWork.Begun owed;
  private CompletableFuture<Void> upkeep = CompletableFuture.completedFuture(null);
  private int files;

  private ProducersAlone(Path folder, int producers) throws IOException {
    this.folder = folder;
    this.producers = producers;
    this.name = "producers-" + producers;
    this.log = new Root(Stores.open(folder.toString())).topic(name);
    this.work = new TopicWork(log, clock, random);
    this.next = new int[producers];
    Map<String, String> config = new TreeMap<>(
        Map.of("partitions", "1", "partitioner", "murmur2", "compression.type", "none", "segment.bytes", "1073741824", "max.message.bytes",
            "1048588", "message.timestamp.type", "CreateTime", "index.interval.bytes", "4096", "kafka.view", "none"));
    config.put("producer.ids.max", "1000000");
    String id = work.identity();
    work.commit((Change.Administrative) newest -> newest.isPresent()
        ? Optional.empty()
        : Optional.of(NextVersion.beginning(log, newest, id, TopicConfig.of(config), "create")));
    this.data = Files.createDirectories(folder.resolve("_partlog/" + name + "/data/" + "0".repeat(20) + "-" + work.identity()));
    for (int first = 0; first < producers; first += SENT_AT_ONCE) {
      send(first, Math.min(producers, first + SENT_AT_ONCE)).followed();
    }
  }

  /** Commits a batch of a record of each of these producers. */
  private TopicWork.Begun send(int from, int to) {
    return work.begin(new Change() {
      private String file;

      @Override
      public boolean needsProducers() {
        return true;
      }

      @Override
      public void prepare() throws IOException {
        String written = "t0-" + files++ + ".log";
        try (FileChannel channel = FileChannel.open(data.resolve(written), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
          channel.write(ByteBuffer.wrap(new byte[BYTES]));
          channel.force(false);
        }
        file = "data/" + data.getFileName() + "/" + written;
      }

      @Override
      public void settled() {
        for (int id = from; id < to; id++) {
          next[id]++;
        }
      }

      @Override
      public Optional<NextVersion> next(Optional<State> newest) {
        State state = newest.orElseThrow();
        Sequences sequences = new Sequences(state);
        for (int id = from; id < to; id++) {
          Sequences.Decision decision = sequences.next(0, id, 0, next[id], 1, state.end(0) + id - from);
          if (decision.answer() != Sequences.Verdict.NEW) {
            throw new IllegalStateException("producer " + id + ": " + decision);
          }
        }
        NextVersion version = new NextVersion(state, "write").send(sequences);
        long records = to - from;
        version.append(new Segment(0, file, 0, 61 * records, 0, records, records, (int) records, 0, 0, Offsets.DENSE, false, false, 0));
        return Optional.of(version);
      }
    }, work.identity(), 0);
  }

  /** Does the upkeep later, as a server does it. */
  private synchronized void owe(TopicWork.Begun begun) {
    owed = begun;
    if (upkeep.isDone()) {
      upkeep = new CompletableFuture<>();
      threads.schedule(this::keepUp, 1, TimeUnit.SECONDS);
    }
  }

  private void keepUp() {
    TopicWork.Begun run;
    synchronized (this) {
      run = owed;
      owed = null;
    }
    run.followed();
    synchronized (this) {
      upkeep.complete(null);
      if (owed != null) {
        owe(owed);
      }
    }
  }

  /** @return commits a second */
  private double round(double seconds) throws Exception {
    long began = System.nanoTime();
    int commits = 0;
    while (System.nanoTime() - began < seconds * 1e9) {
      int id = random.nextInt(producers);
      owe(send(id, id + 1));
      commits++;
    }
    double rate = commits / ((System.nanoTime() - began) / 1e9);
    while (true) { // The other topic must not pay for what this one owes.
      CompletableFuture<Void> last;
      synchronized (this) {
        last = upkeep;
      }
      last.get();
      synchronized (this) {
        if (upkeep.isDone()) {
          return rate;
        }
      }
    }
  }

  public static void main(String[] words) throws Exception {
    Path folder = Path.of(words[0]);
    double seconds = Double.parseDouble(words[1]);
    List<ProducersAlone> topics = new ArrayList<>();
    for (int i = 3; i < words.length; i++) {
      topics.add(new ProducersAlone(folder, Integer.parseInt(words[i])));
    }
    int rounds = Integer.parseInt(words[2]);
    for (int round = -1; round < rounds; round++) {
      for (int i = 0; i < topics.size(); i++) {
        double rate = topics.get(i).round(seconds);
        if (round >= 0) { // The first round warms up.
          System.out.printf(Locale.ROOT, "%d %.1f%n", topics.get(i).producers, rate);
        }
      }
    }
  }
}
