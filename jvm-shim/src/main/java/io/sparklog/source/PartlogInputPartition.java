package io.sparklog.source;

import io.sparklog.read.Split;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;

/** The work of a task, as Spark ships it there. */
sealed interface PartlogInputPartition extends InputPartition {
  /** The splits that the task reads one after another: in a batch a single one, in a stream perhaps several of different partitions. */
  List<Split> splits();

  /** Spark learns nothing of its records. */
  record Plain(List<Split> splits) implements PartlogInputPartition {}

  /** @param partitionKey the value that its records share: {@link Grouping} */
  record Grouped(List<Split> splits, InternalRow partitionKey) implements PartlogInputPartition, HasPartitionKey {}
}
