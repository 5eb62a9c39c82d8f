package io.sparklog.sink;

import io.sparklog.spark.SparkErrors;
import io.sparklog.write.Piece;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** The driver's side of one batch write. */
final class PartlogBatchWrite implements BatchWrite {
  private final WritePlan plan;
  private final TopicCommits commits;

  PartlogBatchWrite(WritePlan plan, TopicCommits commits) {
    this.plan = plan;
    this.commits = commits;
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

  /** Off: a task makes nothing visible, so several attempts may finish; Spark passes on the message of one. */
  @Override
  public boolean useCommitCoordinator() {
    return false;
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    SparkErrors.act(() -> {
      List<Map<String, List<Piece>>> reports = reports(Stream.of(messages));
      TreeMap<String, TopicPlan> plans = new TreeMap<>();
      // The topic of the options is created even if there is no row.
      if (plan.topic() != null) {
        plans.put(plan.topic(), plan.topicPlan(plan.topic()));
      }
      reports.forEach(report -> report.keySet().forEach(topic -> plans.computeIfAbsent(topic, plan::topicPlan)));
      commits.commit(plans, reports);
    });
  }

  /** Spark calls this also when {@link #commit} threw. A task that failed has no message. */
  @Override
  public void abort(WriterCommitMessage[] messages) {
    commits.abort(reports(Stream.of(messages).filter(Objects::nonNull)));
  }

  private static List<Map<String, List<Piece>>> reports(Stream<WriterCommitMessage> messages) {
    return messages.map(message -> ((TaskReport) message).pieces()).toList();
  }

  @Override
  public String toString() {
    return "partlog " + plan.store().root();
  }
}
