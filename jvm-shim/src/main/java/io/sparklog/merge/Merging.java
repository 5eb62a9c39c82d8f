package io.sparklog.merge;

import io.sparklog.log.Committer;
import io.sparklog.log.Committers;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * Makes few segments of many: a little after a commit, or all that there is when an operator asks. Readers that planned before find the
 * same records in other files. FORMAT.md sections 4 and 7.
 */
public final class Merging {
  /** The most bytes that one version of an operator's merge replaces: the work that is lost if the process dies. */
  private static final long PORTION_BYTES = 1L << 30;

  private static final int PORTION_SEGMENTS = 100_000;

  /** Segments that lose a race are merged in smaller ones the next time, down to this: a small one is done before the next commit. */
  private static final long LEAST_BYTES = 1 << 20;

  /** Batches of this part of the batch size, on average, are tiny. */
  private static final int TINY_PART = 16;

  private final Committers committers;
  private final TopicLog log;

  public Merging(Committers committers) {
    this.committers = committers;
    this.log = committers.log();
  }

  /**
   * Merges the due segments, of at most {@code budgetBytes}: the merge after the commit of {@code version}.
   *
   * @return the version that it put, if any
   */
  public Optional<Version> within(long budgetBytes, long version) throws IOException {
    State state = log.after(version).filter(after -> !after.isDeleted()).map(State::forWriters).orElse(null);
    if (state == null) {
      return Optional.empty(); // It was deleted since the commit.
    }
    return commit(state, MergePlan.due(state, budgetBytes, log.pace().mergedSegments(), damaged(state)), 0).version();
  }

  /**
   * Merges the present segments until nothing is left to merge, into segments of up to the topic's {@code segment.bytes}.
   *
   * @throws PartlogException if a merge cannot be committed; earlier merges stay
   */
  public MergeCounts all() {
    return reported(this::mergeAll);
  }

  private MergeCounts mergeAll() throws IOException {
    Optional<State> begun = log.newest().map(State::forWriters);
    if (begun.isEmpty()) {
      return MergeCounts.NOTHING; // The topic was deleted.
    }
    State first = begun.get();
    MergeCounts done = MergeCounts.NOTHING;
    long limitBytes = first.config().segmentBytes();
    while (true) {
      Optional<State> state = log.newest().filter(newest -> newest.topicId().equals(first.topicId()));
      List<MergePlan.Run> runs = state.isEmpty() ? List.of() : MergePlan.all(state.get(), first, limitBytes, damaged(first));
      if (runs.isEmpty()) {
        return done;
      }
      MergeAttempt outcome = commit(state.get(), portion(runs), 0);
      done = done.and(outcome.done());
      if (outcome.lost()) {
        // Other writers merge the newest segments all the time: a large run that has them might never be done.
        limitBytes = Math.max(limitBytes / 2, LEAST_BYTES);
      }
    }
  }

  /**
   * Writes the tiny batches that are there now again, as batches of up to {@code batchBytes} before compression with the codec of the
   * topic; then {@link #all}. Runs that lose a race stay as they are.
   *
   * @throws PartlogException as {@link #all}
   */
  public MergeCounts rebatch(int batchBytes) {
    return reported(() -> rebatchTiny(batchBytes).and(mergeAll()));
  }

  private MergeCounts rebatchTiny(int batchBytes) throws IOException {
    State state = log.newest().orElseThrow();
    MergeCounts done = MergeCounts.NOTHING;
    List<MergePlan.Run> left = MergePlan.tiny(state, Math.max(1, batchBytes / TINY_PART), damaged(state));
    while (!left.isEmpty()) {
      List<MergePlan.Run> portion = portion(left);
      done = done.and(commit(state, portion, batchBytes).done());
      left = left.subList(portion.size(), left.size());
    }
    return done;
  }

  /**
   * The result that {@link #all} would have for the segments that are there now, or {@link #rebatch} if {@code batchBytes} is above 0.
   *
   * @return with the bytes of the segments that would be replaced; how many replace them is known only without {@code batchBytes}
   */
  public static MergeCounts planned(TopicLog log, int batchBytes) {
    return log.newest().map(state -> planned(log, state, batchBytes)).orElse(MergeCounts.NOTHING);
  }

