package io.sparklog.merge;

import static io.sparklog.kit.Faults.assertFound;

import io.sparklog.segment.Segment;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A merge that holds other records than what it replaces is found before its commit. */
final class InvariantsTest {
  private static Segment segment(int partition, long base, long end) {
    return new Segment(partition, "data/f", 0, 1000, base, end, end - base, 1, 0, 0, Segment.Offsets.DENSE, true, true, 0);
  }

  @Test
  void whatIsMergedFollowsOneAnother() {
    assertFound("no segments", () -> new MergePlan.Run(List.of()));
    assertFound("do not follow one another", () -> new MergePlan.Run(List.of(segment(0, 0, 5), segment(0, 6, 9))));
    assertFound("do not follow one another", () -> new MergePlan.Run(List.of(segment(0, 0, 5), segment(1, 5, 9))));
  }

  @Test
  void aMergeCoversExactlyWhatItReplaces() {
    List<Segment> two = List.of(segment(0, 3, 5), segment(0, 5, 9));
    new MergePlan.Merged(two, List.of(segment(0, 3, 9)));
    assertFound("the offsets 3 to 9 of partition 0", () -> new MergePlan.Merged(two, List.of(segment(0, 3, 8))));
    assertFound("the offsets 3 to 9 of partition 0", () -> new MergePlan.Merged(two, List.of(segment(0, 4, 9))));
    assertFound("the offsets 3 to 9 of partition 0", () -> new MergePlan.Merged(two, List.of(segment(1, 3, 9))));
    assertFound("do not follow one another", () -> new MergePlan.Merged(two, List.of(segment(0, 3, 4), segment(0, 5, 9))));
    Segment fewer = new Segment(0, "data/f", 0, 1000, 3, 9, 5, 1, 0, 0, Segment.Offsets.TILED, true, true, 0);
    assertFound("a merge of 6 records has made 5", () -> new MergePlan.Merged(two, List.of(fewer)));
  }
}
