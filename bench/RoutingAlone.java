import io.sparklog.admin.Administration;
import io.sparklog.admin.RerouteTime;
import io.sparklog.log.NextVersion;
import io.sparklog.routing.RoutingChange;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.routing.Partitioner;
import io.sparklog.routing.Router;
import io.sparklog.routing.SlotMoves;
import io.sparklog.routing.SlotTable;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.Repeatable;
import io.sparklog.upkeep.TopicWork;
import java.time.Clock;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Scanner;
import java.util.TreeMap;
import java.util.concurrent.FutureTask;
import java.util.stream.LongStream;

/**
 * The cost of routing without Spark: does whatever each line of standard input asks for, and answers with a line.
 *
 * <ul>
 * <li>{@code keys <number>}: makes {@code number} random keys of 16 bytes.
 * <li>{@code modulo}, {@code table}: routes each of them once, to 8 partitions. Answers how many went to the last one.
 * <li>{@code reroute <root> <topic> <number>}: makes {@code number} re-routes, each of which sets a weight to 2 or back to 1.
 * <li>{@code slots <root> <topic> <number>}: makes the first re-route of a topic, which gets {@code number} slots. Versions follow
 * until a checkpoint is due.
 * <li>{@code load <root> <topic>}: loads the newest state as a process that does not know it. Answers with µs, bytes of heap and the
 * routing epoch.
 * </ul>
 */
final class RoutingAlone {
  private static final int KEY_BYTES = 16;
  private static final int PARTITIONS = 8;

  private static byte[] keys = {};

  public static void main(String[] arguments) throws Exception {
    Router modulo = new Router(Partitioner.MURMUR3, PARTITIONS);
    Router table = new Router(Partitioner.MURMUR3, false, 2, levelled(), equal());
    for (Scanner lines = new Scanner(System.in); lines.hasNextLine();) {
      String[] words = lines.nextLine().split(" ");
      System.out.println(switch (words[0]) {
        case "keys" -> make(Integer.parseInt(words[1]));
        case "modulo" -> route(modulo);
        case "table" -> route(table);
        case "reroute" -> reroute(words[1], words[2], Integer.parseInt(words[3]));
        case "slots" -> slots(words[1], words[2], Integer.parseInt(words[3]));
        case "load" -> load(words[1], words[2]);
        default -> throw new IllegalArgumentException(words[0]);
      });
    }
  }

  private static int[] equal() {
    int[] weights = new int[PARTITIONS];
    Arrays.fill(weights, 1);
    return weights;
  }

  /** A table in which slots have moved, and each partition has as many as before. */
  private static SlotTable levelled() {
    int[] more = equal();
    more[0] = 3;
    SlotTable table = SlotTable.modulo(PARTITIONS);
    SlotTable moved = table.after(table.replan(more));
    return moved.after(moved.replan(equal()));
  }

  private static int make(int number) {
    keys = new byte[number * KEY_BYTES];
    new Random(42).nextBytes(keys);
    return number;
  }

  private static int route(Router router) {
    int last = 0;
    for (int at = 0; at < keys.length; at += KEY_BYTES) {
      last += router.ofKey(keys, at, KEY_BYTES) == PARTITIONS - 1 ? 1 : 0;
    }
    return last;
  }

  /** More slots than a writer gives a topic of few partitions. */
  private static int slots(String root, String topic, int slots) {
    TopicLog log = new TopicLog(Stores.open(root), topic);
    TopicWork work = new TopicWork(log, Clock.systemUTC(), new Random(1));
    work.commit((Repeatable) newest -> {
      int[] weights = newest.orElseThrow().routing().weights();
      SlotTable table = SlotTable.modulo(weights.length, slots);
      weights[0] = 2;
      List<SlotMoves> moves = table.replan(weights);
      return Optional.of(new NextVersion(newest.orElseThrow(), "reroute")
          .routing(new RoutingChange.Reroute(1, slots, weights, moves, table.after(moves).crc())));
    });
    for (int n = 1; n <= 100; n++) {
      new Administration(work).configure(Map.of("segment.ms", Integer.toString(n)));
    }
    return log.latest().orElseThrow().routing().table().slots();
  }

  private static int reroute(String root, String topic, int number) {
    TopicLog log = new TopicLog(Stores.open(root), topic);
    Administration administration = new Administration(new TopicWork(log, Clock.systemUTC(), new Random(1)));
    for (int n = 0; n < number; n++) {
      int partition = n / 2 % log.latest().orElseThrow().partitions();
      administration.reroute(new TreeMap<>(Map.of(partition, 2L - n % 2)), RerouteTime.NOW, false);
    }
    return log.latest().orElseThrow().routing().epoch();
  }

  private record Loaded(State state, long nanos) {}

  /** In a thread of its own: the buffers that a thread keeps for its next load go with it. */
  private static Loaded loaded(String root, String topic) throws Exception {
    FutureTask<Loaded> load = new FutureTask<>(() -> {
      TopicLog log = new TopicLog(Stores.open(root), topic);
      long began = System.nanoTime();
      State state = log.latest().orElseThrow();
      return new Loaded(state, System.nanoTime() - began);
    });
    new Thread(load).start();
    return load.get();
  }

  /** The median of several loads after one that loads classes. */
  private static String load(String root, String topic) throws Exception {
    loaded(root, topic);
    long before = used();
    long[] took = new long[5];
    State state = null;
    for (int n = 0; n < took.length; n++) {
      Loaded loaded = loaded(root, topic);
      state = loaded.state();
      took[n] = loaded.nanos();
    }
    long bytes = used() - before;
    return LongStream.of(took).sorted().toArray()[took.length / 2] / 1_000 + " " + bytes + " " + state.routing().epoch();
  }

  private static long used() throws InterruptedException {
    for (int n = 0; n < 3; n++) {
      System.gc();
      Thread.sleep(20);
    }
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }
}
