package io.sparklog.serve.protocol;

import io.sparklog.serve.security.Listener;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ApiVersionsRequest;
import org.apache.kafka.common.requests.ApiVersionsResponse;

/** Which API has which handler. ApiVersions, which this class answers, tells clients exactly these. */
public final class Handlers {
  private final Map<ApiKeys, Handler<?>> handlers = new EnumMap<>(ApiKeys.class);
  private final Workers work;

  /** @param work runs the handlers that block */
  public Handlers(Workers work) {
    this.work = work;
    add(ApiKeys.API_VERSIONS, this::tellVersions);
  }

  /** Answers the requests of one API. */
  @FunctionalInterface
  public interface Handler<Q extends AbstractRequest> {
    /**
     * Must not block: it is called on a thread of the network. Work that waits or reads files runs on {@link Workers}.
     *
     * <p>An exception, thrown or of the future, becomes the error answer of the request by {@link KafkaErrors}. A future of null is a
     * request without an answer: a produce request with acks=0. When the connection ends, the future is cancelled: a handler that finds
     * its future cancelled releases its {@link Wire.RecordParts}.
     */
    CompletableFuture<? extends AbstractResponse> answer(ClientRequest asked, Q request);
  }

  /** Answers the requests of one API. May block. */
  @FunctionalInterface
  public interface BlockingHandler<Q extends AbstractRequest> {
    AbstractResponse answer(ClientRequest asked, Q request) throws Exception;
  }

  /**
   * Serves an API.
   *
   * @param handler takes the class that Kafka parses the requests of {@code key} to
   */
  public <Q extends AbstractRequest> Handlers add(ApiKeys key, Handler<Q> handler) {
    if (handlers.put(key, handler) != null) {
      throw new IllegalStateException(key + " has two handlers");
    }
    return this;
  }

  /** As {@link #add}. */
  public <Q extends AbstractRequest> Handlers addBlocking(ApiKeys key, BlockingHandler<Q> handler) {
    return add(key, (ClientRequest asked, Q request) -> work.run(() -> handler.answer(asked, request)));
  }

  @SuppressWarnings("unchecked") // The handler of a key takes the class of its requests.
  CompletableFuture<? extends AbstractResponse> answer(ClientRequest asked, AbstractRequest request) {
    Handler<AbstractRequest> handler = (Handler<AbstractRequest>) handlers.get(request.apiKey());
    if (handler == null) {
      throw Errors.UNSUPPORTED_VERSION.exception("This server does not have the API " + request.apiKey().name + ".");
    }
    return handler.answer(asked, request);
  }

  private CompletableFuture<ApiVersionsResponse> tellVersions(ClientRequest asked, ApiVersionsRequest request) {
    if (!request.isValid()) {
      throw Errors.INVALID_REQUEST.exception();
    }
    return CompletableFuture.completedFuture(new ApiVersionsResponse(versions(asked.listener())));
  }

  ApiVersionsResponseData versions(Listener listener) {
    ApiVersionsResponseData data = new ApiVersionsResponseData().setFinalizedFeaturesEpoch(0);
    for (ApiKeys key : handlers.keySet()) {
      data.apiKeys().add(key.toApiVersion(false).orElseThrow()); // Without a version that Kafka may change.
    }
    if (handlers.containsKey(ApiKeys.PRODUCE)) {
      // Brokers name old versions of Produce that no broker takes. librdkafka before 2.8 looks for these versions, and uses a later one.
      data.apiKeys().find(ApiKeys.PRODUCE.id).setMinVersion(ApiKeys.PRODUCE_API_VERSIONS_RESPONSE_MIN_VERSION);
    }
    if (listener.asksForName()) {
      // Also version 0 of the handshake, which no listener takes: librdkafka looks for it, and uses version 1.
      data.apiKeys().add(ApiVersionsResponse.toApiVersion(ApiKeys.SASL_HANDSHAKE));
      data.apiKeys().add(ApiVersionsResponse.toApiVersion(ApiKeys.SASL_AUTHENTICATE));
    }
    if (handlers.containsKey(ApiKeys.CONSUMER_GROUP_HEARTBEAT)) { // Clients look for the feature.
      String name = "group.version";
      short level = 1; // Clients before 3.9 take no lowest version of 0.
      data.finalizedFeatures()
          .add(new ApiVersionsResponseData.FinalizedFeatureKey().setName(name).setMinVersionLevel(level).setMaxVersionLevel(level));
      data.supportedFeatures()
          .add(new ApiVersionsResponseData.SupportedFeatureKey().setName(name).setMinVersion(level).setMaxVersion(level));
    }
    return data;
  }
}
