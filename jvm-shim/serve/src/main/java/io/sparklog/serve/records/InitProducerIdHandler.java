package io.sparklog.serve.records;

import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import java.util.concurrent.CompletableFuture;
import java.util.random.RandomGenerator;
import org.apache.kafka.common.message.InitProducerIdRequestData;
import org.apache.kafka.common.message.InitProducerIdResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.InitProducerIdRequest;
import org.apache.kafka.common.requests.InitProducerIdResponse;

/**
 * Gives producers their ids. An id is a random number of 63 bits, so that no server must ask another.
 *
 * @param random is safe for many threads
 */
public record InitProducerIdHandler(RandomGenerator random) implements Handler<InitProducerIdRequest> {
  @Override
  public CompletableFuture<InitProducerIdResponse> answer(ClientRequest asked, InitProducerIdRequest request) {
    InitProducerIdRequestData data = request.data();
    if (data.transactionalId() != null) {
      throw Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.exception("Transactions are not supported.");
    }
    if (asked.rights().readOnly()) {
      throw Errors.CLUSTER_AUTHORIZATION_FAILED.exception("Clients of this listener write no records.");
    }
    boolean isKnown = data.producerId() >= 0 && data.producerEpoch() >= 0 && data.producerEpoch() < Short.MAX_VALUE;
    InitProducerIdResponseData given = new InitProducerIdResponseData()
        .setProducerId(isKnown ? data.producerId() : random.nextLong(Long.MAX_VALUE))
        .setProducerEpoch(isKnown ? (short) (data.producerEpoch() + 1) : 0);
    return CompletableFuture.completedFuture(new InitProducerIdResponse(given));
  }
}
