package io.sparklog.commits;

import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The threads that commit, and the threads of the upkeep beside. A topic that is written to has at most two threads. A simulation does the
 * tasks in a thread of its own.
 */
class CommitThreads {
  /** The pause before a task is tried again that could have no thread. */
  private static final long RETRY_MS = 1000;

  private static final long END_S = 30;

  private final ExecutorService commits = Executors.newCachedThreadPool(named("server-commit-"));
  private final ExecutorService upkeeps = Executors.newCachedThreadPool(named("server-upkeep-"));
  private final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, named("server-timer-"));

  private static ThreadFactory named(String name) {
    AtomicInteger number = new AtomicInteger();
    return task -> {
      Thread thread = new Thread(task, name + number.incrementAndGet());
      thread.setDaemon(true);
      return thread;
    };
  }

  void commit(Runnable task) {
    commits.execute(task);
  }

  void commitLater(long ms, Runnable task) {
    later(ms, commits, task);
  }

  void keepUpLater(long ms, Runnable task) {
    later(ms, upkeeps, task);
  }

  private void later(long ms, Executor threads, Runnable task) {
    timer.schedule(() -> {
      try {
        threads.execute(task);
      } catch (Throwable e) { // The task must not be lost, or its topic would wait for ever.
        later(RETRY_MS, threads, task);
      }
    }, ms, TimeUnit.MILLISECONDS);
  }

  /** Waits for the tasks at work, so long at most. Tasks that would begin later do not begin. An interrupt ends the wait. */
  void end() {
    timer.shutdownNow();
    commits.shutdown();
    upkeeps.shutdown();
    try {
      commits.awaitTermination(END_S, TimeUnit.SECONDS);
      upkeeps.awaitTermination(END_S, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
