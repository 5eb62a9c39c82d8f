package io.sparklog.spark;

import java.lang.ref.SoftReference;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A memory for as long as a query runs.
 *
 * <p>A query is the work of one execution id in Spark. Over Connect, which plans before an id exists, it is one operation. A plan outside
 * of both, such as by {@code explain}, shares nothing.
 */
public final class QueryMemory {
  private static final int QUERIES_MAX = 100;

  /** Begins the tag that a Connect server gives to the jobs of one operation. */
  private static final String CONNECT_OPERATION = "SparkConnect_OperationTag_";

  /** By query, the least recently used first. */
  private static final Map<String, Map<Object, SoftReference<?>>> QUERIES = Collections
      .synchronizedMap(new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Map<Object, SoftReference<?>>> eldest) {
          return size() > QUERIES_MAX;
        }
      });

  private QueryMemory() {}

  /** The memory of the query that this thread runs or plans; a new memory without a query. Its callers synchronize on it. */
  public static Map<Object, SoftReference<?>> ofThisQuery() {
    String query = query();
    return query == null ? new HashMap<>() : QUERIES.computeIfAbsent(query, first -> new HashMap<>());
  }

  /** Call it when the query of this thread has changed a topic. From now on the query reads the newest state, for a cached table. */
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
}
