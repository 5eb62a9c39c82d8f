package io.sparklog.write;

import io.sparklog.format.BatchHeader;
import io.sparklog.routing.Bindings;
import io.sparklog.segment.Segment;
import java.io.Serializable;
import java.util.List;

/**
 * The report of a task about one topic.
 *
 * @param pieces all that the task wrote to the topic, by partition
 * @param usedSlots the slots that the task used, which had no partition when the write was planned
 */
public record TopicReport(List<Piece> pieces, Bindings.SlotSet usedSlots) implements Serializable {
  static final TopicReport NONE = new TopicReport(List.of(), Bindings.SlotSet.NONE);

  long records() {
    return pieces.stream().mapToLong(Piece::records).sum();
  }

  /**
   * A part of a task's report: batches that it wrote for one partition. A task lists the pieces of a partition in the order of its records.
   */
  public sealed interface Piece extends Serializable {
    int partition();

    long records();

    /** Batches in a data file: a segment that only needs its base offset; as long as it has none, its offsets count from 0. */
    record InFile(Segment segment) implements Piece {
      @Override
      public int partition() {
        return segment.partition();
      }

      @Override
      public long records() {
        return segment.records();
      }
    }

    /** Batches that travel to the driver in the report itself, in their order. */
    record Travelling(int partition, List<Batch> batches) implements Piece {
      @Override
      public long records() {
        return batches.stream().mapToLong(batch -> BatchHeader.count(batch.bytes(), 0)).sum();
      }
    }

    /**
     * A closed record batch of one partition that is not in a data file yet. FORMAT.md section 3.
     *
     * @param bytes the batch; its base offset is not set yet
     * @param minTimestamp the least time of its records, ms since 1970
     * @param routed whether the partitioner chose the partition for each of its records
     * @param ordered whether no record has a lower time than a record before it
     */
    record Batch(byte[] bytes, long minTimestamp, boolean routed, boolean ordered) implements Serializable {}
  }
}
