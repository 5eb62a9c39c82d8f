package io.sparklog.merge;

import io.sparklog.log.State;
import io.sparklog.segment.Segment;
import io.sparklog.spec.Invariant;
import java.util.List;

/**
 * Segments of one partition that follow one another, and the segments that replace them with the same records.
 *
 * @param removed by base offset, as {@code added}
 */
record Merged(List<Segment> removed, List<Segment> added) {
  Merged {
    MergePlan.requireNeighbours(removed);
    MergePlan.requireNeighbours(added);
    Segment first = removed.get(0);
    Segment last = removed.get(removed.size() - 1);
    Invariant.require(
        added.get(0).partition() == first.partition() && added.get(0).base() == first.base()
            && added.get(added.size() - 1).end() == last.end(),
        () -> "a merge of the offsets " + first.base() + " to " + last.end() + " of partition " + first.partition() + " has made " + added);
    Invariant.require(records(removed) == records(added),
        () -> "a merge of " + records(removed) + " records has made " + records(added) + ": " + removed + " has become " + added);
  }

  private static long records(List<Segment> segments) {
    return segments.stream().mapToLong(Segment::records).sum();
  }

  /** The removed segments as {@code state} has them; empty if any of them is no longer live. */
  List<Segment> liveIn(State state) {
    List<Segment> live = placeIn(state);
    boolean same = live.size() == removed.size();
    for (int i = 0; same && i < live.size(); i++) {
      same = live.get(i).position() == removed.get(i).position() && live.get(i).file().equals(removed.get(i).file());
    }
    return same ? live : List.of();
  }

  /** The segments that hold these offsets in {@code state}. */
  List<Segment> placeIn(State state) {
    Segment first = removed.get(0);
    Segment last = removed.get(removed.size() - 1);
    return first.partition() < state.partitions() ? state.segments(first.partition(), first.base(), last.end()) : List.of();
  }
}
