package io.sparklog.spark;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.function.LongFunction;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.ContinuousTrigger;
import org.apache.spark.sql.execution.streaming.RealTimeTrigger;
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqBase;
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqLog;
import org.apache.spark.sql.execution.streaming.runtime.QueryExecutionThread;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.streaming.Trigger;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's knowledge of the streaming queries of this process. Only this class uses Spark's internals for it: where another build of Spark
 * does not have them, nothing is known.
 */
public final class StreamingQueries {
  /** A source of a streaming query that learns where the query writes. */
  public interface WriteListener {
    /** The query has written to a topic. */
    void written(String root, String topic);
  }

  private static final int INPUT_BYTES = 8;

  /** The offset that a source of files logs: a number that does not identify the content of the files. */
  private static final Pattern WITHOUT_CONTENT = Pattern.compile("\\{\\\\*\"logOffset\\\\*\":-?\\d+}");

  private StreamingQueries() {}

  /**
   * An epoch of a query.
   *
   * @param queryId the same for all runs from one checkpoint; each run has a thread of its own
   * @param number of the micro-batch, from 0
   */
  public record Epoch(String queryId, long number) {}

  /** Whether this is the thread on which a query plans and commits its epochs, and which Spark interrupts to stop the query. */
  static boolean isThreadOfQuery() {
    try {
      return Thread.currentThread() instanceof QueryExecutionThread;
    } catch (LinkageError otherSpark) {
      return false;
    }
  }

  /**
   * Whether {@code readStream} looks a table up: Spark does not name the use. Over Connect, where the plan is made on the server, this is
   * not known.
   */
  public static boolean isBeingDefined() {
    return StackWalker.getInstance()
        .walk(frames -> frames.anyMatch(frame -> frame.getClassName().equals("org.apache.spark.sql.classic.DataStreamReader")));
  }

  /** The epoch whose {@code foreachBatch} is running on this thread, which is the query's own; empty on any other thread. */
  public static Optional<Epoch> ofThisThread() {
    try {
      if (!isThreadOfQuery()) {
        return Optional.empty();
      }
      SparkContext context = SparkSession.active().sparkContext();
      String query = context.getLocalProperty(StreamExecution.QUERY_ID_KEY());
      String batch = context.getLocalProperty("streaming.sql.batchId");
      return query == null || batch == null ? Optional.empty() : Optional.of(new Epoch(query, Long.parseLong(batch)));
    } catch (LinkageError otherSpark) {
      return Optional.empty();
    }
  }

  /** The input of each epoch of a query, see {@link #input}: looked up once for an epoch, when it is asked for. */
  public static LongFunction<String> inputs(String queryId) {
    Map<Long, Optional<String>> known = new HashMap<>();
    return epoch -> known.computeIfAbsent(epoch, each -> Optional.ofNullable(input(queryId, each))).orElse(null);
  }

  /**
   * The input of an epoch, as 16 lower-case hex digits: the start of a SHA-256. It covers the lines of the sources in Spark's offset log,
   * for the epoch before and for this epoch. Null if it is not known, such as for a source of files.
   */
  private static String input(String queryId, long epoch) {
    try {
      Optional<StreamExecution> query = query(queryId);
      String before = query.isEmpty() || epoch == 0 ? "" : sources(query.get().offsetLog(), epoch - 1);
      String now = query.isEmpty() ? null : sources(query.get().offsetLog(), epoch);
      if (before == null || now == null || WITHOUT_CONTENT.matcher(now).find()) {
        return null;
      }
      byte[] lines = (epoch == 0 ? now : before + "\n" + now).getBytes(StandardCharsets.UTF_8);
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(lines), 0, INPUT_BYTES);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JVM has SHA-256", e);
    } catch (LinkageError otherSpark) {
      return null;
    }
  }

  /**
   * The lines of the sources in an entry of the offset log; null if absent. They follow the line of the format and the line of the
   * metadata.
   */
  private static String sources(OffsetSeqLog log, long epoch) {
    Option<OffsetSeqBase> entry = log.get(epoch);
    if (entry.isEmpty()) {
      return null;
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    log.serialize(entry.get(), bytes);
    String[] parts = bytes.toString(StandardCharsets.UTF_8).split("\n", 3);
    return parts.length < 3 ? null : parts[2];
  }

  /**
   * The trigger of a query, in words, if Spark does not fix the records of an epoch before the epoch runs. Such an epoch may have other
   * records when it is repeated after a failure. Empty if every epoch is repeated as it was.
   */
  public static Optional<String> unrepeatable(String queryId) {
    try {
      Optional<Trigger> trigger = query(queryId).map(StreamExecution::trigger);
      if (trigger.isPresent()) {
        return trigger.get() instanceof RealTimeTrigger
            ? Optional.of("in Real-Time Mode")
            : trigger.get() instanceof ContinuousTrigger ? Optional.of("by continuous processing") : Optional.empty();
      }
    } catch (LinkageError otherSpark) {
      // The rule below holds.
    }
    // Without this setting, Spark itself refuses the sink in Real-Time Mode.
    boolean mayBeRealTime = !SparkSession.active().conf().get("spark.sql.streaming.realTimeMode.allowlistCheck", "true").equals("true");
    return mayBeRealTime
        ? Optional.of("by a trigger that Spark does not tell, while spark.sql.streaming.realTimeMode.allowlistCheck allows Real-Time Mode")
        : Optional.empty();
  }

  /** Tells the sources of the query whose own thread this is that it has written to a topic. Does nothing on any other thread. */
  public static void written(String root, String topic) {
    try {
      ofThisThread().flatMap(epoch -> query(epoch.queryId())).ifPresent(query -> {
        for (SparkDataStream source : CollectionConverters.asJava(query.sources())) {
          if (source instanceof WriteListener listener) {
            listener.written(root, topic);
          }
        }
      });
    } catch (LinkageError otherSpark) {
      // Nothing is known of its sources.
    }
  }

  private static Optional<StreamExecution> query(String id) {
    return Optional.ofNullable(SparkSession.active().sharedState().activeStreamingQueries().get(UUID.fromString(id)));
  }
}
