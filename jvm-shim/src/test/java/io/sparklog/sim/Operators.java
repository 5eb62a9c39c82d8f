package io.sparklog.sim;

import io.sparklog.admin.Administration;
import io.sparklog.admin.Vacuum;
import io.sparklog.log.Committers;
import io.sparklog.log.State;
import io.sparklog.merge.Merging;
import io.sparklog.routing.SlotTable;
import io.sparklog.spec.PartlogException;
import io.sparklog.upkeep.TopicWork;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The actors that clean up, delete and change the topic. */
final class Operators {
  /**
   * The errors that a call may give without any fault: the topic is another one, or its version files were deleted while the caller slept.
   */
  private static final Set<String> EXPECTED = Set.of("TOPIC_NOT_FOUND", "TOPIC_RECREATED", "COMMIT_UNKNOWN", "OFFSETS_OUT_OF_RANGE",
      "PARTITION_NOT_FOUND", "OPTION_VALUE", "REROUTED");

  /** Worlds whose topic is re-routed. The others need the same acts as ever: the seeds of broken rules are searched among them. */
  private static final Set<Long> REROUTED = Set.of(7L, 9L, 10L, 12L);

  private Operators() {}

  static void start(World world) {
    Process.start(world, "records", process -> call(process, 300, Operators::deleteRecords));
    for (int n = 0; n < 3; n++) {
      Process.start(world, "merger" + n, process -> call(process, 400, Operators::merge));
    }
    if (world.chance(3)) {
      Process.start(world, "remover", process -> call(process, 500, Operators::deleteTopic));
    }
    if (world.chance(2)) {
      Process.start(world, "vacuum", process -> {
        for (int n = 0; n < 4; n++) {
          call(process, 300, Operators::vacuum);
        }
      });
    }
    if (world.chance(4)) {
      Process.start(world, "config", process -> call(process, 300, Operators::configure));
    }
    if (world.bindsSlots()) {
      startSharing(world);
    }
    if (world.movesKeys()) {
      Process.start(world, "mover", process -> {
        for (int n = 0; n < 8; n++) {
          call(process, 80, Operators::moveKeys);
        }
      });
    }
    if (isRerouted(world)) {
      Process.start(world, "router", process -> {
        for (int n = 0; n < 4; n++) {
          call(process, 150, Operators::reroute);
        }
      });
    }
  }

  /** Shares for the slots that are bound next. */
  private static void share(Process process) {
    State state = process.latest().filter(latest -> !latest.isDeleted()).orElse(null);
    if (state == null) {
      return;
    }
    String shares = IntStream.range(0, state.partitions())
        .mapToObj(p -> Integer.toString(state.router().isOpen(p) ? process.world.random.nextInt(4) : 0))
        .collect(Collectors.joining(","));
    long until = process.clock.millis() + 100 + process.world.random.nextInt(2000);
    of(process).configure(Map.of("placement.shares", state.routing().epoch() + ":" + until + ":" + shares));
  }

  /** Slots of keys that are written of late, not to partitions that are closed one day. */
  private static void moveKeys(Process process) {
    State state = process.latest().filter(latest -> !latest.isDeleted()).orElse(null);
    if (state == null) {
      return;
    }
    Random random = process.world.random;
    SlotTable table = state.routing().table();
    int to = random.nextInt(process.world.partitions);
    TreeMap<Integer, Integer> moves = new TreeMap<>();
    IntStream.range(0, 8)
        .map(n -> table.slot(state.config().partitioner(), Homes.key(Homes.keyed(process.world, ""))))
        .filter(slot -> table.partition(slot) != SlotTable.UNBOUND)
        .forEach(slot -> moves.put(slot, to));
    if (!moves.isEmpty()) {
      of(process).move(state, moves, false);
    }
  }

  private static boolean isRerouted(World world) {
    return REROUTED.contains(world.seed % 16);
  }

  private static void startSharing(World world) {
    Process.start(world, "sharer", process -> {
      for (int n = 0; n < 12; n++) {
        call(process, 40, Operators::share);
      }
    });
  }

  private interface Call {
    void on(Process process) throws PartlogException;
  }

  private static void call(Process process, int acts, Call call) {
    process.sleep(20 + process.world.random.nextInt(acts));
    int faults = process.faults();
    try {
      call.on(process);
    } catch (PartlogException e) {
      process.excuse(e, faults, EXPECTED);
    }
  }

  private static Administration of(Process process) {
    return new Administration(new TopicWork(process.log(), process.clock, process.world.random));
  }

  private static void deleteRecords(Process process) {
    State state = process.latest().filter(latest -> !latest.isDeleted()).orElse(null);
    if (state == null) {
      return;
    }
    TreeMap<Integer, Long> offsets = new TreeMap<>();
    for (int p = 0; p < state.partitions(); p++) {
      offsets.put(p, state.start(p) + process.world.random.nextInt((int) (state.end(p) - state.start(p)) + 1));
    }
    of(process).deleteRecords(offsets, new TreeMap<>(), false);
  }

  private static void merge(Process process) {
    if (process.latest().filter(latest -> !latest.isDeleted()).isPresent()) {
      new Merging(new Committers(process.log(), process.clock, process.world.random)).all();
    }
  }

  private static void deleteTopic(Process process) {
    of(process).delete(false);
  }

  /** All that is there by now is old enough, also if it is still being written. */
  private static void vacuum(Process process) {
    process.world.pass(Vacuum.OLDER_THAN_MIN.toMillis());
    new Vacuum(new TopicWork(process.log(), process.clock, process.world.random)).run(Vacuum.OLDER_THAN_MIN, false);
  }

  /** Closes only partitions that were added: writers name the others. */
  private static void reroute(Process process) {
    State state = process.latest().filter(latest -> !latest.isDeleted()).orElse(null);
    if (state == null) {
      return;
    }
    Random random = process.world.random;
    int one = random.nextInt(state.partitions());
    if (one >= process.world.partitions && state.router().isOpen(one)) {
      of(process).closePartitions(Set.of(one), Administration.RerouteTime.NOW, false);
    } else if (random.nextBoolean() && state.partitions() < 5) {
      of(process).addPartitions(state.partitions() + 1, Administration.RerouteTime.NOW, false);
    } else {
      of(process).reroute(new TreeMap<>(Map.of(random.nextInt(process.world.partitions), 1L + random.nextInt(4))),
          Administration.RerouteTime.NOW, false);
    }
  }

  private static void configure(Process process) {
    if (process.world.chance(2)) {
      of(process).configure(Map.of("file.delete.delay.ms", "100"));
    } else if (process.latest().isPresent()) {
      of(process).addPartitions(3, Administration.RerouteTime.NOW, false);
    }
  }
}
