package io.sparklog.read;

import java.io.Serializable;
import java.util.List;

/**
 * What one task reads: offsets of one partition, in order.
 *
 * @param topicId of the topic that was planned for
 * @param version of the state that was planned from
 * @param decompressedBytesMax the bound on what a batch of the topic decompresses to
 * @param condition what is asked of the records of tested extents
 */
public record Split(String topic, String topicId, long version, int partition, long decompressedBytesMax, Condition condition,
    List<Extent> extents) implements Serializable {

  /** How many offsets it covers; records may be fewer. */
  public long offsets() {
    return extents.stream().mapToLong(Extent::offsets).sum();
  }

  /** About how many bytes there are to read. */
  public long bytesToRead() {
    return extents.stream().mapToLong(Extent::bytesToRead).sum();
  }
}
