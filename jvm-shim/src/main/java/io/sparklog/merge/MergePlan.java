package io.sparklog.merge;

import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.Segment;
import io.sparklog.spec.Invariant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/**
 * Which neighbouring segments should become one. Looks at each live segment once, and at no file.
 *
 * <p>A segment has a level: 0 below 64 KiB, and one more for each factor of 8. As soon as a partition has 8 segments of a low level, with
 * only lower levels between them, they become one segment of a higher level. More than 32 neighbours are too many, at any levels. So each
 * byte is copied a few times at most, and few small segments are left at any time, for any sizes of writes.
 *
 * <p>Only segments of one group of {@link TimeGroups} become one segment, so records do not stay much longer than retention allows.
 * Segments on both sides of a re-route's cut do not become one, so keys of a segment are routed alike. An older group gets no more
 * segments, so all its small neighbours become one at once.
 *
 * <p>Segments of half the limit or more are not merged: the result would be too large. Any two of the others fit into one segment. A
 * stretch of neighbours ends at such a segment, at a segment with stored offsets, and at a segment that is known to be damaged. Segments
 * wholly below the log start offset are not looked at.
 */
public final class MergePlan {
  private static final int SMALL_BYTES_LOG = 16;
  private static final int LEVEL_FACTOR_LOG = 3;
  private static final int LEVELS = 3;
  /** More neighbours than this many times the due number of one level are too many, at any levels. */
  private static final int ROWS_MAX = 4;

  /** The cost of opening a data file, in bytes that could be copied in that time: a thousand tiny segments are not free. */
  private static final int OPEN_BYTES = 16 << 10;

  private static final long OFFSETS_MAX = Integer.MAX_VALUE;

  /** Bounds the version that replaces them. FORMAT.md section 10. */
  private static final int SEGMENTS_MAX = 100_000;

  /** Neighbours of one partition that become one segment; where batches are written again, this may be a single one. */
  public record Run(List<Segment> segments) {
    public Run {
      requireNeighbours(segments);
    }

    int partition() {
      return segments.get(0).partition();
    }

    public long bytes() {
      return segments.stream().mapToLong(Segment::bytes).sum();
    }

    private long cost() {
      return segments.stream().mapToLong(MergePlan::cost).sum();
    }
  }

  private final long limitBytes;
  private final long budgetBytes;
  private final long spanMs;
  private final int ofOneLevel;
  private final Predicate<Segment> damaged;
  private final Predicate<Segment> afterCut;

  /**
   * @param limitBytes of one segment
   * @param budgetBytes of all that is merged at once
   * @param spanMs how far apart the times of a group may lie
   * @param ofOneLevel how many segments of one level become one
   * @param damaged tells segments that must be left alone
   * @param afterCut tells segments that begin where a re-route cut their partition
   */
  public MergePlan(long limitBytes, long budgetBytes, long spanMs, int ofOneLevel, Predicate<Segment> damaged,
      Predicate<Segment> afterCut) {
    this.limitBytes = limitBytes;
    this.budgetBytes = budgetBytes;
    this.spanMs = spanMs;
    this.ofOneLevel = ofOneLevel;
    this.damaged = damaged;
    this.afterCut = afterCut;
  }

  /** The merges that are due in one commit: at most one run of each partition, of {@code budgetBytes} together. */
  public static List<Run> due(State state, long budgetBytes, int ofOneLevel, Predicate<Segment> damaged) {
    TopicConfig config = state.config();
    long limitBytes = Math.min(budgetBytes, config.segmentBytes());
    return new MergePlan(limitBytes, budgetBytes, TimeGroups.spanMs(config), ofOneLevel, damaged, state::isAfterCut).due(live(state));
  }

  /**
   * All that an operator merges: it becomes as few segments as possible, of at most {@code limitBytes} each.
   *
   * @param before only segments that hold nothing newer than this state
   */
  static List<Run> all(State state, State before, long limitBytes, Predicate<Segment> damaged) {
    MergePlan plan = new MergePlan(limitBytes, Long.MAX_VALUE, TimeGroups.spanMs(state.config()), 2, damaged, state::isAfterCut);
    return plan.packed(live(state),
        segment -> segment.partition() < before.partitions() && segment.end() <= before.end(segment.partition()) && plan.mayMerge(segment));
  }

  /** The segments whose batches have fewer than {@code batchBytes} on average, in runs of up to the topic's {@code segment.bytes}. */
  static List<Run> tiny(State state, int batchBytes, Predicate<Segment> damaged) {
    TopicConfig config = state.config();
    MergePlan plan = new MergePlan(config.segmentBytes(), Long.MAX_VALUE, TimeGroups.spanMs(config), 1, damaged, state::isAfterCut);
    return plan.packed(live(state), segment -> plan.mayRead(segment) && segment.bytes() / segment.batches() < batchBytes);
  }

  private static List<List<Segment>> live(State state) {
    return IntStream.range(0, state.partitions()).mapToObj(p -> state.segments(p, state.start(p), state.end(p))).toList();
  }

  private boolean mayRead(Segment segment) {
    return segment.dense() && !damaged.test(segment);
  }

  private boolean mayMerge(Segment segment) {
    return segment.bytes() < limitBytes / 2 && offsets(segment) <= OFFSETS_MAX / 2 && mayRead(segment);
  }

  /** Those with most segments come first: they have waited longest. @param partitions the live segments of each */
  public List<Run> due(List<List<Segment>> partitions) {
    List<List<Segment>> longest = partitions.stream()
        .filter(live -> live.size() > 1)
        .sorted(Comparator.comparingInt((List<Segment> live) -> live.size()).reversed())
        .toList();
    List<Run> runs = new ArrayList<>();
    long left = budgetBytes;
    for (List<Segment> live : longest) {
      Run run = dueIn(live);
      if (run != null && run.cost() <= left) {
        runs.add(run);
        left -= run.cost();
      }
    }
    return runs;
  }

