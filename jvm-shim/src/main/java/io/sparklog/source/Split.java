package io.sparklog.source;

import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * What one Spark task reads: offsets of one partition, in order.
 *
 * @param topicId of the topic that was planned for
 * @param version of the state that was planned from
 * @param decompressedBytesMax the bound on what a batch of the topic decompresses to
 */
record Split(String topic, String topicId, long version, int partition, long decompressedBytesMax, List<Extent> extents) implements InputPartition {

  long offsets() {
    return extents.stream().mapToLong(Extent::offsets).sum();
  }

  long bytesToRead() {
    return extents.stream().mapToLong(Extent::bytesToRead).sum();
  }
}
