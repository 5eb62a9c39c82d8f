package io.sparklog.read;

import io.sparklog.log.State;
import io.sparklog.spec.Invariant;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

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

  /**
   * The same for the records that also meet {@code more}; empty if none may. Extents are left out, and none is cut.
   *
   * @param state that the split was planned from
   */
  public Optional<Split> and(RecordFilter more, State state) {
    Routed routed = new Routed(state, partition, more);
    List<Extent> left = new ArrayList<>();
    for (Extent extent : extents) {
      extent.and(routed.of(extent.segment())).ifPresent(left::add);
    }
    RecordFilter both = RecordFilter.all(List.of(filter, more));
    return left.isEmpty() ? Optional.empty() : Optional.of(new Split(topic, topicId, version, partition, decompressedBytesMax, both, left));
  }

  /** Whether each of its records has a key, which the topic's partitioner puts into the partition. */
  public boolean isRouted() {
    return extents.stream().allMatch(extent -> extent.segment().routed());
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
