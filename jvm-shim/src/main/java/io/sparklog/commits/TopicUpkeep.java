package io.sparklog.commits;

/**
 * The upkeep after the commits of one topic: one run at a time, and not all the time, so that commits are seldom in its way. Commits that
 * are faster than their upkeep wait for it: otherwise a topic would have ever more small segments, and more versions since its checkpoint.
 */
final class TopicUpkeep {
  /** A run begins this long after its first commit, and also follows the commits of that time. */
  private static final long PAUSE_MS = 1000;

  /** A run with this number of commits to follow begins at once. */
  private static final int SOON = 500;

  /** The most commits that are not followed. */
  static final int BEHIND_MAX = 1000;

  private final CommitThreads threads;

  // All below is guarded by this.
  private Runnable owed;

  /** The commits that the next run follows. */
  private int waiting;

  /** The commits that the run at work follows. */
  private int followed;

  private boolean isScheduled;

  /** Whether it begins at once. */
  private boolean isSoon;
  private boolean working;

  TopicUpkeep(CommitThreads threads) {
    this.threads = threads;
  }

  /** Does the upkeep of a commit later. @param run does the upkeep of the commits before it, too */
  synchronized void owe(Runnable run) {
    owed = run;
    waiting++;
    schedule();
  }

  /** Whether the next commit must wait for a run. */
  synchronized boolean isBehind() {
    if (waiting + followed < BEHIND_MAX) {
      return false;
    }
    schedule(); // A schedule may have failed for want of memory.
    return true;
  }

  private void schedule() {
    if (working || owed == null || isSoon) {
      return;
    }
    if (waiting >= SOON) {
      threads.keepUpLater(0, this::work);
      isSoon = true;
    } else if (!isScheduled) {
      threads.keepUpLater(PAUSE_MS, this::work);
      isScheduled = true;
    }
  }

  private void work() {
    Runnable run;
    synchronized (this) {
      if (working || owed == null) {
        return; // It was scheduled twice.
      }
      run = owed;
      owed = null;
      followed = waiting;
      waiting = 0;
      isScheduled = false;
      isSoon = false;
      working = true;
    }
    try {
      run.run();
    } finally {
      synchronized (this) {
        working = false;
        followed = 0;
        schedule();
      }
    }
  }
}
