package io.sparklog.read;

import io.sparklog.log.State;
import java.util.ArrayList;
import java.util.List;

/**
 * What is asked of a partition: offsets that are there, and what else its records must meet.
 *
 * @param condition brought to the partition; TRUE if the offsets say all of it
 */
public record Selection(State state, int partition, Intervals offsets, Condition condition) {
  /** So many runs of offsets of a partition are looked up one by one. */
  private static final int RUNS_MAX = 16;

  /** What of each range meets {@code condition}, as far as the state can tell; nothing for partitions that have nothing of it. */
  public static List<Selection> of(List<OffsetBounds.Range> ranges, Condition condition) {
    List<Selection> selections = new ArrayList<>();
    for (OffsetBounds.Range range : ranges) {
      Condition here = condition.at(range.state().topic(), range.partition());
      Intervals exact = here.offsets().and(Intervals.of(range.start(), range.end() - 1));
      Intervals offsets = exact.coarsened(RUNS_MAX);
      if (offsets.count() > 0) {
        boolean isSaid = offsets.count() == exact.count() && !here.isAboutTime();
        selections.add(new Selection(range.state(), range.partition(), offsets, isSaid ? Condition.TRUE : here));
      }
    }
    return selections;
  }

  /** Whether each of the offsets is a record to hand out, and no other is. */
  public boolean isExact() {
    boolean dense = true;
    for (int run = 0; run < offsets.count(); run++) {
      dense &= state.segments(partition, offsets.first(run), offsets.last(run) + 1).stream().allMatch(segment -> segment.dense());
    }
    return dense && condition == Condition.TRUE;
  }
}
