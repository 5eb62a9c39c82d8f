package io.sparklog.write;

import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import io.sparklog.upkeep.Repeatable;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.time.Clock;
import java.util.Map;
import java.util.Optional;
import java.util.random.RandomGenerator;

/** The re-route that a note asks for, before the next write is planned: so no write of a lone writer is refused. FORMAT.md section 13.6. */
public final class AskedReroute implements Repeatable {
  private final TopicLog log;
  private final State planned;

  private AskedReroute(TopicLog log, State planned) {
    this.log = log;
    this.planned = planned;
  }

  /** The newest state of a topic, after what it asks for. If that cannot be done now, a later write does it. */
  public static Optional<State> latest(TopicLog log, Clock clock, RandomGenerator random) {
    Optional<State> latest = log.latest();
    if (latest.isEmpty() || isDone(latest.get())) {
      return latest;
    }
    try {
      new TopicWork(log, clock, random).commit(new AskedReroute(log, latest.get()));
    } catch (PartlogException e) {
      Warnings.warn(AskedReroute.class, "topic {} under {} is not re-routed as it was asked for, and is written as it is", log.topic(),
          log.store().root(), e);
    }
    return log.latest();
  }

  private static boolean isDone(State state) {
    return state.routing().flatMap(routing -> routing.asked()).isEmpty();
  }

  /** Also where the topic is another one, or has another routing epoch: then the note is not the one that was seen. */
  @Override
  public Optional<String> appliedIn(State newest) {
    boolean isOther = !newest.topicId().equals(planned.topicId()) || !newest.router().equals(planned.router());
    return newest.isDeleted() || isOther || isDone(newest) ? Optional.of("the re-route of topic " + log.topic()) : Optional.empty();
  }

  @Override
  public Optional<NextVersion> next(Optional<State> newest) throws IOException {
    State state = newest.orElseThrow();
    return Optional.of(NextVersion.rerouting(log, state, state.slots().asked().orElseThrow(), Map.of()));
  }
}
