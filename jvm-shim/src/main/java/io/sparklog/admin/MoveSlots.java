package io.sparklog.admin;

import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.routing.Routing;
import io.sparklog.routing.SlotTable;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/** Moves slots that are named, and leaves the weights of partitions as they are. FORMAT.md section A.5. */
final class MoveSlots extends AdministrativeChange {
  private static final String MOVES = "moves";

  /** By slot, the partition that it moves to. */
  private final SortedMap<Integer, Integer> moves;

  /**
   * @param planned the state that {@code moves} were found for
   * @throws PartlogException PARTITION_NOT_FOUND; PARTITION_CLOSED; OPTION_VALUE if no slot is named, and for a slot that does not exist or
   *     has no partition yet
   */
  MoveSlots(TopicLog log, State planned, SortedMap<Integer, Integer> moves) {
    super(log, planned, "the slots");
    this.moves = moves;
    if (moves.isEmpty()) {
      throw Option.invalidValue(MOVES, "{}", "it must name a slot");
    }
    moves.forEach((slot, partition) -> require(planned, slot, partition));
  }

  private void require(State planned, int slot, int partition) {
    Routing routing = planned.routing();
    int slots = routing.table().slots();
    if (slot < 0 || slot >= slots) {
      throw Option.invalidValue(MOVES, slot + ": " + partition,
          "topic " + log.topic() + " has the slots 0 to " + (slots - 1) + ": name one of them");
    }
    if (routing.table().partition(slot) == SlotTable.UNBOUND) {
      throw Option.invalidValue(MOVES, slot + ": " + partition,
          "slot " + slot + " has no partition yet, and gets one with the first record of its keys: write that first");
    }
    planned.requirePartition(MOVES, log.store().root(), partition);
    if (routing.weights()[partition] == 0) {
      throw PartlogException.of("PARTITION_CLOSED", "partition", partition, "topic", log.topic(), "root", log.store().root());
    }
  }

  private SortedMap<Integer, Integer> left(State newest) {
    SortedMap<Integer, Integer> left = new TreeMap<>(moves);
    left.entrySet().removeIf(move -> newest.routing().table().partition(move.getKey()) == move.getValue());
    return left;
  }

  @Override
  boolean isIn(State newest) {
    return left(newest).isEmpty();
  }

  @Override
  NextVersion change(State newest) throws IOException {
    requireRouting(newest);
    newest.pendingWeights().ifPresent(weights -> {
      throw PartlogException.of("REROUTE_PENDING", "topic", log.topic(), "root", log.store().root(), "weights", Arrays.toString(weights));
    });
    return NextVersion.rerouting(log, newest, newest.routing().weights(), SlotTable.SlotMoves.of(left(newest)), Map.of());
  }
}
