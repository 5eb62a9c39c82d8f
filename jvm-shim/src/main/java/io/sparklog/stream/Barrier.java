package io.sparklog.stream;

import io.sparklog.log.State;
import io.sparklog.read.Selection;
import io.sparklog.routing.PastReroute;
import io.sparklog.routing.Routing;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Keeps a micro-batch from reading records of a partition before the records of the partitions that its slots came from. So a stream sees
 * the records of each key in the order in which they were written. FORMAT.md section A.9.
 */
final class Barrier {
  /** By partition, where the next micro-batch begins. */
  private final Map<Integer, Long> positions = new HashMap<>();
  /** By partition that may not pass a re-route yet, its cut of the first such one. */
  private final Map<Integer, Long> ends = new HashMap<>();

  /** The part of each range that one micro-batch may read: up to the first re-route that its partition does not pass. */
  static List<Selection.OffsetRange> before(List<Selection.OffsetRange> waiting) {
    Map<State, Barrier> barriers = new HashMap<>();
    for (Selection.OffsetRange range : waiting) {
      barriers.computeIfAbsent(range.state(), topic -> new Barrier()).positions.put(range.partition(), range.start());
    }
    barriers.forEach((state, barrier) -> barrier.find(state.routing()));
    return waiting.stream().map(range -> barriers.get(range.state()).before(range)).toList();
  }

  private Selection.OffsetRange before(Selection.OffsetRange range) {
    long end = Math.min(range.end(), ends.getOrDefault(range.partition(), Long.MAX_VALUE));
    return new Selection.OffsetRange(range.state(), range.partition(), range.start(), Math.max(range.start(), end));
  }

  private void find(Routing routing) {
    List<Map<Integer, Set<Integer>>> givers = routing.givers();
    for (int i = 0; i < givers.size(); i++) {
      PastReroute past = routing.past().get(i);
      Set<Integer> held = new HashSet<>();
      givers.get(i).forEach((to, from) -> {
        if (!from.stream().allMatch(giver -> passes(giver, past.cut(giver)))) {
          held.add(to);
        }
      });
      held.forEach(partition -> ends.putIfAbsent(partition, past.cut(partition)));
    }
  }

  /** Whether the records of a partition below its cut were read, and it passes the re-routes before. */
  private boolean passes(int giver, long cut) {
    return positions.getOrDefault(giver, Long.MAX_VALUE) >= cut && !ends.containsKey(giver);
  }
}
