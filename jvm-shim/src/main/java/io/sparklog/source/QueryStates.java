package io.sparklog.source;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.spark.QueryMemory;
import java.lang.ref.SoftReference;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;

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

  /** The newest state of each topic, by name, when a scan of the query first asked for it. Topics that do not exist are left out. */
  Map<String, State> states(Collection<String> topics) {
    synchronized (memory) {
      Map<String, State> states = new HashMap<>();
      for (String topic : topics) {
        SoftReference<?> known = memory.get(new TopicOfRoot(root.reference(), topic));
        if (known != null && known.get() instanceof State state) {
          states.put(topic, state);
        }
      }
      root.newest(topics.stream().filter(topic -> !states.containsKey(topic)).toList()).forEach((topic, newest) -> {
        memory.put(new TopicOfRoot(root.reference(), topic), new SoftReference<>(newest));
        states.put(topic, newest);
      });
      return states;
    }
  }
}
