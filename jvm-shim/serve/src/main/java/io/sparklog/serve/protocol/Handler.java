package io.sparklog.serve.protocol;

import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/** Answers the requests of one API. */
public interface Handler<Q extends AbstractRequest> {
  /**
   * Must not block: it is called on a thread of the network. Work that waits or reads files runs on {@link Workers}.
   *
   * <p>An exception, thrown or of the future, becomes the error answer of the request by {@link KafkaErrors}. A future of null is a request
   * that has no answer: a produce request with acks=0. When the connection ends, the future is cancelled: a handler that finds its
   * future cancelled releases its {@link RecordParts}.
   */
  CompletableFuture<? extends AbstractResponse> answer(ClientRequest asked, Q request);
}
