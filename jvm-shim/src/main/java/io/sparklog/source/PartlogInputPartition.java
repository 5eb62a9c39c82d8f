package io.sparklog.source;

import io.sparklog.read.Split;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A split as Spark ships it to a task.
 *
 * @param ofOneTopic whether the read is of one topic only
 */
record PartlogInputPartition(Split split, boolean ofOneTopic) implements HasPartitionKey {

  /** The partition, after the topic if there are several: the columns of {@link PartlogScan#outputPartitioning}. */
  @Override
  public InternalRow partitionKey() {
    return new GenericInternalRow(
        ofOneTopic ? new Object[] {split.partition()} : new Object[] {UTF8String.fromString(split.topic()), split.partition()});
  }
}
