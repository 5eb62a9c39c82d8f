package io.sparklog.read;

import io.sparklog.log.State;
import io.sparklog.routing.Routing;
import io.sparklog.segment.Extent;
import io.sparklog.spec.Invariant;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The offsets of one partition that one task reads, in order.
 *
 * @param topicId identity of the topic that was planned for
 * @param version of the state that was planned from
 * @param decompressedBytesMax the most bytes that the records of one batch of the topic may take when decompressed
 * @param filter what records of filtered extents must meet
 * @param epochs of the offsets; null if they are not asked for
 */
public record Split(String topic, String topicId, long version, int partition, long decompressedBytesMax, RecordFilter filter,
    List<Extent> extents, Routing.RoutingEpochs epochs) implements Serializable {

  public Split {
    for (int i = 0; i < extents.size(); i++) {
      Extent extent = extents.get(i);
      Extent last = i == 0 ? null : extents.get(i - 1);
      Invariant.require(extent.segment().partition() == partition && (last == null || last.endOffset() <= extent.startOffset()),
          () -> "extents of partition " + partition + " of topic " + topic + " are out of order: " + last + " and " + extent);
    }
  }

  /**
   * With so much of {@code filter} as matters to its records.
   *
   * @param withEpochs whether the routing epochs of its offsets are asked for
   */
  static Split of(State state, int partition, RecordFilter filter, RoutedKeys routed, List<Extent> extents, boolean withEpochs) {
    Routing.RoutingEpochs epochs = withEpochs
        ? state.routing().epochs(partition, extents.get(0).startOffset(), extents.get(extents.size() - 1).endOffset())
        : null;
    Split split = new Split(state.topic(), state.topicId(), state.version(), partition, state.config().decompressedBytesMax(), filter,
        extents, epochs);
    return split.ofTask(routed);
  }

  /** Its filter without keys that its segments do not have, and within the bytes of a task; where nothing is left to test, without any. */
  private Split ofTask(RoutedKeys routed) {
    RecordFilter needed = extents.stream().anyMatch(Extent::filtered)
        ? routed.in(extents.stream().map(Extent::segment).toList(), filter).ofTask()
        : RecordFilter.ALL_RECORDS;
    List<Extent> tested = needed.equals(RecordFilter.ALL_RECORDS) ? extents.stream().map(Extent::unfiltered).toList() : extents;
    return new Split(topic, topicId, version, partition, decompressedBytesMax, needed, new ArrayList<>(tested), epochs);
  }

  /**
   * The same splits for the records that also meet {@code more}, as far as that spares work: the reader of records tests it too. Splits and
   * extents are left out, and none is cut.
   *
   * @param states of each topic, that the splits were planned from
   */
  public static List<Split> narrowed(List<Split> splits, Filter more, Map<String, State> states) {
    Map<String, RoutedKeys> routed = new HashMap<>();
    Map<List<Object>, RecordFilter> filters = new HashMap<>();
    List<Split> narrowed = new ArrayList<>();
    for (Split split : splits) {
      RecordFilter added = filters.computeIfAbsent(List.of(split.topic, split.partition),
          place -> more.asHint().at(split.topic, split.partition));
      split.and(added, routed.computeIfAbsent(split.topic, topic -> RoutedKeys.of(states.get(topic)))).ifPresent(narrowed::add);
    }
    return narrowed;
  }

  private Optional<Split> and(RecordFilter more, RoutedKeys routed) {
    List<Extent> left = new ArrayList<>();
    for (Extent extent : extents) {
      and(extent, routed.in(List.of(extent.segment()), more)).ifPresent(left::add);
    }
    if (left.isEmpty()) {
      return Optional.empty();
    }
    RecordFilter both = RecordFilter.all(List.of(filter, more));
    return Optional.of(new Split(topic, topicId, version, partition, decompressedBytesMax, both, left, epochs).ofTask(routed));
  }

  /** The extent for the records that also meet {@code more}; empty if none may. Its offsets and positions stay. */
  private static Optional<Extent> and(Extent extent, RecordFilter more) {
    long first = extent.startOffset();
    long last = extent.endOffset() - 1;
    if (!more.canMeet(first, last, Long.MIN_VALUE, Long.MAX_VALUE)) {
      return Optional.empty();
    }
    return Optional.of(more.mustMeet(first, last, Long.MIN_VALUE, Long.MAX_VALUE) ? extent : extent.asFiltered());
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
