package io.sparklog.write;

import static io.sparklog.kit.Faults.assertFound;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.sparklog.kit.Drivers;
import io.sparklog.kit.Writes;
import io.sparklog.routing.Bindings;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

/** A write that would commit other records than it was given is found before its commit. */
final class InvariantsTest extends Drivers {
  /** Breaks what one task reports, and commits it: nothing is committed, and no file stays. */
  private void assertFoundInACommit(String fault, UnaryOperator<Segment> broken) throws IOException {
    new Driver().commit();
    List<String> before = data();
    Driver driver = new Driver();
    TopicPlan plan = driver.plan(Map.of());
    String txn = Names.identity(random);
    List<TopicReport> reports = Writes.of("x", 1, 28, 300_000).reports(driver.store, plan, txn);
    TopicReport.Piece.InFile first = reports.get(0)
        .pieces()
        .stream()
        .filter(TopicReport.Piece.InFile.class::isInstance)
        .map(TopicReport.Piece.InFile.class::cast)
        .findFirst()
        .orElseThrow();
    List<TopicReport.Piece> wrong = reports.get(0)
        .pieces()
        .stream()
        .map(piece -> piece == first ? new TopicReport.Piece.InFile(broken.apply(first.segment())) : piece)
        .toList();
    assertFound(fault, () -> driver.commit(plan, txn, List.of(new TopicReport(wrong, Bindings.SlotSet.NONE))));
    assertEquals(0, state().version());
    assertEquals(before, data());
  }

  @Test
  void whatATaskReportsCountsFromZero() throws IOException {
    assertFoundInACommit("does not count from offset 0", segment -> segment.at(7));
  }

  @Test
  void whatATaskReportsIsOfAPartitionOfTheTopic() throws IOException {
    assertFoundInACommit("partition 9 of topic t, which has 4", s -> new Segment(9, s.file(), 0, s.bytes(), 0, s.end(), s.records(),
        s.batches(), 0, 0, Segment.Offsets.DENSE, true, true, s.headerCrc()));
  }

  @Test
  void aTaskHoldsNoLessThanNothing() {
    assertFound("take -1 bytes", () -> new TaskTotals(1000).note(-1));
  }

  @Test
  void aTaskReportsTheRecordsThatItWasGiven() {
    TaskTotals totals = new TaskTotals(1000);
    totals.countRecord();
    assertFound("given 1 records for topics [t], and reports 0", () -> totals.requireReported(Map.of("t", TopicReport.NONE)));
  }
}
