package io.sparklog.sink;

import io.sparklog.log.Committed;
import io.sparklog.spark.QueryMemory;
import io.sparklog.spark.SparkErrors;
import io.sparklog.write.Once;
import java.util.List;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** The driver's side of one batch write. */
final class PartlogBatchWrite implements BatchWrite {
  private final DriverWrite write;
  private final Once transaction;

  /** @param transaction the user's own, or null */
  PartlogBatchWrite(DriverWrite write, Once transaction) {
    this.write = write;
    this.transaction = transaction;
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return write.factory(info);
  }

  /** Off: a task makes nothing visible, so several attempts may finish; Spark passes on the message of one. */
  @Override
  public boolean useCommitCoordinator() {
    return false;
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    WritesOfEpoch epoch = transaction == null ? WritesOfEpoch.ofThisThread().orElse(null) : null;
    if (epoch == null) {
      write.commit(messages, topic -> transaction == null ? Once.NEVER : transaction);
    } else {
      List<Committed> done = write.commit(messages, topic -> epoch.next(write.root(), topic));
      SparkErrors.act(() -> done.forEach(committed -> epoch.done(write.root(), committed.topic())));
    }
    QueryMemory.forget();
  }

  @Override
  public void abort(WriterCommitMessage[] messages) {
    write.abort(messages);
  }

  @Override
  public String toString() {
    return write.toString();
  }
}
