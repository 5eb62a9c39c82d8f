package io.sparklog.upkeep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.admin.Vacuum;
import io.sparklog.kit.Drivers;
import io.sparklog.kit.Writes;
import io.sparklog.log.Committers;
import io.sparklog.log.Pace;
import io.sparklog.log.State;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Deletion by age: expired records, and the files of dead writers. FORMAT.md section 12. */
final class ExpiryTest extends Drivers {
  private RetentionTerms terms(Long retentionMs, Long retentionBytes, Map<Integer, Long> keep) {
    return RetentionTerms.of(state(), folder.toString(), retentionMs, retentionBytes, new TreeMap<>(keep));
  }

  private List<Retention.Expired> expired(State state, RetentionTerms terms) {
    return Retention.expired(state, terms, nowMs);
  }

  private Committers committers(Driver driver) {
    return new Committers(driver.log(), clock(), random);
  }

  private int used() {
    return IntStream.range(0, 4).filter(p -> !state().segments(p).isEmpty()).findFirst().orElseThrow();
  }

  @Test
  void recordsExpire() throws IOException {
    // Records are of the time 1_700_000_000_000 and later.
    nowMs = 1_700_000_001_000L;
    Driver driver = new Driver();
    driver.commit(Map.of("retention.ms", "1000"), 0);
    driver.commit();
    assertEquals(List.of(), expired(state(), terms(null, null, Map.of())));
    nowMs += 1_000;
    State before = state();
    List<Retention.Expired> expired = expired(before, terms(null, null, Map.of()));
    assertEquals(before, before);
    assertFalse(expired.isEmpty());
    for (Retention.Expired each : expired) {
      long end = before.end(each.partition());
      long bytes = before.segments(each.partition()).stream().mapToLong(Segment::bytes).sum();
      assertEquals(new Retention.Expired(each.partition(), 0, end, end, bytes), each);
    }
    assertEquals(expired, Retention.expire(committers(driver), state(), terms(null, null, Map.of())));
    assertEquals(List.of(), Retention.expire(committers(driver), state(), terms(null, null, Map.of())));
    assertEquals(3 - 1, state().version());
    assertEquals(0, state().liveSegments());
    new Upkeep(committers(driver), Names.identity(random), 0, RetentionTerms.OF_THE_TOPIC).owe().await();
    assertViewIsRight();
    // The empty topic goes on where it ended, also for a process that knows only files.
    long[] ends = state().ends();
    nowMs = 1_700_000_000_000L;
    new Driver().commit();
    for (int p = 0; p < 4; p++) {
      assertEquals(ends[p], state().start(p));
      long next = ends[p];
      state().segments(p).forEach(segment -> assertTrue(segment.base() >= next));
    }
    assertViewIsRight();
  }

  @Test
  void bytesBeyondTheRetentionGo() throws IOException {
    Driver driver = new Driver();
    driver.commit();
    driver.commit();
    driver.commit();
    State state = state();
    int p = used();
    List<Segment> live = state.segments(p);
    long kept = live.get(live.size() - 1).bytes() + live.get(live.size() - 2).bytes();
    for (long[] bytesAndGone : new long[][] {{kept, live.size() - 2}, {kept + 1, live.size() - 3}, {0, live.size() - 1}}) {
      new Administration(new TopicWork(driver.log(), clock(), random)).configure(Map.of("retention.bytes", Long.toString(bytesAndGone[0])));
      assertEquals(live.get((int) bytesAndGone[1]).base(), start(expired(state(), terms(null, null, Map.of())), p));
    }
  }

