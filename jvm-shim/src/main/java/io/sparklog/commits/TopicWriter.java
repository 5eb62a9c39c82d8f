package io.sparklog.commits;

import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.PendingReroute;
import java.time.Clock;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.random.RandomGenerator;

/**
 * Commits the batches of one topic, all that wait together, one commit at a time: the next begins when the last ends. An acknowledgement
 * comes after the version is durable. The upkeep is done beside, on another thread.
 */
final class TopicWriter {
  /** The most bytes of one data file. */
  private static final long COMMIT_BYTES_MAX = 64L << 20;

  private static final int COMMIT_ARRIVALS_MAX = 10_000;

  /** The time between two questions whether the upkeep is still behind. */
  private static final long BEHIND_MS = 10;

  /** The longest wait for a batch to be checked. */
  private static final long CHECK_MS = 30_000;

  /**
   * The common parts of the writers of all topics.
   *
   * @param committed is called with the topic after each commit
   * @param random is safe for many threads
   */
  record Context(CommitSettings settings, CommitThreads threads, Consumer<String> committed, Clock clock, RandomGenerator random,
      Resends resends) {
    Context withoutWait() {
      return new Context(settings.withoutWait(), threads, committed, clock, random, resends);
    }
  }

  private final Context context;
  private final TopicLog log;
  private final DataFolder folder;
  private final TopicUpkeep upkeep;
  private final Deque<GroupCommit.Arrival> waiting = new ArrayDeque<>();
  private final Runnable unused;
  private boolean working;
  private boolean ended;
  /** The thread that commits, and no other, uses it. */
  private long begunMs;

  /** @param unused is called when the writer has nothing to do, and its last batches were all refused: the topic may not exist */
  TopicWriter(Context context, TopicLog log, Runnable unused) {
    this.context = context;
    this.log = log;
    this.folder = new DataFolder(log.store(), log.topic(), context.random());
    this.unused = unused;
    this.upkeep = new TopicUpkeep(context.threads());
  }

  /** Adds batches behind the batches that wait. {@link #start} must follow. */
  synchronized void queue(GroupCommit.Arrival arrival) {
    waiting.add(arrival);
  }

  /** Begins to commit, unless that is under way. */
  void start() {
    if (isEnded()) {
      refuseWaiting(new IllegalStateException("the server ends"));
      return;
    }
    synchronized (this) {
      if (working || waiting.isEmpty()) {
        return;
      }
      working = true;
    }
    try {
      context.threads().commit(this::work);
    } catch (Throwable e) {
      refuseWaiting(e);
    }
  }

  private synchronized boolean isEnded() {
    return ended;
  }

  /** Refuses all that waits, and all that comes later. A commit that is under way ends. */
  void end() {
    synchronized (this) {
      ended = true;
    }
    start();
  }

  /** Whether nothing waits, and no commit is under way. */
  synchronized boolean isIdle() {
    return !working && waiting.isEmpty();
  }

  private void work() {
    boolean added = true;
    try {
      while (true) {
        long pause = pauseMs();
        if (pause > 0) {
          context.threads().commitLater(pause, this::work);
          return;
        }
        List<GroupCommit.Arrival> taken = take();
        if (taken.isEmpty()) {
          break;
        }
        commit(taken);
        added = taken.stream().anyMatch(arrival -> !arrival.done().isCompletedExceptionally());
      }
    } catch (Throwable e) {
      refuseWaiting(e);
      return;
    }
    if (!added) {
      unused.run();
    }
  }

  /** A thread, or memory, is missing: the next arrival begins the work again. Or the server ends. */
  private void refuseWaiting(Throwable e) {
    List<GroupCommit.Arrival> refused;
    synchronized (this) {
      refused = new ArrayList<>(waiting);
      waiting.clear();
      working = false;
    }
    refuse(refused, AppendRefused.Reason.STORAGE, e);
  }

  /** How long the arrivals wait: for others, or for the upkeep of earlier commits. */
  private synchronized long pauseMs() {
    if (waiting.isEmpty()) {
      return 0;
    }
    if (upkeep.isBehind()) {
      Warnings.seldom(TopicWriter.class, log.topic(), "commits to topic {} under {} wait for the merges and checkpoints after {} commits",
          log.topic(), log.store().root(), TopicUpkeep.BEHIND_MAX);
      return BEHIND_MS;
    }
    long now = context.clock().millis();
    long due = Math.max(waiting.getFirst().sinceMs() + context.settings().lingerMs(), begunMs + context.settings().intervalMs());
    return Math.min(due - now, Math.max(context.settings().lingerMs(), context.settings().intervalMs()));
  }

