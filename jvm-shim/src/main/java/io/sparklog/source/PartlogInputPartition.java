package io.sparklog.source;

import io.sparklog.read.Split;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;

/**
 * The splits of a task, as Spark ships them to it.
 *
 * @param splits that the task reads one after another: in a batch a single one, in a stream perhaps several of different partitions
 * @param partitionKey in a batch the value that its records share: {@link Grouping}. Null in a stream
 */
record PartlogInputPartition(List<Split> splits, InternalRow partitionKey) implements HasPartitionKey {}
