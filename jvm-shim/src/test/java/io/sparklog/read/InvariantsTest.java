package io.sparklog.read;

import static io.sparklog.kit.Faults.assertFound;

import io.sparklog.kit.Drivers;
import io.sparklog.segment.BatchPosition;
import io.sparklog.segment.Extent;
import io.sparklog.segment.Segment;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A plan that would read other offsets than those that are asked for is found before it is read. */
final class InvariantsTest extends Drivers {
  private static Extent extent(int partition, long start, long end) {
    Segment segment = new Segment(partition, "data/f", 0, 1000, 10, 20, 10, 1, 0, 0, Segment.Offsets.DENSE, true, true, 0);
    return Extent.of(segment, BatchPosition.startOf(segment), start, end, false);
  }

  private static Split split(Extent... extents) {
    return new Split("t", "id", 0, 1, 1, RecordFilter.ALL_RECORDS, List.of(extents), null);
  }

  @Test
  void anExtentIsWithinItsSegment() {
    extent(1, 10, 20);
    assertFound("the offsets 9 to 20", () -> extent(1, 9, 20));
    assertFound("the offsets 10 to 21", () -> extent(1, 10, 21));
    assertFound("the offsets 12 to 12", () -> extent(1, 12, 12));
  }

  @Test
  void theExtentsOfASplitAreInOrderAndOfOnePartition() {
    split(extent(1, 10, 12), extent(1, 12, 15), extent(1, 17, 20));
    assertFound("extents of partition 1 of topic t", () -> split(extent(1, 10, 12), extent(1, 11, 15)));
    assertFound("extents of partition 1 of topic t", () -> split(extent(1, 12, 15), extent(1, 10, 12)));
    assertFound("extents of partition 1 of topic t", () -> split(extent(1, 10, 12), extent(2, 12, 15)));
  }

  @Test
  void onlyOffsetsOfTheStateAreSelected() throws IOException {
    new Driver().commit();
    long end = state().end(0);
    new Selection(state(), 0, Intervals.of(0, end - 1), RecordFilter.ALL_RECORDS);
    assertFound("partition 0 of version 0", () -> new Selection(state(), 0, Intervals.of(0, end), RecordFilter.ALL_RECORDS));
    assertFound("partition 4 of version 0", () -> new Selection(state(), 4, Intervals.of(0, 0), RecordFilter.ALL_RECORDS));
  }
}
