package io.sparklog.serve.records.produce;

import io.sparklog.routing.Router;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * Batches of one partition that may be added.
 *
 * @param topicId of the topic that they are for
 * @param router by which it is known where their keys go
 */
public record Checked(String topicId, Router router, List<Accepted> batches) {
  /**
   * The only batch in {@code records}, which is copied.
   *
   * @param intake of the topic
   * @throws Refused if the batch may not be added
   */
  public static Checked of(Intake intake, int partition, ByteBuffer records) throws Refused {
    return new Checked(intake.state().topicId(), intake.state().router(), List.of(intake.accept(partition, records)));
  }
}
