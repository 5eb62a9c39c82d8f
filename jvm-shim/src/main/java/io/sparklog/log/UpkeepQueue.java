package io.sparklog.log;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;

/**
 * The upkeep of one topic that this process owes. One run is at work at a time, and the commits that come meanwhile share the next run. The
 * queue has no thread: the callers that wait do the runs. A run whose caller does not wait is done by the next caller that waits.
 */
public final class UpkeepQueue {
  /** The upkeep that follows one commit, or several of them together. It throws nothing. */
  public interface UpkeepRun {
    /** Takes over the work of {@code later}, while neither has begun; false if each must be a run of its own. */
    boolean takes(UpkeepRun later);

    void run();
  }

  private final Deque<UpkeepRun> waiting = new ArrayDeque<>();
  private UpkeepRun working;

  /** Hands over a run. It is shared with the last run that waits, if that takes it. Waits for nothing. */
  public synchronized void add(UpkeepRun run) {
    if (waiting.isEmpty() || !waiting.getLast().takes(run)) {
      waiting.add(run);
    }
  }

  /**
   * Returns when {@code run}, which was added and not taken by another, is done. Until then, this thread does the waiting runs in order,
   * unless another thread does them. An interrupt ends no waiting: the thread is interrupted again when it works, and when this returns.
   */
  public void await(UpkeepRun run) {
    for (Optional<UpkeepRun> next = next(run); next.isPresent(); next = next(run)) {
      try {
        next.get().run();
      } finally {
        done();
      }
    }
  }

  /** The run to do next; empty if {@code run} is done. Waits while another thread is at work. */
  private synchronized Optional<UpkeepRun> next(UpkeepRun run) {
    boolean interrupted = false;
    while (working != null && isOwed(run)) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (!isOwed(run)) {
      return Optional.empty();
    }
    working = waiting.remove();
    return Optional.of(working);
  }

  private boolean isOwed(UpkeepRun run) {
    return working == run || waiting.contains(run);
  }

  private synchronized void done() {
    working = null;
    notifyAll();
  }
}
