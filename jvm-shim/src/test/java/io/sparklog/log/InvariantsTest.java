package io.sparklog.log;

import static io.sparklog.kit.Faults.assertFound;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.sparklog.kit.Drivers;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentBuilder;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A rule of the log that the code itself broke is found where others rely on it. */
final class InvariantsTest extends Drivers {
  private Segment segment;

  @BeforeEach
  void twoCommits() throws IOException {
    new Driver().commit();
    new Driver().commit();
    segment = state().segments().stream().flatMap(List::stream).filter(each -> each.base() > 0).findFirst().orElseThrow();
  }

  private NextVersion next() {
    return new NextVersion(state(), "write");
  }

  @Test
  void aSegmentIsPlacedOnce() {
    assertFound("does not count from offset 0", () -> next().append(segment));
    assertFound("no place", () -> segment.at(-1));
  }

  @Test
  void aMergeKeepsItsRecords() {
    assertFound("replaces " + segment.records() + " records with 0", () -> next().replace(List.of(segment), List.of()));
  }

  @Test
  void aLogStartOffsetIsNotAboveTheEnd() {
    int p = segment.partition();
    assertFound("of partition " + p + " to " + (state().end(p) + 1), () -> next().raiseStart(p, state().end(p) + 1));
  }

  @Test
  void partitionsAreNotTakenAway() {
    assertFound("4 become 3", () -> next().configure(Map.of("partitions", "3")));
  }

  /** Also in a commit: nothing is put then. */
  @Test
  void theHorizonAndTheBoundaryStayBehindTheNewestVersion() {
    long number = state().version() + 1;
    assertFound("horizon from 0 to 9", () -> next().raiseHorizon(9).preview());
    assertFound("boundary from 0 to 9", () -> next().raiseBoundary(9).preview());
    Committer committer = new Committers(new Driver().log(), clock(), random).next();
    assertFound("version " + number + " of topic t", () -> committer.commit(newest -> Optional.of(next().raiseHorizon(9))));
    assertEquals(number - 1, state().version());
  }

  @Test
  void aStateHasEachOfItsPartitions() {
    State state = state();
    List<List<Segment>> fewer = new ArrayList<>(state.segments());
    fewer.remove(0);
    assertFound("has 4 partitions, segments of 3", () -> new State(state.head(), -1, state.queries(), fewer, state.tag(), -1));
  }

  @Test
  void versionsAreReadInOrderForWhatTheyRemoved() throws IOException {
    Version second = new Driver().log().version(1).orElseThrow();
    assertFound("version 1 of topic t", () -> new Removals().add(second));
  }

  @Test
  void aSegmentHasABatch() {
    assertFound("0 batches", () -> new SegmentBuilder(3, "data/f", 0).segment());
  }
}
