package io.sparklog.sim;

import io.sparklog.storage.MemoryDisk;
import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

/** One topic on one disk, what is true of it, and everything that the seed decides. */
final class World {
  /** The checkpoint of a query as Spark keeps it: what each epoch reads, and the last one that is done. */
  static final class Query {
    final TreeMap<Long, Cut> planned;
    long done;

    Query(TreeMap<Long, Cut> planned, long done) {
      this.planned = planned;
      this.done = done;
    }
  }

  /** The records [{@code first}, {@code end}) of a query's source. */
  record Cut(int first, int end) {
    String input() {
      return String.format("%08x%08x", first, end);
    }
  }

  final long seed;
  /** Whether looks at the disk are spared, and puts without an answer are waited for. */
  final Place place;
  final Random random;
  final MemoryDisk disk;
  final Truth truth;
  final Scheduler scheduler;
  final Lie lie;
  final Map<String, Query> queries = new HashMap<>();
  final TreeMap<String, String> config = new TreeMap<>();
  final int partitions;
  /** How many small segments become one. */
  final int mergedSegments;
  /** After how many versions a checkpoint is due. */
  final int checkpointVersions;
  /** Puts that have no answer yet. */
  final LatePuts unanswered = new LatePuts(this);
  /** Puts that a lie says are over. */
  final LatePuts lied = new LatePuts(this);
  boolean faulty = true;
  boolean powerLost;

  private final PrintStream trace;
  private final List<String> recent = new ArrayList<>();
  private final int oneIn;
  /** Where unlucky actors sleep long, or meet faults: empty in every second world. */
  private final Set<Moment> moments = EnumSet.noneOf(Moment.class);
  private long nowMs = 1_800_000_000_000L;
  private long acts;
  private long hash;

  /** @param trace where each act is printed; may be null */
  World(long seed, Lie lie, Place place, PrintStream trace) {
    this.seed = seed;
    this.place = place;
    this.lie = lie;
    this.trace = trace;
    random = new Random(seed * 0x9E3779B97F4A7C15L >>> 3); // Random gives similar numbers for seeds that follow each other.
    disk = new MemoryDisk(() -> nowMs);
    truth = new Truth(disk);
    scheduler = new Scheduler(random);
    partitions = 1 + random.nextInt(2);
    mergedSegments = 2 + random.nextInt(3);
    oneIn = List.of(40, 120, 120, 400, Integer.MAX_VALUE).get(random.nextInt(5));
    config.putAll(Map.of("partitions", String.valueOf(partitions), "partitioner", "murmur3", "compression.type", "none", "segment.bytes",
        chance(3) ? "1024" : "1048576", "max.message.bytes", "1000", "message.timestamp.type", "CreateTime", "index.interval.bytes",
        "200"));
    if (bindsSlots()) {
      config.put("placement", "on_first_write");
    }
    if (chance(5)) {
      config.put("retention.bytes", "2000");
    }
    config.put("file.delete.delay.ms", List.of("0", "0", "500", "20000").get(random.nextInt(4)));
    if (seed % 2 == 0) {
      checkpointVersions = 3;
    } else {
      checkpointVersions = 1 + random.nextInt(3);
      for (int n = 0; n < 2; n++) {
        moments.add(Moment.values()[random.nextInt(Moment.values().length)]);
      }
    }
  }

  /** Whether keys get their partitions when they are first written. Such a world is one of those whose topic is re-routed. */
  boolean bindsSlots() {
    return seed % 16 == 12 || movesKeys();
  }

  /** Whether the slots of some of these keys are moved. */
  boolean movesKeys() {
    return seed % 16 == 7;
  }

  /** Whether a process that starts is one that is unlucky in this world. */
  boolean isUnlucky() {
    return !moments.isEmpty() && chance(3);
  }

  /** Whether an act is one of those at which things go wrong in this world. */
  boolean isMoment(String call, String name) {
    return moments.stream().anyMatch(moment -> moment.is(call, name));
  }

  boolean chance(int one) {
    return random.nextInt(one) == 0;
  }

  /** Whether an act fails, or its answer is lost. */
  boolean isFault() {
    return faulty && oneIn < Integer.MAX_VALUE && chance(oneIn);
  }

  /** The clock of the disk; it goes on with every act. */
  long nowMs() {
    return nowMs;
  }

  void pass(long ms) {
    nowMs += ms;
  }

  long acts() {
    return acts;
  }

  /** The hash of all acts so far, in their order: the same for the same seed. */
  long hash() {
    return hash;
  }

  void note(String actor, String call, String name) {
    acts++;
    nowMs += random.nextInt(20);
    hash = 31 * (31 * (31 * hash + actor.hashCode()) + call.hashCode()) + name.hashCode();
    if (trace != null) {
      say(actor + " " + call + " " + name);
    }
  }

  /** Tells a step to a developer that replays a seed. */
  void say(String what) {
    if (trace != null) {
      trace.println(String.format("%6d %s", scheduler.step(), what));
    }
  }

  /** Notes that a name came or went: a lie may be about it. */
  void changed(String name) {
    recent.add(name);
    if (recent.size() > 12) {
      recent.remove(0);
    }
  }

  List<String> recent() {
    return recent;
  }
}
