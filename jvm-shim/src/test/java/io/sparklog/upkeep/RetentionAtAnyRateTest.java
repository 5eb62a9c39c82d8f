package io.sparklog.upkeep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.log.Committer;
import io.sparklog.log.NextVersion;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.merge.MergePlan;
import io.sparklog.merge.TimeGroups;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.storage.Stores;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Function;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A year of a topic: how long records stay, and how many segments are live. FORMAT.md section 12, docs/guide/operations.md. */
@Tag("slow")
final class RetentionAtAnyRateTest {
  private static final long HOUR = 3_600_000;
  private static final long DAY = 24 * HOUR;
  private static final long BUDGET = 32 << 20;
  private static final int RECORD_BYTES = 200;
  private static final int CHECKPOINT_VERSIONS = 100;

  /** The most small segments in the newest span that the documentation allows. */
  private static final int NEWEST = 32;

  @TempDir
  Path folder;

  private final Random random = new Random(1);
  private final Random times = new Random(2);
  private Function<State, List<MergePlan.Run>> merging = state -> MergePlan.due(state, BUDGET, 8, segment -> false);
  private boolean onlyWithCheckpoints;
  private State state;
  private long nowMs = 1_700_000_000_000L;
  private long lastCheckpoint;
  private long position;
  private long written;
  private long copied;
  private long deletions;
  /** The greatest span of the configurations so far: what was merged under one stays as it is. */
  private long spanMs;
  private long writeMs;
  private long lateMs;

  @BeforeEach
  void create() {
    TopicLog log = new Root(Stores.open(folder.toString())).topic("t");
    TopicConfig config = TopicConfig
        .of(new TreeMap<>(Map.of("partitions", "1", "partitioner", "murmur3", "compression.type", "none", "segment.bytes", "1073741824",
            "max.message.bytes", "1048588", "message.timestamp.type", "CreateTime", "index.interval.bytes", "4096")));
    new Committer(log, Names.identity(random), Clock.systemUTC(), random)
        .commit(newest -> Optional.of(new NextVersion("t", Names.identity(random), config, "create")));
    state = log.newest().orElseThrow();
    spanMs = TimeGroups.spanMs(config);
  }

  private void put(NextVersion next) {
    long start = state.start(0);
    long end = state.end(0);
    state = next.preview();
    assertTrue(state.start(0) >= start && state.end(0) >= end && state.start(0) <= state.end(0), "offsets fall");
  }

  private void configure(String key, long value) {
    put(new NextVersion(state, "alter").configure(Map.of(key, Long.toString(value))));
    spanMs = Math.max(spanMs, TimeGroups.spanMs(state.config()));
  }

  private Segment segment(long bytes, long records, long minTimestamp, long maxTimestamp) {
    position += bytes;
    return new Segment(0, "data/00000000000000000000-c9Uau9icSBmvDvtokvlNaA/pool.log", position, bytes, 0, records, records, 1,
        minTimestamp, maxTimestamp, Segment.Offsets.DENSE, true, true, 0);
  }

  /** Writes {@code records} of the last {@link #writeMs}, some late, and does what follows a commit. */
  private void write(long records) {
    long late = lateMs > 0 ? times.nextLong(lateMs) : 0;
    NextVersion next = new NextVersion(state, "write");
    next.append(segment(records * RECORD_BYTES, records, nowMs - late - writeMs, nowMs - late));
    written += records * RECORD_BYTES;
    put(next);
    upkeep();
  }

  private void upkeep() {
    List<MergePlan.Run> runs = merging.apply(state);
    if (!runs.isEmpty()) {
      NextVersion merge = new NextVersion(state, "merge");
      for (MergePlan.Run run : runs) {
        List<Segment> from = run.segments();
        Segment joined = segment(run.bytes(), from.stream().mapToLong(Segment::records).sum(),
            from.stream().mapToLong(Segment::minTimestamp).min().getAsLong(),
            from.stream().mapToLong(Segment::maxTimestamp).max().getAsLong());
        merge.replace(from, List.of(joined.at(from.get(0).base())));
        copied += run.bytes();
      }
      put(merge);
    }
    boolean checkpoint = state.version() - lastCheckpoint >= CHECKPOINT_VERSIONS;
    if (checkpoint) {
      lastCheckpoint = state.version();
    }
    if (checkpoint || !onlyWithCheckpoints
        && Retention.isOverdue(state, RetentionTerms.OF_THE_TOPIC, Clock.fixed(Instant.ofEpochMilli(nowMs), ZoneOffset.UTC))) {
      expire();
    }
  }

  private void expire() {
    List<Retention.Expired> expired = Retention.expired(state, RetentionTerms.OF_THE_TOPIC, nowMs);
    if (!expired.isEmpty()) {
      deletions++;
      put(Retention.deletion(state, expired));
    }
  }

  private static long waitMs(long spanMs) {
    return Math.max(spanMs / 8, 1000);
  }

  /** The bound of operations.md for the oldest record, where one write's records are at most {@link #writeMs} apart. */
  private void assertBoundsHold(long retentionMs) {
    List<Segment> live = state.segments(0);
    long oldest = live.stream().mapToLong(Segment::minTimestamp).min().orElse(nowMs);
    long span = Math.max(spanMs, writeMs);
    if (retentionMs >= 0) {
      long most = retentionMs + span + waitMs(spanMs) + lateMs;
      assertTrue(nowMs - oldest <= most,
          () -> "the oldest record is " + (nowMs - oldest) + " ms old, not at most " + most + "; " + live.size() + " segments");
    }
    long large = live.stream().filter(segment -> segment.bytes() >= BUDGET / 2).count();
    long groups = 2 + 2 * (nowMs - oldest) / TimeGroups.spanMs(state.config());
    assertTrue(live.size() <= groups + 2 * large + NEWEST, () -> live.size() + " live segments, of at most " + groups + " groups");
  }

