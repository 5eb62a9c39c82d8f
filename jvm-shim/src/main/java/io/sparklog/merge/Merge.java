package io.sparklog.merge;

import io.sparklog.log.Change;
import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.Step;
import io.sparklog.segment.Segment;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The change that replaces segments by merged segments with the same records. Before each put it drops the parts that the newest state no
 * longer allows. FORMAT.md section 7.
 */
final class Merge implements Change {
  private final State planned;
  private final List<MergePlan.Merged> merged;
  private List<MergePlan.Merged> kept = List.of();

  /** @param planned the state that {@code merged} was made from */
  Merge(State planned, List<MergePlan.Merged> merged) {
    this.planned = planned;
    this.merged = merged;
  }

  /** The version at which the merge is planned, which its data folder is named by. */
  static long plannedVersion(State state) {
    return state.version() + 1;
  }

  @Override
  public Step.Put steps() {
    return Step.Put.MERGE;
  }

  /** Empty if nothing of it holds: it is dropped then. */
  @Override
  public Optional<NextVersion> next(Optional<State> newest) {
    kept = newest.filter(this::mayExtend).map(this::holding).orElse(List.of());
    if (kept.isEmpty()) {
      return Optional.empty();
    }
    NextVersion next = new NextVersion(newest.get(), "merge");
    for (MergePlan.Merged each : kept) {
      List<Segment> live = each.liveIn(newest.get());
      // A segment is routed and ordered only if all are that it takes the place of.
      boolean routed = live.stream().allMatch(Segment::routed);
      boolean ordered = live.stream().allMatch(Segment::ordered);
      next.replace(live, each.added().stream().map(segment -> segment.limited(routed, ordered)).toList());
    }
    return Optional.of(next);
  }

  private boolean mayExtend(State newest) {
    return !newest.isDeleted() && newest.topicId().equals(planned.topicId()) && plannedVersion(planned) >= newest.horizon();
  }

  private List<MergePlan.Merged> holding(State newest) {
    return merged.stream().filter(each -> !each.liveIn(newest).isEmpty()).toList();
  }

  /** Whether other writers were first to replace some of it. */
  boolean isCut() {
    return kept.size() < merged.size();
  }

  /** The result of the version that was asked for last; nothing if the merge was dropped. */
  MergeCounts done() {
    MergeCounts done = MergeCounts.NOTHING;
    for (MergePlan.Merged each : kept) {
      done = done.and(new MergeCounts(each.removed().size(), each.added().size(), each.added().stream().mapToLong(Segment::bytes).sum()));
    }
    return done;
  }

  /** The data files that must stay: the files of that version, and the files that {@code newest} has in their place. */
  Set<String> named(Optional<State> newest) {
    Set<String> named = new HashSet<>();
    kept.forEach(each -> each.added().forEach(segment -> named.add(segment.file())));
    for (MergePlan.Merged each : merged) {
      newest.ifPresent(state -> each.placeIn(state).forEach(segment -> named.add(segment.file())));
    }
    return named;
  }
}
