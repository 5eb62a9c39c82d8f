package io.sparklog.admin;

import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.PartlogException;
import io.sparklog.upkeep.RetentionTerms;
import java.util.SortedMap;
import java.util.TreeMap;

/** Raises log start offsets, and removes the segments that are wholly below. */
final class DeleteRecords extends AdministrativeChange {
  /** {@code offsets}: to the end. */
  private static final long TO_THE_END = -1;

  private final SortedMap<Integer, Long> starts = new TreeMap<>();

  /**
   * @param planned the state that {@code offsets} are of
   * @param offsets the first offset to keep, by partition; −1 is the end offset in {@code planned}
   * @param terms the offsets to keep, though {@code offsets} may be above them
   * @throws PartlogException PARTITION_NOT_FOUND, OFFSETS_OUT_OF_RANGE
   */
  DeleteRecords(TopicLog log, State planned, SortedMap<Integer, Long> offsets, RetentionTerms terms) {
    super(log, planned, "the deletion of records");
    String root = log.store().root();
    offsets.forEach((partition, offset) -> {
      planned.requirePartition("offsets", root, partition);
      long end = planned.end(partition);
      if (offset < TO_THE_END || offset > end) {
        throw PartlogException.of("OFFSETS_OUT_OF_RANGE", "option", "offsets", "offset", offset, "topic", log.topic(), "partition",
            partition, "root", root, "start", planned.start(partition), "end", end, "way",
            "Give the first offset to keep: one in that range, or -1 for the end offset, which deletes all");
      }
      // The end of now and not of later: records that are committed during the call are not meant.
      long start = offset == TO_THE_END ? end : offset;
      starts.put(partition, Math.min(start, terms.limit(partition)));
    });
  }

  @Override
  boolean isIn(State newest) {
    return starts.entrySet().stream().allMatch(start -> start.getValue() <= newest.start(start.getKey()));
  }

  @Override
  NextVersion change(State newest) {
    NextVersion next = new NextVersion(newest, "delete-records");
    starts.forEach(next::raiseStart);
    return next;
  }
}
