package io.sparklog.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.sparklog.kit.MillisClock;
import io.sparklog.kit.RemoteReads;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Root;
import io.sparklog.log.TopicConfig;
import io.sparklog.storage.Stores;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How often an idle query refreshes, and how late it sees a commit; by a clock that stands while nothing waits. */
final class CommitReaderTest {
  /** A refresh takes this long, as two requests of 30 ms. */
  private static final long REFRESH_MS = 60;
  private static final long MOST_MS = 1000;
  private static final long DAY_MS = 24L * 3600 * 1000;

  @TempDir
  Path directory;

  private long nowMs = 1_000_000;

  private final Clock clock = new MillisClock(() -> nowMs);

  private interface Pause {
    void of(long ms) throws InterruptedException;
  }

  /** Over a network. */
  private CommitReader reader(long mostMs, Pause pause) {
    Root remote = new Root(new RemoteReads(Stores.open(directory.toString())).store());
    return new CommitReader(new CommitFeed(remote, clock), mostMs, clock, (told, ms) -> pause.of(ms));
  }

  private static void commit(WrittenTopic topic) {
    try {
      topic.segment(0, 3).commit();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  private CommitReader polls(long mostMs) {
    return reader(mostMs, ms -> {
      assertTrue(ms > 0 && ms <= mostMs, ms + " ms");
      nowMs += ms;
    });
  }

  private void refresh(CommitReader polls, boolean isNew) {
    polls.await();
    nowMs += REFRESH_MS;
    polls.refreshed(isNew);
  }

  @Test
  void anIdleQueryLooksOnceASecond() {
    CommitReader polls = polls(MOST_MS);
    int refreshes = 0;
    for (long end = nowMs + DAY_MS; nowMs < end; refreshes++) {
      refresh(polls, false);
    }
    assertTrue(refreshes <= DAY_MS / MOST_MS + 100, refreshes + " refreshes a day");
  }

  /** Or later by a refresh that began just before the commit. */
  @Test
  void aCommitIsSeenLateByATenthOfTheSilence() {
    CommitReader polls = polls(MOST_MS);
    Random random = new Random(48);
    for (int commit = 0; commit < 1000; commit++) {
      long seenMs = nowMs;
      long committedMs = nowMs + random.nextLong(1 << random.nextInt(5, 16));
      while (true) {
        polls.await();
        boolean isNew = nowMs >= committedMs;
        long late = nowMs - committedMs;
        nowMs += REFRESH_MS;
        polls.refreshed(isNew);
        if (isNew) {
          long silence = committedMs - seenMs;
          assertTrue(late <= Math.min(MOST_MS, (silence + REFRESH_MS) / 10 + 1) + REFRESH_MS, late + " ms late after " + silence + " ms");
          break;
        }
      }
    }
  }

  /** The first refresh, refreshes at new records, and refreshes between micro-batches of another source follow at once. */
  @Test
  void aBusyQueryDoesNotWait() {
    CommitReader polls = reader(MOST_MS, ms -> {
      throw new AssertionError("it waits for " + ms + " ms");
    });
    for (int refresh = 0; refresh < 100; refresh++) {
      refresh(polls, true);
    }
    for (int refresh = 0; refresh < 100; refresh++) {
      refresh(polls, false);
      nowMs += 5000;
      polls.busy();
    }
  }

  @Test
  void aQueryThatMustNotWaitDoesNot() {
    for (boolean ended : new boolean[] {true, false}) {
      CommitReader polls = reader(ended ? MOST_MS : 0, ms -> {
        throw new AssertionError("it waits for " + ms + " ms");
      });
      if (ended) {
        polls.end();
      }
      nowMs += DAY_MS;
      refresh(polls, false);
      refresh(polls, false);
    }
  }

  /** A clock that goes back by an hour, while the query is idle. */
  @Test
  void aClockThatIsSetBackAddsNoWait() {
    CommitReader polls = polls(MOST_MS);
    nowMs += DAY_MS;
    refresh(polls, false);
    nowMs -= 3_600_000;
    long before = nowMs;
    refresh(polls, false);
    assertEquals(before + MOST_MS + REFRESH_MS, nowMs);
  }

  /** Refreshes, micro-batches and a clock in any order: where the clock only goes forth, no wait is longer than a tenth of the silence. */
  @Test
  void aWaitHasItsLimitsInEachHistory() {
    long[] waits = {0};
    for (int seed = 0; seed < 200; seed++) {
      Random random = new Random(seed);
      boolean isSteady = seed % 2 == 0;
      long[] busyMs = {nowMs};
      CommitReader polls = reader(MOST_MS, ms -> {
        assertTrue(ms > 0 && ms <= MOST_MS, ms + " ms");
        assertTrue(!isSteady || ms <= (nowMs - busyMs[0]) / 10, ms + " ms after " + (nowMs - busyMs[0]) + " ms");
        waits[0]++;
        nowMs += ms;
      });
      for (int act = 0; act < 200; act++) {
        switch (random.nextInt(8)) {
          case 0 -> nowMs += random.nextLong(isSteady ? 0 : -20_000, 20_000);
          case 1 -> {
            polls.busy();
            busyMs[0] = nowMs;
          }
          case 2 -> {
            refresh(polls, true);
            busyMs[0] = nowMs;
          }
          default -> refresh(polls, false);
        }
      }
    }
    assertTrue(waits[0] > 1000, waits[0] + " waits");
  }

  @Test
  void anInterruptEndsTheWait() {
    CommitReader polls = reader(MOST_MS, ms -> {
      throw new InterruptedException();
    });
    nowMs += DAY_MS;
    polls.refreshed(false);
    polls.await();
    assertTrue(Thread.interrupted());
  }

  /** The wait has no limit of time here: the file of the version alone ends it. */
  @Test
  void aCommitOfAnotherProcessEndsTheWaitOnAWatchedDisk() throws Exception {
    WrittenTopic topic = new WrittenTopic(directory, "t").with(TopicConfig.KAFKA_VIEW, "none");
    topic.segment(0, 3).commit();
    CommitFeed feed = new CommitFeed(new Root(Stores.open(directory.toString())), clock);
    CommitReader reader = new CommitReader(feed, MOST_MS, clock, (told, ms) -> {
      assertEquals(100, ms);
      commit(topic);
      assertTrue(told.tryAcquire(10, TimeUnit.MINUTES));
    });
    assumeTrue(feed.topic("t").watch(), "the file system here is not watched");
    assertEquals(3, reader.newest(List.of("t")).get("t").end(0));
    nowMs += DAY_MS;
    reader.refreshed(false);
    reader.await();
    assertEquals(6, reader.newest(List.of("t")).get("t").end(0));
  }

  /** Such as one that Spark's own delay between two triggers hides. */
  @Test
  void aCommitBetweenARefreshAndTheNextWaitEndsThatWait() throws Exception {
    WrittenTopic topic = new WrittenTopic(directory, "t").with(TopicConfig.KAFKA_VIEW, "none");
    topic.segment(0, 3).commit();
    CommitFeed feed = new CommitFeed(new Root(Stores.open(directory.toString())), clock);
    CommitReader reader = new CommitReader(feed, MOST_MS, clock, (told, ms) -> {
      throw new AssertionError("it waits for " + ms + " ms");
    });
    reader.newest(List.of("t"));
    nowMs += DAY_MS;
    reader.refreshed(false);
    feed.committed("t");
    reader.await();
  }
}
