package io.sparklog.source;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What one Spark task reads: offsets of one partition, in order.
 *
 * @param topicId of the topic that was planned for
 * @param version of the state that was planned from
 * @param decompressedBytesMax the bound on what a batch of the topic decompresses to
 * @param ofOneTopic whether the read is of one topic only
 * @param condition what is asked of the records of tested extents
 */
record Split(String topic, String topicId, long version, int partition, long decompressedBytesMax, Condition condition,
    List<Extent> extents, boolean ofOneTopic) implements HasPartitionKey {

  /** The partition, after the topic if there are several; as {@link PartlogScan#outputPartitioning} says. */
  @Override
  public InternalRow partitionKey() {
    return new GenericInternalRow(ofOneTopic ? new Object[] {partition} : new Object[] {UTF8String.fromString(topic), partition});
  }

  long offsets() {
    return extents.stream().mapToLong(Extent::offsets).sum();
  }

  long bytesToRead() {
    return extents.stream().mapToLong(Extent::bytesToRead).sum();
  }
}
