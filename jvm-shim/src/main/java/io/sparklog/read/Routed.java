package io.sparklog.read;

import io.sparklog.log.Segment;
import io.sparklog.log.State;
import java.util.HashMap;
import java.util.Map;

/** The conditions on the records of each segment of a partition, as far as its keys are known from where they were routed. */
final class Routed {
  private final State state;
  private final int partition;
  private final RecordFilter filter;

  /** By how many re-routes a segment comes after: a query may have very many keys. */
  private final Map<Integer, RecordFilter> known = new HashMap<>();

  Routed(State state, int partition, RecordFilter filter) {
    this.state = state;
    this.partition = partition;
    this.filter = filter;
  }

  RecordFilter of(Segment segment) {
    return segment.routed() && filter.isAboutKey()
        ? known.computeIfAbsent(state.reroutesBefore(partition, segment.base()),
            reroutes -> filter.whereRouted(key -> state.mayHold(partition, reroutes, key)))
        : filter;
  }
}
