package io.sparklog.stream;

import io.sparklog.log.PastReroute;
import io.sparklog.log.Routing;
import io.sparklog.log.State;
import io.sparklog.read.OffsetBounds;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Keeps a micro-batch from reading over a re-route, so that a stream sees the records of each key in the order in which they were written.
 * FORMAT.md section 13.9.
 */
final class Barrier {
  private Barrier() {}

  /** The part of each range that one micro-batch may read: up to the cut of the first re-route that is ahead in its topic. */
  static List<OffsetBounds.Range> before(List<OffsetBounds.Range> waiting) {
    Map<State, Integer> passed = new HashMap<>();
    for (OffsetBounds.Range range : waiting) {
      if (range.start() < range.end()) {
        passed.merge(range.state(), range.state().reroutesBefore(range.partition(), range.start()), Math::min);
      }
    }
    return waiting.stream().map(range -> before(range, passed.getOrDefault(range.state(), 0))).toList();
  }

  /** @param passed how many re-routes every partition with something to read has passed */
  private static OffsetBounds.Range before(OffsetBounds.Range range, int passed) {
    List<PastReroute> past = range.state().routing().map(Routing::past).orElse(List.of());
    if (passed == past.size()) {
      return range;
    }
    long end = Math.max(range.start(), Math.min(range.end(), past.get(passed).cut(range.partition())));
    return new OffsetBounds.Range(range.state(), range.partition(), range.start(), end);
  }
}
