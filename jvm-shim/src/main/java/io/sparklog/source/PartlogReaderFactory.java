package io.sparklog.source;

import io.sparklog.log.ReadableTopics;
import io.sparklog.read.Split;
import io.sparklog.spark.SparkErrors;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * The part of a read that all its tasks share.
 *
 * @param topics opens the topics in the task
 * @param schema the columns to return
 * @param failOnDataLoss whether it is an error if offsets have expired since the plan was made
 * @param rowsMax the most records of a split that a task returns
 */
record PartlogReaderFactory(ReadableTopics.Reference topics, StructType schema, boolean failOnDataLoss,
    long rowsMax) implements PartitionReaderFactory {

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    List<Split> splits = ((PartlogInputPartition) partition).splits();
    return SparkErrors.run(() -> new PartlogReader(topics.open(), splits, schema, failOnDataLoss, rowsMax));
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedOperationException("partlog reads columns");
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  /** The work of a task, as Spark ships it there. */
  sealed interface PartlogInputPartition extends InputPartition {
    /** The splits that the task reads one after another: in a batch a single one, in a stream perhaps several of different partitions. */
    List<Split> splits();

    /** Spark learns nothing of its records. */
    record Plain(List<Split> splits) implements PartlogInputPartition {}

    /** @param partitionKey the value that its records share: {@link Grouping} */
    record Grouped(List<Split> splits, InternalRow partitionKey) implements PartlogInputPartition, HasPartitionKey {}
  }
}
