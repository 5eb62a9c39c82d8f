package io.sparklog.sink;

import io.sparklog.spark.SparkErrors;
import io.sparklog.spark.StreamingQueries;
import io.sparklog.spec.PartlogException;
import io.sparklog.write.Once;
import java.util.function.LongFunction;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** The driver's side of one epoch of a streaming query. Spark makes one for each epoch. */
final class PartlogStreamWrite implements StreamingWrite {
  private final DriverWrite write;
  private final String queryId;
  private final SinkMetrics metrics;

  /** @param queryId the id of the query, which is the same for all runs from one checkpoint */
  PartlogStreamWrite(DriverWrite write, String queryId, SinkMetrics metrics) {
    this.write = write;
    this.queryId = queryId;
    this.metrics = metrics;
  }

  /** The first call in which Spark knows the query of a continuous trigger. */
  @Override
  public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
    return SparkErrors.run(() -> {
      StreamingQueries.unrepeatable(queryId).ifPresent(how -> {
        throw PartlogException.of("TRIGGER_UNSUPPORTED", "query", queryId, "root", write.root().store().root(), "how", how);
      });
      return write.factory(info);
    });
  }

  /** Off, for the reason of {@link PartlogBatchWrite#useCommitCoordinator}. */
  @Override
  public boolean useCommitCoordinator() {
    return false;
  }

  @Override
  public void commit(long epochId, WriterCommitMessage[] messages) {
    LongFunction<String> inputs = StreamingQueries.inputs(queryId);
    Once once = Once.epoch(queryId, epochId, inputs.apply(epochId)).withInputs(inputs);
    metrics.note(write.commit(messages, topic -> once));
  }

  @Override
  public void abort(long epochId, WriterCommitMessage[] messages) {
    write.abort(messages);
  }

  @Override
  public String toString() {
    return write.toString();
  }
}
