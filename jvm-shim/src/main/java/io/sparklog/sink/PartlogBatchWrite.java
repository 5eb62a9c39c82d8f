package io.sparklog.sink;

import io.sparklog.log.Committer;
import io.sparklog.log.Names;
import io.sparklog.log.Piece;
import io.sparklog.log.Query;
import io.sparklog.log.Root;
import io.sparklog.spark.SparkErrors;
import java.io.IOException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.random.RandomGenerator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.slf4j.LoggerFactory;

/** The driver's side of one batch write: one commit a topic, each exactly once and whole, topic after topic. */
final class PartlogBatchWrite implements BatchWrite {

  private final Root root;
  private final WritePlan plan;
  private final Query query;
  private final Clock clock;
  private final RandomGenerator random;
  private final Map<String, Committer> committers = new HashMap<>();

  PartlogBatchWrite(Root root, WritePlan plan, Query query, Clock clock, RandomGenerator random) {
    this.root = root;
    this.plan = plan;
    this.query = query;
    this.clock = clock;
    this.random = random;
  }

  private record Factory(WritePlan plan, int tasks) implements DataWriterFactory {
    @Override
    public DataWriter<InternalRow> createWriter(int partitionId, long taskId) {
      return SparkErrors.run(() -> new RowWriter(plan, partitionId, tasks, taskId));
    }
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return new Factory(plan, info.numPartitions());
  }

  /** Off: a task makes nothing visible, so several attempts may finish; Spark hands on the message of one. */
  @Override
  public boolean useCommitCoordinator() {
    return false;
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    TreeSet<String> topics = new TreeSet<>();
    if (plan.topic() != null) {
      topics.add(plan.topic());
    }
    for (WriterCommitMessage message : messages) {
      topics.addAll(((TaskReport) message).pieces().keySet());
    }
    for (String topic : topics) {
      List<List<Piece>> tasks = new ArrayList<>();
      for (WriterCommitMessage message : messages) {
        tasks.add(((TaskReport) message).pieces().getOrDefault(topic, List.of()));
      }
      SparkErrors.run(() -> {
        Committer committer = new Committer(root.topic(topic), plan.topicPlan(topic), plan.txn(), query, clock, random);
        committers.put(topic, committer);
        return committer.commit(tasks);
      });
    }
  }

  /** Spark calls this when {@link #commit} threw, too: what a version file may name stays. */
  @Override
  public void abort(WriterCommitMessage[] messages) {
    for (WriterCommitMessage message : messages) {
      if (message instanceof TaskReport report) {
        report.pieces().forEach((topic, pieces) -> pieces.forEach(piece -> drop(topic, piece)));
      }
    }
  }

  private void drop(String topic, Piece piece) {
    Committer committer = committers.get(topic);
    if (piece.file() != null && (committer == null || !committer.putTried())) {
      try {
        root.store().delete(Names.topicFile(topic, piece.file()));
      } catch (IOException e) {
        LoggerFactory.getLogger(PartlogBatchWrite.class).warn("left " + piece.file() + " of topic " + topic, e);
      }
    }
  }

  @Override
  public String toString() {
    return "partlog " + plan.store().root();
  }
}