  /** Days of {@code rate} records, in writes that are at least {@code everyMs} apart. @return the most live segments */
  private int days(int days, int rate, long everyMs, long retentionMs) {
    long stepMs = Math.max(everyMs, DAY / rate);
    writeMs = rate * stepMs > DAY ? stepMs : 0;
    int most = 0;
    for (long end = nowMs + days * DAY; nowMs < end;) {
      nowMs += stepMs;
      write(Math.max(1, rate * stepMs / DAY));
      assertBoundsHold(retentionMs);
      most = Math.max(most, state.segments(0).size());
    }
    return most;
  }

  private static long everyMs(long retentionMs) {
    return retentionMs < 0 || retentionMs > DAY ? 2 * HOUR : HOUR;
  }

  @ParameterizedTest
  @CsvSource({"1, 3600000", "1, 86400000", "1, 2592000000", "1, -1", "24, 3600000", "24, 86400000", "24, 2592000000", "24, -1",
      "1000, 3600000", "1000, 86400000", "1000, 2592000000", "1000, -1", "100000, 3600000", "100000, 86400000", "100000, 2592000000",
      "100000, -1"})
  void aYearInOrder(int rate, long retentionMs) {
    configure("retention.ms", retentionMs);
    spanMs = TimeGroups.spanMs(state.config());
    int many = retentionMs == HOUR ? days(5, rate, 60_000, retentionMs) : 0; // There are many writes in a span.
    int most = Math.max(many, days(365, rate, everyMs(retentionMs), retentionMs));
    System.out.printf("%d records a day, retention.ms %d: at most %d segments, %.2f bytes copied for each, %d deletions of %d versions%n",
        rate, retentionMs, most, (double) copied / written, deletions, state.version());
    if (retentionMs >= 0) {
      assertTrue(deletions * Math.max(1, waitMs(spanMs)) <= 371 * DAY, deletions + " versions of retention");
    }
    assertTrue(copied <= 8 * written, copied + " bytes copied");
  }

  @ParameterizedTest
  @CsvSource({"24, 3600000, 1800000", "24, 86400000, 40000000", "1000, 86400000, 86400000", "1000, 2592000000, 2000000000",
      "24, -1, 2592000000"})
  void aYearOfTimesInAnyOrder(int rate, long retentionMs, long lateMs) {
    configure("retention.ms", retentionMs);
    spanMs = TimeGroups.spanMs(state.config());
    this.lateMs = lateMs;
    days(365, rate, everyMs(retentionMs), retentionMs);
  }

  @Test
  void retentionChangesOnTheWay() {
    days(60, 24, HOUR, -1);
    configure("retention.ms", 30 * DAY);
    days(60, 24, HOUR, 30 * DAY);
    configure("retention.ms", DAY);
    days(20, 24, HOUR, DAY);
    spanMs = TimeGroups.spanMs(state.config()); // Segments that were merged before are gone.
    days(60, 24, HOUR, DAY);
    configure("retention.ms", 90 * DAY);
    days(200, 24, HOUR, 90 * DAY);
    configure("segment.ms", HOUR);
    configure("retention.ms", 2 * DAY);
    days(30, 24, HOUR, 2 * DAY);
    spanMs = TimeGroups.spanMs(state.config());
    assertEquals(HOUR, spanMs);
    days(60, 24, HOUR, 2 * DAY);
    configure("retention.ms", -1);
    configure("segment.ms", 7 * DAY);
    int before = state.segments(0).size();
    days(1, 24, HOUR, -1);
    assertTrue(state.segments(0).size() < before, "a longer span joins what a shorter one kept apart");
  }

  @Test
  void aTopicThatNobodyWritesToExpiresByACall() {
    configure("retention.ms", DAY);
    spanMs = TimeGroups.spanMs(state.config());
    days(10, 24, HOUR, DAY);
    long end = state.end(0);
    for (int hours = 0; hours < 30; hours++) {
      nowMs += HOUR;
      expire();
      long oldest = state.segments(0).stream().mapToLong(Segment::minTimestamp).min().orElse(nowMs);
      assertTrue(nowMs - oldest <= DAY + spanMs, "no wait by a call");
    }
    assertEquals(List.of(end, end, 0), List.of(state.start(0), state.end(0), state.segments(0).size()));
    days(5, 24, HOUR, DAY);
    assertTrue(state.start(0) > end);
  }

  /** The bounds do not hold by chance. */
  @ParameterizedTest
  @CsvSource({"24, 86400000", "1000, 2592000000"})
  void withoutTheSpanRecordsStay(int rate, long retentionMs) {
    configure("retention.ms", retentionMs);
    spanMs = TimeGroups.spanMs(state.config());
    merging = state -> new MergePlan(BUDGET, BUDGET, Long.MAX_VALUE, 8, segment -> false, segment -> false)
        .due(List.of(new ArrayList<>(state.segments(0))));
    assertThrows(AssertionError.class, () -> days(365, rate, everyMs(retentionMs), retentionMs));
  }

  @Test
  void withCheckpointsAloneRecordsStay() {
    configure("retention.ms", DAY);
    spanMs = TimeGroups.spanMs(state.config());
    onlyWithCheckpoints = true;
    assertThrows(AssertionError.class, () -> days(365, 1, HOUR, DAY));
  }
}
