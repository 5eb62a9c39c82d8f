package io.sparklog.source;

import io.sparklog.read.Split;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The splits of a task, as Spark ships them to it.
 *
 * @param splits that the task reads one after another: in a batch a single one, in a stream perhaps several of different partitions
 * @param ofOneTopic whether the read is of one topic only
 */
record PartlogInputPartition(List<Split> splits, boolean ofOneTopic) implements HasPartitionKey {

  /** In a batch: the partition, after the topic if there are several: the columns of {@link PartlogScan#outputPartitioning}. */
  @Override
  public InternalRow partitionKey() {
    Split split = splits.get(0);
    return new GenericInternalRow(
        ofOneTopic ? new Object[] {split.partition()} : new Object[] {UTF8String.fromString(split.topic()), split.partition()});
  }
}