  /** The run that is due in the oldest stretch that has one; null if none has. */
  private Run dueIn(List<Segment> live) {
    List<List<Segment>> groups = groups(live);
    for (int i = 0; i < groups.size(); i++) {
      List<Segment> group = groups.get(i);
      boolean newest = i == groups.size() - 1;
      for (int first = 0; first < group.size();) {
        int end = endOfStretch(group, first, this::mayMerge);
        List<Segment> stretch = group.subList(first, end);
        Run run = stretch.size() < 2 ? null : newest ? dueOf(stretch) : fitting(stretch);
        if (run != null && run.segments().size() > 1) {
          return run;
        }
        first = end + 1;
      }
    }
    return null;
  }

  /** Segments of one group only may become one. */
  private List<List<Segment>> groups(List<Segment> live) {
    List<List<Segment>> groups = new ArrayList<>();
    for (List<Segment> group : TimeGroups.of(live, spanMs)) {
      int first = 0;
      for (int i = 1; i < group.size(); i++) {
        if (afterCut.test(group.get(i))) {
          groups.add(group.subList(first, i));
          first = i;
        }
      }
      groups.add(group.subList(first, group.size()));
    }
    return groups;
  }

  private static int endOfStretch(List<Segment> group, int first, Predicate<Segment> within) {
    int end = first;
    while (end < group.size() && within.test(group.get(end))) {
      end++;
    }
    return end;
  }

  private Run dueOf(List<Segment> stretch) {
    Level[] levels = IntStream.range(0, LEVELS).mapToObj(level -> new Level()).toArray(Level[]::new);
    long bytes = 0;
    for (int i = 0; i < stretch.size(); i++) {
      bytes += stretch.get(i).bytes();
      int level = level(stretch.get(i).bytes());
      for (int lower = 0; lower < Math.min(level, LEVELS); lower++) {
        levels[lower].interrupt(ofOneLevel);
      }
      if (level < LEVELS) {
        levels[level].add(i);
      }
    }
    for (Level level : levels) {
      level.interrupt(ofOneLevel);
      if (level.due != null) {
        return fitting(stretch.subList(level.due.first(), level.due.last() + 1));
      }
    }
    if (bytes >= limitBytes) {
      return fitting(stretch);
    }
    int most = ROWS_MAX * ofOneLevel;
    return stretch.size() > most ? fitting(stretch.subList(0, most)) : null;
  }

  private record Row(int first, int last) {}

  /** The segments of one level, and the oldest row of them that is due. A higher level interrupts a row, a lower one does not. */
  private static final class Level {
    private Row due;
    private int first;
    private int last;
    private int count;

    void add(int at) {
      first = count == 0 ? at : first;
      last = at;
      count++;
    }

    void interrupt(int enough) {
      if (due == null && count >= enough) {
        due = new Row(first, last);
      }
      count = 0;
    }
  }

  static int level(long bytes) {
    long small = bytes >>> SMALL_BYTES_LOG;
    return small == 0 ? 0 : 1 + (63 - Long.numberOfLeadingZeros(small)) / LEVEL_FACTOR_LOG;
  }

  /** The oldest of {@code neighbours} that fit into one segment and into the budget, at least one. */
  private Run fitting(List<Segment> neighbours) {
    long bytes = 0;
    long offsets = 0;
    long cost = 0;
    int end = 0;
    while (end < Math.min(neighbours.size(), SEGMENTS_MAX)) {
      Segment next = neighbours.get(end);
      bytes += next.bytes();
      offsets += offsets(next);
      cost += cost(next);
      if (bytes > limitBytes || offsets > OFFSETS_MAX || cost > budgetBytes) {
        break;
      }
      end++;
    }
    return new Run(neighbours.subList(0, Math.max(end, 1)));
  }

  /** As few runs as possible, of at least {@link #ofOneLevel} neighbours that are all {@code within}. */
  private List<Run> packed(List<List<Segment>> partitions, Predicate<Segment> within) {
    List<Run> runs = new ArrayList<>();
    List<List<Segment>> groups = partitions.stream().flatMap(live -> groups(live).stream()).toList();
    for (List<Segment> group : groups) {
      for (int first = 0; first < group.size();) {
        int end = endOfStretch(group, first, within);
        while (first < end) {
          Run run = fitting(group.subList(first, end));
          first += run.segments().size();
          if (run.segments().size() >= ofOneLevel) {
            runs.add(run);
          }
        }
        first = end + 1;
      }
    }
    return runs;
  }

  /** Requires that segments are at least one, and that each begins where the one before it ends. */
  static void requireNeighbours(List<Segment> segments) {
    Invariant.require(!segments.isEmpty(), () -> "no segments are to be merged");
    for (int i = 1; i < segments.size(); i++) {
      Segment before = segments.get(i - 1);
      Segment next = segments.get(i);
      Invariant.require(before.partition() == next.partition() && before.end() == next.base(),
          () -> "segments that are merged do not follow one another: " + before + " and " + next);
    }
  }

  private static long cost(Segment segment) {
    return Math.max(segment.bytes(), OPEN_BYTES);
  }

  private static long offsets(Segment segment) {
    return segment.end() - segment.base();
  }

  /**
   * Neighbouring segments of one partition, and the segments that replace these with the same records.
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
          () -> "a merge of the offsets " + first.base() + " to " + last.end() + " of partition " + first.partition() + " has made "
              + added);
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
}
