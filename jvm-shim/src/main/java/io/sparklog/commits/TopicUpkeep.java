package io.sparklog.commits;

/** The upkeep after the commits of one topic: one run at a time, and not all the time, so that commits are seldom in its way. */
final class TopicUpkeep {
  /** A run begins this long after the commit that it follows, and follows the commits that came meanwhile too. */
  private static final long PAUSE_MS = 1000;

  private final Threads threads;
  private Runnable owed;
  private boolean working;

  TopicUpkeep(Threads threads) {
    this.threads = threads;
  }

  /** Does the upkeep of a commit later. @param run does the upkeep of the commits before it, too */
  synchronized void owe(Runnable run) {
    owed = run;
    if (!working) {
      threads.keepUpLater(PAUSE_MS, this::work);
      working = true;
    }
  }

  private void work() {
    Runnable run;
    synchronized (this) {
      run = owed;
      owed = null;
    }
    try {
      run.run();
    } finally {
      synchronized (this) {
        working = false;
        if (owed != null) {
          threads.keepUpLater(PAUSE_MS, this::work);
          working = true;
        }
      }
    }
  }
}
