package io.sparklog.upkeep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.admin.Vacuum;
import io.sparklog.kit.Drivers;
import io.sparklog.kit.Writes;
import io.sparklog.log.Change;
import io.sparklog.log.Committed;
import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Each change of a topic is followed by its upkeep. */
final class TopicWorkTest extends Drivers {
  private TopicWork work() {
    return new TopicWork(new Driver().log(), clock(), random);
  }

  private void commit(int times) throws IOException {
    for (int n = 0; n < times; n++) {
      new Driver().commit();
    }
  }

  @Test
  void theViewFollowsAMerge() throws IOException {
    commit(5);
    long before = state().liveSegments();
    assertTrue(work().merge(0).replaced() > 0);
    assertTrue(state().liveSegments() < before);
    assertViewIsRight();
  }

  @Test
  void theViewFollowsNewBatches() throws IOException {
    commit(5);
    assertTrue(work().merge(1 << 20).replaced() > 0);
    assertViewIsRight();
  }

  @Test
  void theViewFollowsAnExpiry() throws IOException {
    commit(3);
    RetentionTerms terms = RetentionTerms.of(state(), folder.toString(), null, 0L, new TreeMap<>());
    List<Retention.Expired> expired = Retention.expired(state(), terms, nowMs);
    assertTrue(expired.size() > 0);
    assertEquals(expired, work().expire(state(), terms));
    expired.forEach(each -> assertEquals(each.start(), state().start(each.partition())));
    assertViewIsRight();
    assertEquals(List.of(), work().expire(state(), terms), "nothing is left that has expired");
  }

  /** On a full disk an operator deletes the view: a call that commits nothing must not fill the disk again. */
  @Test
  void aCallThatCommitsNothingDoesNotMakeTheView() throws IOException {
    commit(3);
    work().merge(0);
    List<String> replaced = data();
    nowMs += 3_600_000;
    for (int p = 0; p < state().partitions(); p++) {
      for (String name : files("t-" + p)) {
        Files.delete(folder.resolve(name));
      }
    }
    State before = state();
    assertEquals(List.of(), work().expire(before, RetentionTerms.OF_THE_TOPIC));
    assertTrue(data().size() < replaced.size(), "the files that wait are deleted");
    assertEquals(0, work().merge(0).replaced());
    new Vacuum(work()).run(Vacuum.OLDER_THAN, false);
    new Administration(work()).deleteRecords(new TreeMap<>(Map.of(0, 0L)), new TreeMap<>(), false);
    assertEquals(before.version(), state().version());
    for (int p = 0; p < state().partitions(); p++) {
      assertEquals(List.of(), files("t-" + p));
    }
    work().commit(newest -> Optional.of(new NextVersion(newest.get(), "alter").configure(Map.of("kafka.view", "all"))));
    assertViewIsRight();
  }

  @Test
  void theViewFollowsAnyChange() throws IOException {
    commit(1);
    assertViewIsRight();
    work().commit(newest -> Optional.of(new NextVersion(newest.get(), "alter").configure(Map.of("kafka.view", "none"))));
    assertEquals(List.of(), files("t-0"));
    assertViewIsRight();
  }

  @Test
  void aRepeatedEpochReportsNoLiveSegments() throws IOException {
    Driver driver = new Driver();
    List<Committed> done = new ArrayList<>();
    for (int n = 0; n < 2; n++) {
      TopicPlan plan = driver.plan(Map.of());
      String txn = Names.identity(random);
      done.add(new TopicCommits(driver.root, txn, topic -> Once.epoch("q", 0, null), clock(), random).commit(plan,
          Writes.of("x", 1, 28, 0).reports(driver.store, plan, txn)));
    }
    assertTrue(done.get(0).liveSegments() > 0);
    assertEquals(Optional.empty(), done.get(1).version());
    assertEquals(0, done.get(1).liveSegments());
  }

  /** A change that fails before its put is told so, and then that is all; any other is told that it is settled. */
  @Test
  void aChangeIsToldHowItEnded() throws IOException {
    commit(1);
    List<String> told = new ArrayList<>();
    final class Told implements Change {
      private final Optional<String> operation;

      Told(String operation) {
        this.operation = Optional.ofNullable(operation);
      }

      @Override
      public Optional<NextVersion> next(Optional<State> newest) {
        if (operation.equals(Optional.of("refused"))) {
          throw PartlogException.of("TOPIC_NOT_FOUND", "topic", "t", "root", folder, "topics", "none");
        }
        return operation.map(one -> new NextVersion(newest.get(), one));
      }

      @Override
      public void refused() {
        told.add("refused");
      }

      @Override
      public void settled() {
        told.add("settled");
      }
    }
    assertThrows(PartlogException.class, () -> work().commit(new Told("refused")));
    assertEquals(List.of("refused"), told);
    assertEquals(Optional.empty(), work().commit(new Told(null)).version());
    assertEquals(List.of("refused", "settled"), told);
    assertEquals(1, work().commit(new Told("alter")).version().get().version());
    assertEquals(List.of("refused", "settled", "settled"), told);
  }
}