  /** The arrivals of the next commit; empty if nothing waits, and then the next arrival begins the work again. */
  private synchronized List<GroupCommit.Arrival> take() {
    List<GroupCommit.Arrival> taken = new ArrayList<>();
    long bytes = 0;
    for (GroupCommit.Arrival arrival : waiting) {
      bytes += arrival.bytes();
      if (taken.size() == COMMIT_ARRIVALS_MAX || !taken.isEmpty() && bytes > COMMIT_BYTES_MAX) {
        break;
      }
      taken.add(arrival);
    }
    taken.forEach(arrival -> waiting.remove()); // Not before: an error above must not lose an arrival.
    working = !taken.isEmpty();
    return taken;
  }

  private void commit(List<GroupCommit.Arrival> taken) {
    TopicWork.Begun begun = null;
    GroupCommit change = null;
    try {
      begunMs = context.clock().millis();
      List<GroupCommit.Arrival> checked = taken.stream().filter(TopicWriter::isChecked).toList();
      if (checked.isEmpty()) {
        return;
      }
      Optional<State> planned = log.toPlan();
      if (planned.filter(state -> !state.isDeleted() && state.pendingWeights().isPresent()).isPresent()) {
        PendingReroute.apply(log, context.clock(), context.random()).ifPresent(upkeep::owe);
        planned = log.toPlan();
      }
      TopicWork work = new TopicWork(log, context.clock(), context.random());
      change = new GroupCommit(log, checked, folder, context.resends(), context.settings().keysAnywhere(), planned);
      begun = work.begin(change, work.identity(), context.settings().mergeBytes());
    } catch (Throwable e) { // An Error, too, must not leave a client without an answer, or a topic without a thread.
      refuse(taken, isUndone(change, e) ? AppendRefused.Reason.STORAGE : AppendRefused.Reason.UNKNOWN_OUTCOME, e);
      return;
    }
    follow(begun);
  }

  /** Whether no version has the batches of a failed commit, or will have them. @param change null before the commit */
  private static boolean isUndone(GroupCommit change, Throwable e) {
    return change == null || change.isRefused() || e instanceof PartlogException failure && !failure.id().equals("COMMIT_UNKNOWN");
  }

  /** Owes the upkeep, and reports the commit. A failure concerns no client: the clients have their answers. */
  private void follow(TopicWork.Begun begun) {
    if (!begun.isPut()) {
      return; // All batches were there, or were refused.
    }
    try {
      upkeep.owe(begun::followed);
      context.committed().accept(log.topic());
    } catch (Throwable e) {
      Warnings.warn(TopicWriter.class, "the work after a commit of topic {} under {} failed", log.topic(), log.store().root(), e);
    }
  }

  /** Waits until an arrival is checked. One that is refused, or that is not checked in time, has its answer then. */
  private static boolean isChecked(GroupCommit.Arrival arrival) {
    try {
      arrival.checked().orTimeout(CHECK_MS, TimeUnit.MILLISECONDS).join();
      return true;
    } catch (CompletionException e) {
      arrival.done().completeExceptionally(e.getCause());
    } catch (RuntimeException cancelled) {
      arrival.done().completeExceptionally(cancelled);
    }
    return false;
  }

  /** Answers the arrivals that have no answer yet. */
  private void refuse(List<GroupCommit.Arrival> arrivals, AppendRefused.Reason refusal, Throwable e) {
    if (arrivals.isEmpty()) {
      return; // A server that ends, as a rule: nothing to warn of.
    }
    Throwable answer = e;
    try {
      String place = log.topic() + " under " + log.store().root();
      String outcome = refusal == AppendRefused.Reason.STORAGE ? "are not committed" : "may be committed or not";
      Object cause = e instanceof PartlogException declared ? declared.condition() + ": " + declared.getMessage() : e;
      Warnings.seldom(TopicWriter.class, place, "batches for topic {} {}: {}", place, outcome, cause);
      answer = new AppendRefused(refusal, String.valueOf(e.getMessage()), e);
    } finally {
      for (GroupCommit.Arrival arrival : arrivals) {
        arrival.done().completeExceptionally(answer);
      }
    }
  }
}
