package io.sparklog.sink;

import io.sparklog.log.Root;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spark.StreamingQueries;
import io.sparklog.log.Committed;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.random.RandomGenerator;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;

/** The driver's side of one batch write, or of one epoch of a stream: the plan for the tasks, and the commit of their reports. */
final class DriverWrite {
  private final Root root;
  private final WritePlan plan;
  private final List<Runnable> owed;
  private final long mergeBytes;
  private final boolean creates;
  private final Clock clock;
  private final RandomGenerator random;
  private TopicCommits commits;

  /**
   * @param owed the upkeep of the re-routes before this write, which this write does when it has ended
   * @param mergeBytes as of {@link TopicCommits#merging}
   * @param creates as of {@link TopicCommits#creating}
   */
  DriverWrite(Root root, WritePlan plan, List<Runnable> owed, long mergeBytes, boolean creates, Clock clock, RandomGenerator random) {
    this.root = root;
    this.plan = plan;
    this.owed = owed;
    this.mergeBytes = mergeBytes;
    this.creates = creates;
    this.clock = clock;
    this.random = random;
  }

  Root root() {
    return root;
  }

  /** The factory of each task's writer. */
  record Factory(WritePlan plan, int tasks) implements DataWriterFactory, StreamingDataWriterFactory {
    @Override
    public DataWriter<InternalRow> createWriter(int partitionId, long taskId) {
      return SparkErrors.run(() -> new RowWriter(plan, partitionId, tasks, taskId));
    }

    @Override
    public DataWriter<InternalRow> createWriter(int partitionId, long taskId, long epochId) {
      return createWriter(partitionId, taskId);
    }
  }

  Factory factory(PhysicalWriteInfo info) {
    return new Factory(plan, info.numPartitions());
  }

  /**
   * Commits the reports of the tasks, topic after topic. May be called once: the random identity of the plan identifies one write.
   *
   * @param once by topic, the facts that make the write exactly once
   */
  List<Committed> commit(WriterCommitMessage[] messages, Function<String, Once> once) {
    return SparkErrors.run(() -> {
      if (commits != null) {
        throw new IllegalStateException("write " + plan.txn() + " is committed a second time");
      }
      commits = new TopicCommits(root, plan.txn(), once, clock, random).merging(mergeBytes).creating(creates);
      List<Map<String, TopicReport>> reports = reports(Stream.of(messages));
      TreeMap<String, TopicPlan> plans = new TreeMap<>();
      // The topic of the options is created even without rows.
      if (plan.topic() != null) {
        plans.put(plan.topic(), plan.topicPlan(plan.topic()));
      }
      reports.forEach(report -> report.keySet().forEach(topic -> plans.computeIfAbsent(topic, plan::topicPlan)));
      List<Committed> done = commits.commit(plans, plan.known().keySet(), reports);
      owed.forEach(Runnable::run);
      done.stream().filter(each -> each.version().isPresent()).forEach(each -> StreamingQueries.written(root.location(), each.topic()));
      return done;
    });
  }

  /** Spark calls this also when {@link #commit} threw. A task that failed has no message. */
  void abort(WriterCommitMessage[] messages) {
    TopicCommits begun = commits != null ? commits : new TopicCommits(root, plan.txn(), topic -> Once.NEVER, clock, random);
    begun.abort(reports(Stream.of(messages).filter(Objects::nonNull)));
    owed.forEach(Runnable::run);
  }

  private static List<Map<String, TopicReport>> reports(Stream<WriterCommitMessage> messages) {
    return messages.map(message -> ((RowWriter.Report) message).topics()).toList();
  }

  @Override
  public String toString() {
    return "partlog " + plan.store().root();
  }
}
