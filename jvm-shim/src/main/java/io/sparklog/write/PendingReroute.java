package io.sparklog.write;

import io.sparklog.log.Change;
import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.time.Clock;
import java.util.Map;
import java.util.Optional;
import java.util.random.RandomGenerator;

/**
 * The re-route that waits for the next write. The write is planned again after the re-route, so a writer that writes alone is not refused.
 * FORMAT.md section A.6.
 */
public final class PendingReroute implements Change.Administrative {
  private final TopicLog log;
  private final State planned;

  private PendingReroute(TopicLog log, State planned) {
    this.log = log;
    this.planned = planned;
  }

  /**
   * Commits the re-route of a topic that waits, if there is one. Where that is not possible now, a later write makes it. This call does not
   * wait for the upkeep of the re-route.
   *
   * @return empty if no re-route waited. Otherwise a write that was planned before must be planned once more, and must do the returned
   *     upkeep when the write has ended
   */
  public static Optional<Runnable> apply(TopicLog log, Clock clock, RandomGenerator random) {
    try {
      Optional<State> latest = log.latest();
      if (latest.isEmpty() || isDone(latest.get())) {
        return Optional.empty();
      }
      TopicWork work = new TopicWork(log, clock, random);
      return Optional.of(work.begin(new PendingReroute(log, latest.get()), work.identity(), 0)::followed);
    } catch (PartlogException e) {
      Warnings.warn(PendingReroute.class, "topic {} under {} cannot be re-routed before this write, which goes on without that",
          log.topic(), log.store().root(), e);
      return Optional.of(() -> {});
    }
  }

  private static boolean isDone(State state) {
    return state.isDeleted() || state.pendingWeights().isEmpty();
  }

  /** Also where the topic is another one, or has another routing epoch: then another re-route waits. */
  @Override
  public Optional<String> appliedIn(State newest) {
    boolean isOther = !newest.topicId().equals(planned.topicId()) || !newest.router().admits(planned.router());
    return newest.isDeleted() || isOther || isDone(newest) ? Optional.of("the re-route of topic " + log.topic()) : Optional.empty();
  }

  @Override
  public Optional<NextVersion> next(Optional<State> newest) throws IOException {
    State state = newest.orElseThrow();
    int[] weights = state.pendingWeights().orElseThrow();
    return Optional.of(NextVersion.rerouting(log, state, weights, state.routing().table().replan(weights), Map.of()));
  }
}
