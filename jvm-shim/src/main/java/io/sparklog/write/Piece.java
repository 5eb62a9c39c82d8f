package io.sparklog.write;

import io.sparklog.format.BatchHeader;
import io.sparklog.segment.Segment;
import java.io.Serializable;
import java.util.List;

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
}
