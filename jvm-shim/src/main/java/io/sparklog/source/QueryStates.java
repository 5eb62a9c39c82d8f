package io.sparklog.source;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.spark.QueryMemory;
import java.lang.ref.SoftReference;
import java.util.Map;
import java.util.Optional;

/**
 * The topics under a root as one query sees them. All scans of a query share the state of a topic. So both sides of a self-join and every
 * subquery read the same offsets, although other writers commit meanwhile.
 */
final class QueryStates {
  private record TopicOfRoot(ReadableTopics.Reference topics, String topic) {}

  private final ReadableTopics root;
  private final Map<Object, SoftReference<?>> memory;

  /** The states for a scan of the query that this thread plans. */
  QueryStates(ReadableTopics root) {
    this.root = root;
    this.memory = QueryMemory.ofThisQuery();
  }

  /** The newest state of a topic when a scan of the query first asked for it; empty if the topic did not exist. */
  Optional<State> state(String topic) {
    TopicOfRoot place = new TopicOfRoot(root.reference(), topic);
    synchronized (memory) {
      SoftReference<?> known = memory.get(place);
      if (known != null && known.get() instanceof State state) {
        return Optional.of(state);
      }
      Optional<State> state = root.newest(topic);
      state.ifPresent(newest -> memory.put(place, new SoftReference<>(newest)));
      return state;
    }
  }
}
