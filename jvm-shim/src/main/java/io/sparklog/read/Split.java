package io.sparklog.read;

import io.sparklog.spec.Invariant;
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

  public Split {
    for (int i = 0; i < extents.size(); i++) {
      Extent extent = extents.get(i);
      Extent last = i == 0 ? null : extents.get(i - 1);
      Invariant.require(extent.segment().partition() == partition && (last == null || last.endOffset() <= extent.startOffset()),
          () -> "extents of partition " + partition + " of topic " + topic + " are out of order: " + last + " and " + extent);
    }
  }

  /** How many offsets it covers; there may be fewer records. */
  public long offsets() {
    return extents.stream().mapToLong(Extent::offsets).sum();
  }

  /** About how many bytes there are to read. */
  public long bytesToRead() {
    return extents.stream().mapToLong(Extent::bytesToRead).sum();
  }
}
