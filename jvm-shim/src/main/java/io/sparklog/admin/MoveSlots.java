package io.sparklog.admin;

import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.partition.SlotMoves;
import java.util.Arrays;
import java.util.List;

/** Moves these slots, whatever the weights of partitions are. FORMAT.md section 5. */
final class MoveSlots extends AdministrativeChange {
  private final TopicLog log;
  private final List<SlotMoves> moves;

  /** @param planned the state that {@code moves} were found for */
  MoveSlots(TopicLog log, State planned, List<SlotMoves> moves) {
    super(log, planned);
    this.log = log;
    this.moves = moves;
  }

  @Override
  boolean isIn(State newest) {
    return moves.stream()
        .allMatch(move -> Arrays.stream(move.slots()).allMatch(slot -> newest.slots().table().partition(slot) == move.to()));
  }

  @Override
  NextVersion change(State newest) {
    requireRouting(newest);
    requireNoNote(newest);
    return new NextVersion(newest, "reroute").move(log, newest.slots(), newest.slots().weights(), moves);
  }

  @Override
  String what() {
    return "the slots of topic " + log.topic();
  }
}
