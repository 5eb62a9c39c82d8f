package io.sparklog.spark;

import io.sparklog.log.State;
import io.sparklog.log.ReadableTopics;
import java.lang.ref.SoftReference;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The topics under a root as one query sees them: all scans of a query share the state of a topic, so both sides of a self-join and every
 * subquery read the same offsets, whatever is committed while it runs.
 *
 * <p>A query is what has one execution id in Spark; over Connect, which plans before there is an id, it is one operation. A plan that is
 * made outside of both, as by {@code explain}, shares nothing.
 */
public final class QueryStates {
  private static final int QUERIES_MAX = 100;

  /** Begins the tag that a Connect server gives to the jobs of one operation. */
  private static final String CONNECT_OPERATION = "SparkConnect_OperationTag_";

  /** By query, the least recently used first; then by root and topic. */
  private static final Map<String, Map<Place, SoftReference<State>>> QUERIES = Collections
      .synchronizedMap(new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Map<Place, SoftReference<State>>> eldest) {
          return size() > QUERIES_MAX;
        }
      });

  private record Place(ReadableTopics.Reference topics, String topic) {}

  private final ReadableTopics root;
  private final Map<Place, SoftReference<State>> states;

  /** The states for a scan of the query that this thread plans. */
  public QueryStates(ReadableTopics root) {
    this.root = root;
    String query = query();
    this.states = query == null ? new HashMap<>() : QUERIES.computeIfAbsent(query, first -> new HashMap<>());
  }

  /** To be called when the query of this thread has changed a topic: what it reads from now on, for a cached table, is the newest state. */
  public static void forget() {
    String query = query();
    if (query != null) {
      QUERIES.remove(query);
    }
  }

  private static String query() {
    Option<SparkSession> session = SparkSession.getActiveSession();
    if (session.isEmpty()) {
      return null;
    }
    SparkContext context = session.get().sparkContext();
    String query = context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
    if (context.getLocalProperty(StreamExecution.QUERY_ID_KEY()) != null) {
      // The function of a foreachBatch may read, write and read again under the micro-batch's own id. And the thread of a stream inherits
      // the tag of the operation that started it, and outlives that.
      return query == null || query.equals(context.getLocalProperty(SQLExecution.EXECUTION_ROOT_ID_KEY()))
          ? null
          : context.applicationId() + "/" + query;
    }
    if (query == null) {
      query = CollectionConverters.asJava(context.getJobTags())
          .stream()
          .filter(tag -> tag.startsWith(CONNECT_OPERATION))
          .findFirst()
          .orElse(null);
    }
    return query == null ? null : context.applicationId() + "/" + query;
  }

  /** The newest state of a topic when a scan of the query first asked for it; empty if there was none. */
  public Optional<State> state(String topic) {
    Place place = new Place(root.reference(), topic);
    synchronized (states) {
      SoftReference<State> known = states.get(place);
      if (known != null && known.get() != null) {
        return Optional.of(known.get());
      }
      Optional<State> state = root.newest(topic);
      state.ifPresent(newest -> states.put(place, new SoftReference<>(newest)));
      return state;
    }
  }
}
