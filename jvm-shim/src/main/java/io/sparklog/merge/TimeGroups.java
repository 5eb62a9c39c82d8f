package io.sparklog.merge;

import io.sparklog.log.TopicConfig;
import io.sparklog.segment.Segment;
import java.util.ArrayList;
import java.util.List;

/**
 * Cuts the live segments of a partition into groups of neighbours that a merge may join: whose times lie close together. Retention deletes
 * whole segments by their greatest time, so this is what bounds how much longer a record stays. FORMAT.md annex E.
 *
 * <p>Groups follow from the segments in order, from the first live one on. A group takes the next segment while its least and its greatest
 * time are at most a span apart. A time below the greatest time before the group counts as that time: late records are deleted with the
 * records before them, in any case. So with each second group the greatest time rises by more than a span, for any order of times. A
 * partition has at most 2 + 2 · (range of times) / span groups. To join segments of a group changes neither it nor any other group.
 */
public final class TimeGroups {
  /** The span is this part of {@code retention.ms}, where that is less than {@code segment.ms}. */
  private static final int RETENTION_PART = 8;

  private TimeGroups() {}

  /** How far apart the times of a group may lie, in ms. */
  public static long spanMs(TopicConfig config) {
    return spanMs(config, config.retentionMs());
  }

  /** As {@link #spanMs(TopicConfig)}, with {@code retentionMs} in the place of the topic's. */
  public static long spanMs(TopicConfig config, long retentionMs) {
    return retentionMs < 0 ? config.segmentMs() : Math.min(config.segmentMs(), retentionMs / RETENTION_PART);
  }

  /** The groups of a partition's live segments, in order. Segments without a time are in the group of those before them. */
  static List<List<Segment>> of(List<Segment> live, long spanMs) {
    List<List<Segment>> groups = new ArrayList<>();
    long greatest = 0; // Nothing is before 1970, and a difference of two times never overflows.
    long before = 0;
    long least = Long.MAX_VALUE;
    int first = 0;
    for (int i = 0; i < live.size(); i++) {
      Segment segment = live.get(i);
      if (segment.maxTimestamp() < 0) {
        continue;
      }
      long seen = greatest;
      greatest = Math.max(greatest, segment.maxTimestamp());
      least = Math.min(least, Math.max(segment.minTimestamp(), before));
      if (i > first && greatest - least > spanMs) {
        groups.add(live.subList(first, i));
        first = i;
        before = seen;
        least = Math.max(segment.minTimestamp(), before);
      }
    }
    if (!live.isEmpty()) {
      groups.add(live.subList(first, live.size()));
    }
    return groups;
  }
}
