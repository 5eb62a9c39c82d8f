package io.sparklog.read;

import java.io.Serializable;
import java.util.List;

/**
 * The offsets of one partition that one task reads, in order.
 *
 * @param topicId identity of the topic that was planned for
 * @param version of the state that was planned from
 * @param decompressedBytesMax the most bytes that the records of one batch of the topic may take when decompressed
 * @param filter what records of filtered extents must meet
 */
public record Split(String topic, String topicId, long version, int partition, long decompressedBytesMax, RecordFilter filter,
    List<Extent> extents) implements Serializable {

  /** How many offsets it covers; there may be fewer records. */
  public long offsets() {
    return extents.stream().mapToLong(Extent::offsets).sum();
  }

  /** About how many bytes there are to read. */
  public long bytesToRead() {
    return extents.stream().mapToLong(Extent::bytesToRead).sum();
  }
}