  @Test
  void aCallMayHaveTermsOfItsOwn() throws IOException {
    Driver driver = new Driver();
    driver.commit();
    driver.commit();
    driver.commit();
    State state = state();
    int p = used();
    List<Segment> live = state.segments(p);
    long newest = live.get(live.size() - 1).base();
    assertEquals(List.of(), expired(state, terms(null, null, Map.of())), "it is for ever");
    assertEquals(newest, start(expired(state, terms(null, 0L, Map.of())), p), "the newest segment does not go by bytes");
    assertEquals(state.end(p), start(expired(state, terms(1000L, null, Map.of())), p));
    assertEquals(newest, start(expired(state, terms(1000L, null, Map.of(p, state.end(p) - 1))), p), "what is kept stays");
    assertEquals(List.of(), expired(state, terms(1L << 50, Long.MAX_VALUE, Map.of())));

    long middle = live.get(1).base();
    assertTrue(middle + 1 < newest);
    for (long[] keptAndStart : new long[][] {{0, 0}, {middle - 1, 0}, {middle, middle}, {middle + 1, middle}, {state.end(p), newest}}) {
      assertEquals(keptAndStart[1], start(expired(state, terms(null, 0L, Map.of(p, keptAndStart[0]))), p), "kept " + keptAndStart[0]);
    }
    for (int other = p + 1; other < 4; other++) {
      List<Segment> segments = state.segments(other);
      assertEquals(segments.isEmpty() ? 0 : segments.get(segments.size() - 1).base(),
          start(expired(state, terms(null, 0L, Map.of(p, 0L))), other), "what is not named is not kept");
    }
    RetentionTerms kept = terms(null, 0L, Map.of(p, middle));
    List<Retention.Expired> told = expired(state, kept);
    assertEquals(told, Retention.expire(committers(driver), state, kept));
    assertEquals(middle, state().start(p));
    assertEquals(List.of(), Retention.expire(committers(driver), state(), terms(null, 0L, Map.of(p, middle - 1))),
        "the group that needs it is late");

    for (long bad : new long[] {-1, state.end(p) + 1}) {
      assertEquals("OPTION_VALUE", assertThrows(PartlogException.class, () -> terms(null, null, Map.of(p, bad))).id());
    }
    assertEquals("PARTITION_NOT_FOUND", assertThrows(PartlogException.class, () -> terms(null, null, Map.of(4, 0L))).id());
  }

  /** Clients of Kafka set the policy: the newest record of a key stays at a broker, with any retention of the topic. */
  @Test
  void retentionDoesNotCountWithoutThePolicyDelete() throws IOException {
    pace = new Pace(1000, 8, ms -> {});
    Driver driver = new Driver();
    nowMs = 1_700_000_000_000L;
    driver.commit(Map.of("retention.ms", "640000", "retention.bytes", "0"), 0);
    driver.commit();
    Administration topic = new Administration(new TopicWork(driver.log(), clock(), random));
    nowMs += 640_000_000;
    for (String policy : List.of("compact", "", "compact ,undelete")) {
      topic.configure(Map.of("cleanup.policy", policy));
      long version = state().version();
      assertEquals(List.of(), expired(state(), terms(null, null, Map.of())), policy);
      assertEquals(List.of(), Retention.expire(committers(driver), state(), terms(0L, 0L, Map.of())), policy);
      driver.commit();
      assertEquals(version + 1, state().version(), policy);
      assertEquals(0, state().start(used()), policy);
    }
    for (String policy : List.of("compact,delete", "delete, compact", "delete")) {
      topic.configure(Map.of("cleanup.policy", policy));
      assertFalse(expired(state(), terms(null, null, Map.of())).isEmpty(), policy);
    }
    driver.commit();
    assertEquals(0, state().liveSegments());
  }

  /** Retention does not wait for a checkpoint, nor does each commit put a version of it. */
  @Test
  void whatHasExpiredForLongGoesWithTheNextCommit() throws IOException {
    pace = new Pace(1000, 8, ms -> {});
    Driver driver = new Driver();
    nowMs = 1_700_000_000_000L;
    driver.commit(Map.of("retention.ms", "640000"), 0); // The span is 80 s, and a segment may wait for 10 s.
    long oldest = state().segments().stream().flatMap(List::stream).mapToLong(Segment::maxTimestamp).min().getAsLong();
    nowMs = oldest + 640_000 + 10_000;
    driver.commit();
    assertEquals(1, state().version());
    nowMs += 1_000; // All partitions have expired, and one of them is overdue.
    driver.commit();
    assertEquals(List.of(3L, 0L), List.of(state().version(), state().liveSegments()));
  }

  /** Otherwise the checkpoint after a call might delete what the call keeps. */
  @Test
  void theRetentionThatFollowsACallKeepsToo() throws IOException {
    Driver driver = new Driver();
    driver.commit(Map.of("retention.bytes", "0"), 0);
    for (int version = 1; version < 10; version++) {
      driver.commit();
    }
    int p = used();
    assertEquals(List.of(9L, 0L), List.of(state().version(), state().start(p)));
    long kept = state().segments(p).get(2).base() + 1;
    new Administration(new TopicWork(driver.log(), clock(), random)).deleteRecords(new TreeMap<>(Map.of(p, 1L)),
        new TreeMap<>(Map.of(p, kept)), false);
    assertEquals(11, state().version(), "with the checkpoint of version 10");
    assertEquals(kept - 1, state().start(p));
  }

  private static long start(List<Retention.Expired> expired, int partition) {
    return expired.stream().filter(each -> each.partition() == partition).mapToLong(Retention.Expired::start).findFirst().orElse(0);
  }

