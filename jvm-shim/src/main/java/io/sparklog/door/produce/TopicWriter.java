package io.sparklog.door.produce;

import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.PendingReroute;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionException;

/**
 * Commits the batches of one topic, all that wait together, one commit at a time: the next begins when the last ends. An acknowledgement
 * comes after the version is durable. The upkeep is done beside, on another thread.
 */
final class TopicWriter {
  /** The most bytes of one data file. */
  private static final long COMMIT_BYTES_MAX = 64L << 20;

  private static final int COMMIT_ARRIVALS_MAX = 10_000;

  private final Means means;
  private final TopicLog log;
  private final DataFolder folder;
  private final TopicUpkeep upkeep;
  private final Deque<Arrival> waiting = new ArrayDeque<>();
  private boolean working;
  /** The thread that commits, and no other, uses it. */
  private long begunMs;

  TopicWriter(Means means, TopicLog log) {
    this.means = means;
    this.log = log;
    this.folder = new DataFolder(log.store(), log.topic(), means.random());
    this.upkeep = new TopicUpkeep(means.threads());
  }

  /** Adds batches behind the batches that wait. */
  void add(Arrival arrival) {
    synchronized (this) {
      waiting.add(arrival);
      if (working) {
        return;
      }
      working = true;
    }
    means.threads().commit(this::work);
  }

  private void work() {
    while (true) {
      long pause = pauseMs();
      if (pause > 0) {
        means.threads().commitLater(pause, this::work);
        return;
      }
      List<Arrival> taken = take();
      if (taken.isEmpty()) {
        return;
      }
      begunMs = means.clock().millis();
      commit(taken);
    }
  }

  /** How long the arrivals wait for others. */
  private synchronized long pauseMs() {
    if (waiting.isEmpty()) {
      return 0;
    }
    long now = means.clock().millis();
    long due = Math.max(waiting.getFirst().sinceMs() + means.terms().lingerMs(), begunMs + means.terms().intervalMs());
    return Math.min(due - now, Math.max(means.terms().lingerMs(), means.terms().intervalMs()));
  }

  /** The arrivals of the next commit; empty if nothing waits, and then the next arrival begins the work again. */
  private synchronized List<Arrival> take() {
    List<Arrival> taken = new ArrayList<>();
    long bytes = 0;
    while (!waiting.isEmpty() && taken.size() < COMMIT_ARRIVALS_MAX
        && (taken.isEmpty() || bytes + waiting.getFirst().bytes() <= COMMIT_BYTES_MAX)) {
      Arrival arrival = waiting.remove();
      taken.add(arrival);
      bytes += arrival.bytes();
    }
    working = !taken.isEmpty();
    return taken;
  }

  private void commit(List<Arrival> taken) {
    List<Arrival> checked = taken.stream().filter(TopicWriter::isChecked).toList();
    if (checked.isEmpty()) {
      return;
    }
    try {
      Optional<State> planned = log.toPlan();
      if (planned.filter(state -> !state.isDeleted() && state.pendingWeights().isPresent()).isPresent()) {
        PendingReroute.apply(log, means.clock(), means.random()).ifPresent(upkeep::owe);
        planned = log.toPlan();
      }
      TopicWork work = new TopicWork(log, means.clock(), means.random());
      GroupCommit change = new GroupCommit(log, checked, folder, means, planned);
      TopicWork.Begun begun = work.begin(change, work.identity(), means.terms().mergeBytes());
      upkeep.owe(begun::followed);
      means.committed().accept(log.topic());
    } catch (Throwable e) { // An Error, too, must not leave a client without an answer, or a topic without a thread.
      Refused refused = refused(e);
      checked.forEach(arrival -> arrival.done().completeExceptionally(refused));
    }
  }

  /** Waits until an arrival is checked. One that is refused has its answer then. */
  private static boolean isChecked(Arrival arrival) {
    try {
      arrival.checked().join();
      return true;
    } catch (CompletionException e) {
      arrival.done().completeExceptionally(e.getCause());
    } catch (RuntimeException cancelled) {
      arrival.done().completeExceptionally(cancelled);
    }
    return false;
  }

  private Refused refused(Throwable e) {
    Warnings.warn(TopicWriter.class, "batches for topic {} under {} are not committed, or not known to be", log.topic(), log.store().root(),
        e);
    boolean isUnknown = e instanceof PartlogException failure && failure.id().equals("COMMIT_UNKNOWN");
    return new Refused(isUnknown ? Refusal.UNKNOWN_OUTCOME : Refusal.STORAGE, String.valueOf(e.getMessage()), e);
  }
}
