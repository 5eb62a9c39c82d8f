package io.sparklog.read;

import io.sparklog.log.State;
import io.sparklog.spec.Invariant;
import java.util.ArrayList;
import java.util.List;

/**
 * The offsets that are wanted of a partition.
 *
 * @param state the state of the topic
 * @param offsets of the partition, all of them in the state
 * @param filter what records with these offsets must meet too; all do if the offsets suffice
 */
public record Selection(State state, int partition, Intervals offsets, RecordFilter filter) {
  public Selection {
    int count = offsets.count();
    Invariant.require(
        partition < state.partitions() && (count == 0 || offsets.first(0) >= 0 && offsets.last(count - 1) < state.end(partition)),
        () -> "of partition " + partition + " of " + state + ", offsets that it does not have are to be read: " + offsets);
  }

  /** At most this many runs of offsets of a partition are looked up one by one; of more, the gaps are filtered out. */
  private static final int RUNS_MAX = 16;

  /** The part of each range that meets {@code filter}, as far as the state can tell; partitions without such a part are left out. */
  public static List<Selection> of(List<OffsetRange> ranges, Filter filter) {
    List<Selection> selections = new ArrayList<>();
    for (OffsetRange range : ranges) {
      RecordFilter ofPartition = filter.at(range.state().topic(), range.partition());
      Intervals exact = ofPartition.offsets().and(Intervals.of(range.start(), range.end() - 1));
      Intervals offsets = exact.coarsened(RUNS_MAX);
      if (offsets.count() > 0) {
        boolean offsetsSuffice = offsets.count() == exact.count() && ofPartition.isAboutOffsetsOnly();
        selections.add(new Selection(range.state(), range.partition(), offsets, offsetsSuffice ? RecordFilter.ALL_RECORDS : ofPartition));
      }
    }
    return selections;
  }

  /** The same of a later state; without offsets that have expired since. */
  Selection in(State later) {
    return new Selection(later, partition, offsets.and(Intervals.of(later.start(partition), Long.MAX_VALUE)), filter);
  }

  /** Whether each of the offsets is a record to return, and no other is. */
  public boolean isExact() {
    boolean dense = true;
    for (int run = 0; run < offsets.count(); run++) {
      dense &= state.segments(partition, offsets.first(run), offsets.last(run) + 1).stream().allMatch(segment -> segment.dense());
    }
    return dense && filter.equals(RecordFilter.ALL_RECORDS);
  }

  /** The offsets [{@code start}, {@code end}) of a partition, all of them in the state. */
  public record OffsetRange(State state, int partition, long start, long end) {}
}
