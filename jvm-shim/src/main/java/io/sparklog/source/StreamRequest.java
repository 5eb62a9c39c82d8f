package io.sparklog.source;

import io.sparklog.log.ReadableTopics;
import io.sparklog.query.Subscription;
import io.sparklog.spec.Options;
import io.sparklog.stream.TriggerLimits;

/** The request of a streaming read, before it is known which query it becomes. */
public final class StreamRequest {
  private StreamRequest() {}

  /**
   * Refuses what no query can do, so that it is told where the stream is defined and not by the query when it runs. Where a query begins is
   * for its checkpoint to say, and so is whether it has read a topic that is gone.
   *
   * @param options of a read
   * @throws io.sparklog.spec.PartlogException OPTION_VALUE, and what {@link Subscription#resolve} throws
   */
  public static void require(ReadableTopics root, Options options) {
    Options ofStream = options.ofStream();
    TriggerLimits.of(ofStream);
    if (ofStream.bool("failOnDataLoss") && (ofStream.given("subscribe") || ofStream.given("assign"))) {
      new Subscription(root, root::newest, ofStream).resolve();
    } else {
      root.requireReadable();
    }
  }
}
