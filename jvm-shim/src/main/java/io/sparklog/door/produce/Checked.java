package io.sparklog.door.produce;

import io.sparklog.routing.Router;
import java.util.List;

/**
 * Batches of one partition that may be added.
 *
 * @param topicId of the topic that they are for
 * @param router by which it is known where their keys go
 * @param fence the end offset that the partition must have; −1: any
 */
public record Checked(String topicId, Router router, long fence, List<Accepted> batches) {
  private static final long NO_FENCE = -1;

  /** A batch that {@code intake} accepted. */
  public static Checked of(Intake intake, Accepted batch) {
    return new Checked(intake.state().topicId(), intake.state().router(), NO_FENCE, List.of(batch));
  }

  /** The same, if the partition has the end offset {@code end}. */
  public Checked at(long end) {
    return new Checked(topicId, router, end, batches);
  }
}
