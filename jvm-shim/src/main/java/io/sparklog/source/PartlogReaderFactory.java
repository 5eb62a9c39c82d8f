package io.sparklog.source;

import io.sparklog.spark.SparkErrors;
import io.sparklog.storage.Stores;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * What all tasks of a read have in common.
 *
 * @param schema the columns to give
 */
record PartlogReaderFactory(String root, StructType schema, boolean failOnDataLoss) implements PartitionReaderFactory {

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    Split split = (Split) partition;
    return SparkErrors.run(
        () -> new PartlogReader(new SplitReader(Stores.open(root), split, failOnDataLoss), new RecordVectors(schema, split.topic(), split.partition())));
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedOperationException("partlog reads columns");
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }
}