  @Test
  void aWriterThatSleepsThroughAVacuumIsRefused() throws IOException {
    Driver driver = new Driver();
    driver.commit();
    Driver sleeper = new Driver();
    TopicPlan plan = sleeper.plan(Map.of());
    String txn = Names.identity(random);
    List<TopicReport> reports = Writes.of("asleep", 2, 28, 10_000).reports(sleeper.store, plan, txn);
    nowMs = System.currentTimeMillis();
    Vacuum vacuum = new Vacuum(new TopicWork(driver.log(), clock(), random));
    assertEquals(new Vacuum.Vacuumed(List.of(), 0, 0), vacuum.run(Vacuum.OLDER_THAN_MIN, false), "it may be alive");
    assertEquals(0, state().version());

    List<String> orphans = data().stream().filter(file -> file.contains(txn)).toList();
    assertTrue(orphans.size() > 0);
    long bytes = 0;
    for (String orphan : orphans) {
      bytes += Files.size(folder.resolve(orphan));
      Files.setLastModifiedTime(folder.resolve(orphan), FileTime.fromMillis(nowMs - 3_600_001));
    }
    Files.createDirectories(folder.resolve("_partlog/t/tmp"));
    Files.write(folder.resolve("_partlog/t/tmp/new"), new byte[7]);
    Files.write(folder.resolve("_partlog/t/tmp/old"), new byte[5]);
    Files.setLastModifiedTime(folder.resolve("_partlog/t/tmp/old"), FileTime.fromMillis(nowMs - 86_400_001));
    List<String> named = new ArrayList<>(orphans.stream().map(file -> file.substring("_partlog/t/".length())).toList());
    named.add("tmp/old");
    Vacuum.Vacuumed would = vacuum.run(Vacuum.OLDER_THAN_MIN, true);
    assertEquals(new Vacuum.Vacuumed(would.files(), bytes + 5, 2), would);
    assertEquals(named.stream().sorted().toList(), would.files().stream().sorted().toList());
    assertEquals(0, state().version());
    assertTrue(data().containsAll(orphans));
    assertEquals(would, vacuum.run(Vacuum.OLDER_THAN_MIN, false));
    assertEquals(List.of(1L, 2L), List.of(state().version(), state().horizon()));
    assertFalse(data().stream().anyMatch(orphans::contains));
    assertEquals(List.of("_partlog/t/tmp/new"), files("_partlog/t/tmp"));
    assertEquals("WRITE_EXPIRED", assertThrows(PartlogException.class, () -> sleeper.commit(plan, txn, reports)).id());
    driver.commit();
    assertViewIsRight();
    assertEquals(List.of(), vacuum.run(Vacuum.OLDER_THAN_MIN, false).files());
  }

  /** They are of writes that have committed: no writer died, and none is refused. */
  @Test
  void aVacuumWaitsWithReplacedFilesAndRefusesNobody() throws IOException {
    nowMs = System.currentTimeMillis() + 86_400_000;
    Driver driver = new Driver();
    driver.commit();
    List<String> replaced = data();
    driver.replace();
    Driver writer = new Driver();
    TopicPlan plan = writer.plan(Map.of());
    String txn = Names.identity(random);
    List<TopicReport> reports = Writes.of("alive", 2, 28, 0).reports(writer.store, plan, txn);
    nowMs += 59_999;
    Vacuum vacuum = new Vacuum(new TopicWork(new Driver().log(), clock(), random));
    assertEquals(new Vacuum.Vacuumed(List.of(), 0, 0), vacuum.run(Vacuum.OLDER_THAN_MIN, false), "readers and backups need them");
    assertTrue(data().containsAll(replaced));
    writer.commit(plan, txn, reports);
    nowMs += 1;
    Vacuum later = new Vacuum(new TopicWork(new Driver().log(), clock(), random));
    List<String> named = replaced.stream().map(file -> file.substring("_partlog/t/".length())).toList();
    assertEquals(named, later.run(Vacuum.OLDER_THAN_MIN, true).files());
    assertTrue(data().containsAll(replaced));
    Vacuum.Vacuumed done = later.run(Vacuum.OLDER_THAN_MIN, false);
    assertEquals(named, done.files());
    assertTrue(done.bytes() > 0);
    assertEquals(0, done.horizon());
    assertFalse(data().stream().anyMatch(replaced::contains));
    assertEquals(2, state().version(), "nothing had to be committed for that");
  }

  @Test
  void aVacuumOfYoungFilesIsRefused() throws IOException {
    new Driver().commit();
    Vacuum vacuum = new Vacuum(new TopicWork(new Driver().log(), clock(), random));
    PartlogException e = assertThrows(PartlogException.class, () -> vacuum.run(Duration.ofMinutes(59), true));
    assertEquals("OPTION_VALUE", e.id());
    assertTrue(e.getMessage().contains("at least 1 hour"), e.getMessage());
  }
}
