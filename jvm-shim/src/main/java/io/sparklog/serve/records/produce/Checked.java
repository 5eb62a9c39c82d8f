package io.sparklog.serve.records.produce;

import io.sparklog.routing.Router;
import java.nio.ByteBuffer;
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

  /**
   * The only batch in {@code records}, which is copied.
   *
   * @param intake of the topic
   * @throws Refused if the batch may not be added
   */
  public static Checked of(Intake intake, int partition, ByteBuffer records) throws Refused {
    return new Checked(intake.state().topicId(), intake.state().router(), NO_FENCE, List.of(intake.accept(partition, records)));
  }

  /** The same, if the partition has the end offset {@code end}. */
  public Checked at(long end) {
    return new Checked(topicId, router, end, batches);
  }
}