  private static MergeCounts planned(TopicLog log, State state, int batchBytes) {
    List<MergePlan.Run> runs = new ArrayList<>(MergePlan.all(state, state, state.config().segmentBytes(), damaged(log, state)));
    if (batchBytes > 0) {
      runs.addAll(MergePlan.tiny(state, Math.max(1, batchBytes / TINY_PART), damaged(log, state)));
    }
    Set<Segment> replaced = runs.stream().flatMap(run -> run.segments().stream()).collect(Collectors.toSet());
    return new MergeCounts(replaced.size(), runs.size(), replaced.stream().mapToLong(Segment::bytes).sum());
  }

  private interface Work {
    MergeCounts run() throws IOException;
  }

  private MergeCounts reported(Work work) {
    try {
      return work.run();
    } catch (IOException e) {
      throw PartlogException.io(e, log.store().location(Names.topicFolder(log.topic())));
    }
  }

  /** @param lost whether another writer was first to replace some of it */
  private record MergeAttempt(MergeCounts done, Optional<Version> version, boolean lost) {
    static MergeAttempt nothing(boolean lost) {
      return new MergeAttempt(MergeCounts.NOTHING, Optional.empty(), lost);
    }
  }

  /** Merges {@code runs}, and commits what of it still holds. @param batchBytes 0 to keep the batches */
  private MergeAttempt commit(State state, List<MergePlan.Run> runs, int batchBytes) throws IOException {
    if (runs.isEmpty()) {
      return MergeAttempt.nothing(false);
    }
    String txn = committers.identity();
    Committer committer = committers.as(txn);
    boolean settled = false;
    Merge merge = new Merge(state, List.of());
    try (MergeWriter writer = new MergeWriter(log.store(), state, txn, batchBytes, (segment, why) -> leave(state, segment, why))) {
      try {
        merge = new Merge(state, writer.write(runs));
        Optional<Version> version = committer.commit(merge);
        settled = true;
        return new MergeAttempt(merge.done(), version, merge.isCut());
      } catch (SegmentGone e) {
        return MergeAttempt.nothing(!isMissing(state, e));
      } catch (NoSuchFileException e) {
        if (isWanted(state)) {
          throw e;
        }
        return MergeAttempt.nothing(false); // Its folder went with the topic, or in a vacuum.
      } finally {
        if (settled) {
          writer.deleteAllBut(merge.named(log.newest()));
        } else if (!committer.putTried()) {
          writer.deleteAllBut(Set.of());
        } // Otherwise a put may have taken effect: a vacuum will tell.
      }
    }
  }

  /** Whether a merge that was planned on {@code state} may still commit. */
  private boolean isWanted(State state) {
    return log.newest().filter(newest -> newest.topicId().equals(state.topicId()) && state.version() + 1 >= newest.horizon()).isPresent();
  }

  /** Whether a data file that is gone should be there. Otherwise another process merged its segments. */
  private boolean isMissing(State state, SegmentGone gone) {
    Segment segment = gone.segment();
    boolean live = log.newest()
        .filter(newest -> segment.partition() < newest.partitions())
        .map(newest -> newest.segments(segment.partition(), segment.base(), segment.end()))
        .filter(found -> found.stream().anyMatch(left -> left.file().equals(segment.file())))
        .isPresent();
    if (live) {
      leave(state, segment, gone.missing());
    }
    return live;
  }

  /** Notes a segment that cannot be read, so that it is not tried again. */
  private void leave(State state, Segment segment, PartlogException why) {
    if (log.hints(state).damaged().add(segment)) {
      Warnings.warn(Merging.class, "a segment that cannot be read is left as it is, and not merged with its neighbours: {}",
          why.getMessage());
    }
  }

  private Predicate<Segment> damaged(State state) {
    return damaged(log, state);
  }

  private static Predicate<Segment> damaged(TopicLog log, State state) {
    Set<Segment> damaged = log.hints(state).damaged();
    return segment -> !damaged.isEmpty() && damaged.contains(segment);
  }

  private static List<MergePlan.Run> portion(List<MergePlan.Run> runs) {
    long bytes = 0;
    long segments = 0;
    int end = 0;
    while (end < runs.size() && (end == 0 || bytes < PORTION_BYTES && segments < PORTION_SEGMENTS)) {
      bytes += runs.get(end).bytes();
      segments += runs.get(end).segments().size();
      end++;
    }
    return runs.subList(0, end);
  }
}
