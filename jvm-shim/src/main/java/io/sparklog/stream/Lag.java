package io.sparklog.stream;

import io.sparklog.read.Selection;
import io.sparklog.segment.Segment;
import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * How far a stream is behind the end of the log, by the states alone. No file is read, so times and bytes within a segment are interpolated
 * as if all its records were alike.
 */
final class Lag {
  private Lag() {}

  /** The metrics of a stream that has not read {@code unread} yet, as Spark's progress shows them. */
  static Map<String, String> metrics(List<Selection.OffsetRange> unread) {
    Map<String, String> metrics = new TreeMap<>();
    if (!unread.isEmpty()) {
      metrics.put("minOffsetsBehindLatest", Long.toString(unread.stream().mapToLong(Lag::offsets).min().orElseThrow()));
      metrics.put("maxOffsetsBehindLatest", Long.toString(unread.stream().mapToLong(Lag::offsets).max().orElseThrow()));
      metrics.put("avgOffsetsBehindLatest", Double.toString(unread.stream().mapToLong(Lag::offsets).average().orElseThrow()));
    }
    metrics.put("bytesBehindLatest", Long.toString(unread.stream().mapToLong(Lag::bytes).sum()));
    long behindMs = unread.stream().mapToLong(Lag::timeMs).max().orElse(0);
    metrics.put("secondsBehindLatest", BigDecimal.valueOf(behindMs, 3).toPlainString());
    return metrics;
  }

  private static long offsets(Selection.OffsetRange range) {
    return range.end() - range.start();
  }

  private static List<Segment> segments(Selection.OffsetRange range) {
    return range.state().segments(range.partition(), range.start(), range.end());
  }

  private static long bytes(Selection.OffsetRange range) {
    return segments(range).stream().mapToLong(segment -> (long) (segment.bytes() * (1 - readShare(segment, range.start())))).sum();
  }

  /** From the time of the first unread record to the time of the newest record. */
  private static long timeMs(Selection.OffsetRange range) {
    // Records of other writers may have no time, which is −1.
    List<Segment> segments = segments(range).stream().filter(segment -> segment.minTimestamp() >= 0).toList();
    if (segments.isEmpty()) {
      return 0;
    }
    Segment first = segments.get(0);
    long newest = segments.stream().mapToLong(Segment::maxTimestamp).max().orElseThrow();
    double sinceFirst = ((double) first.maxTimestamp() - first.minTimestamp()) * readShare(first, range.start());
    return Math.max(0, newest - first.minTimestamp() - (long) sinceFirst);
  }

  private static double readShare(Segment segment, long next) {
    return Math.max(0, next - (double) segment.base()) / (segment.end() - segment.base());
  }
}
