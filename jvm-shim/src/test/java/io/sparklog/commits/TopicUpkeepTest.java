package io.sparklog.commits;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** When the upkeep of a topic runs, and when commits wait for it. */
final class TopicUpkeepTest {
  /** More commits come during some runs than may wait. */
  private static final int BUSY = 1500;

  private final Deque<Runnable> scheduled = new ArrayDeque<>();
  private final List<Long> pauses = new ArrayList<>();
  private final TopicUpkeep upkeep = new TopicUpkeep(new CommitThreads() {
    @Override
    void keepUpLater(long ms, Runnable task) {
      if (failures > 0) {
        failures--;
        throw new OutOfMemoryError("of a test");
      }
      pauses.add(ms);
      scheduled.add(task);
    }
  });

  private final Random random = new Random(Seed.draw());
  private int failures;
  private int made;
  private int followed;

  @Test
  void oneRunFollowsTheCommitsOfAPause() {
    List<Integer> runs = new ArrayList<>();
    for (int commit = 0; commit < 100; commit++) {
      int own = commit;
      upkeep.owe(() -> runs.add(own));
    }
    assertEquals(1, scheduled.size());
    scheduled.remove().run();
    assertEquals(List.of(99), runs);
    assertTrue(scheduled.isEmpty());
  }

  @Test
  void aRunThatHasManyCommitsToFollowBeginsAtOnce() {
    for (int commit = 0; commit < TopicUpkeep.BEHIND_MAX / 2; commit++) {
      upkeep.owe(() -> {});
    }
    assertEquals(List.of(1000L, 0L), pauses);
  }

  @Test
  void aRunThatCouldNotBeScheduledIsScheduledByTheNextCommit() {
    failures = 1;
    assertThrows(OutOfMemoryError.class, () -> upkeep.owe(() -> {}));
    upkeep.owe(() -> {});
    assertEquals(1, scheduled.size());
    runs();
    failures = TopicUpkeep.BEHIND_MAX;
    for (int commit = 0; commit < TopicUpkeep.BEHIND_MAX; commit++) {
      assertThrows(OutOfMemoryError.class, () -> upkeep.owe(() -> {}));
    }
    assertTrue(upkeep.isBehind());
    runs();
    assertFalse(upkeep.isBehind());
  }

  /** Commits come before runs and during them, and a run may fail. */
  @Test
  void noMoreCommitsThanTheBoundAreNotFollowed() {
    int braked = 0;
    for (int step = 0; step < Seed.either(20_000, 1_000_000); step++) {
      if (upkeep.isBehind()) {
        braked++;
        assertEquals(TopicUpkeep.BEHIND_MAX, made - followed);
        runs();
      } else if (random.nextInt(500) == 0) {
        runs();
      } else {
        commit();
      }
    }
    assertTrue(braked > 0, "nothing was braked");
    runs();
    assertFalse(upkeep.isBehind());
  }

  private void commit() {
    int own = ++made;
    upkeep.owe(() -> follow(own));
    assertTrue(made - followed <= TopicUpkeep.BEHIND_MAX);
  }

  private void follow(int commit) {
    for (int during = random.nextInt(BUSY); during > 0 && !upkeep.isBehind(); during--) {
      commit();
    }
    followed = commit;
    if (random.nextInt(4) == 0) {
      throw new IllegalStateException("a run that fails");
    }
  }

  private void runs() {
    for (int left = scheduled.size(); left > 0; left--) {
      try {
        scheduled.remove().run();
      } catch (IllegalStateException expected) {
        // The next run makes up for it.
      }
    }
  }
}
