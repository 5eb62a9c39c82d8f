package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.kit.MillisClock;
import io.sparklog.kit.Writes;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FarStore;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Random histories of writes in a store where looks are spared: {@link TopicLog#toPlan} and {@link TopicLog#toExtend}. Two processes plan
 * writes and commit them later. Another program writes, drops the topic, or deletes it by hand, and the clock goes forth and back.
 */
final class PlansOfWritesHistoriesTest extends CommitsOverFaults {
  private static final int HISTORIES = 30;
  private static final int ACTS = 40;

  private Random draw;
  private long nowMs;
  private LogStore near;
  private List<Root> processes;
  private final List<Write> planned = new ArrayList<>();
  private final Map<String, Integer> outcomes = new TreeMap<>();

  /** The number of times that the topic was dropped. */
  private int drops;

  /** The records of the topic that is there now. */
  private long records;

  /** A write whose rows are written, and not committed. */
  private final class Write {
    private final Root driver;
    private final TopicPlan plan;
    private final String txn = Names.identity(draw);
    private final List<TopicReport> reports;
    private final int dropsBefore = drops;

    /** Whether the plan is of an older state, whose version file has been deleted. FORMAT.md section 7.1. */
    private final boolean isStale;

    private Write(Root driver) throws IOException {
      long next = latest().map(State::version).orElse(-1L) + 1;
      this.driver = driver;
      this.plan = TopicPlan.of("t", driver.topic("t").toPlan(), Writes.config());
      this.isStale = plan.plannedVersion() != next;
      this.reports = Writes.of("x", 1, 3, 0).reports(driver.store(), plan, txn);
    }

    private Optional<Version> commit() {
      return new TopicCommits(driver, txn, topic -> Once.NEVER, Clock.systemUTC(), draw).commit(plan, reports).version();
    }
  }

  private Optional<State> latest() {
    return new TopicLog(near, "t").latest();
  }

  private void remove() throws IOException {
    try (Stream<Path> files = Files.walk(root)) {
      for (Path file : files.filter(file -> !file.equals(root)).sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
    records = 0;
  }

  private void act() throws IOException {
    Root process = processes.get(draw.nextInt(processes.size()));
    switch (draw.nextInt(10)) {
      case 0, 1, 2 -> planned.add(new Write(process));
      case 3, 4, 5 -> {
        if (!planned.isEmpty()) {
          commit(planned.remove(draw.nextInt(planned.size())));
        }
      }
      case 6 -> commit(new Write(new Root(near)));
      case 7 -> nowMs += draw.nextLong(-3_000, 9_000);
      case 8 -> {
        if (latest().filter(state -> !state.isDeleted()).isPresent()) {
          new Administration(new TopicWork(new TopicLog(near, "t"), Clock.systemUTC(), draw)).delete(false);
          records = 0;
          drops++;
        }
      }
      default -> {
        if (Files.exists(root.resolve("_partlog")) && draw.nextInt(3) == 0) {
          remove();
        }
      }
    }
  }

  private void commit(Write write) {
    Optional<State> before = latest();
    String topicId = before.filter(state -> !state.isDeleted()).map(State::topicId).orElse(null);
    boolean isDue = write.plan.topicId() == null ? write.dropsBefore == drops : write.plan.topicId().equals(topicId);
    try {
      Version version = write.commit().orElseThrow();
      assertTrue(write.plan.topicId() == null || isDue, "a write to a topic that is gone is committed");
      assertEquals(before.map(State::version).orElse(-1L) + 1, version.version());
      State after = latest().orElseThrow();
      assertEquals(version.version(), after.version());
      assertTrue(after.isOf(write.txn));
      records += 3;
      assertEquals(records, LongStream.of(after.ends()).sum());
      outcomes.merge("committed", 1, Integer::sum);
    } catch (PartlogException e) {
      assertTrue(List.of("TOPIC_RECREATED", "WRITE_EXPIRED").contains(e.id()) && (!isDue || write.isStale), e::getMessage);
      assertEquals(before.map(State::hash), latest().map(State::hash), "a write that is refused changes nothing");
      assertNotEquals(Optional.of(true), latest().map(state -> state.isOf(write.txn)));
      outcomes.merge(e.id(), 1, Integer::sum);
    }
  }

  @Test
  void aWriteExtendsTheNewestStateOrChangesNothing() throws IOException {
    near = Stores.open(root.toString());
    Pace pace = new Pace(100, 8, Thread::sleep, new MillisClock(() -> nowMs));
    for (int seed = 0; seed < HISTORIES; seed++) {
      draw = new Random(seed);
      processes = List.of(new Root(new FarStore(root.toString(), 4).store(), pace),
          new Root(new FarStore(root.toString(), 4).store(), pace));
      planned.clear();
      for (int n = 0; n < ACTS; n++) {
        try {
          act();
        } catch (RuntimeException | AssertionError e) {
          throw new AssertionError("seed " + seed + ", act " + n + ": " + e, e);
        }
      }
      if (Files.exists(root.resolve("_partlog"))) {
        remove();
      }
    }
    assertTrue(outcomes.getOrDefault("committed", 0) > 100 && outcomes.getOrDefault("TOPIC_RECREATED", 0) > 20, outcomes::toString);
  }
}
