package io.sparklog.source;

import io.sparklog.read.Split;
import io.sparklog.read.SplitReader;
import io.sparklog.spark.SparkErrors;
import io.sparklog.storage.StoreRef;
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
 * @param rowsMax more records than that are not asked of any task
 */
record PartlogReaderFactory(StoreRef store, StructType schema, boolean failOnDataLoss, long rowsMax) implements PartitionReaderFactory {

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    Split split = ((PartlogInputPartition) partition).split();
    return SparkErrors
        .run(() -> new PartlogReader(new SplitReader(store.open(), split, failOnDataLoss, RecordVectors.needHeadersOnly(schema), rowsMax),
            new RecordVectors(schema, split.topic(), split.partition())));
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
