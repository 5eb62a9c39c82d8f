package io.sparklog.serve.protocol;

import io.sparklog.serve.security.Listener;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiVersionsRequest;
import org.apache.kafka.common.requests.ApiVersionsResponse;

/** Tells the APIs that are served, with their versions. */
public record ApiVersionsHandler(Handlers handlers) implements Handler<ApiVersionsRequest> {
  @Override
  public CompletableFuture<ApiVersionsResponse> answer(ClientRequest asked, ApiVersionsRequest request) {
    if (!request.isValid()) {
      throw Errors.INVALID_REQUEST.exception();
    }
    return CompletableFuture.completedFuture(new ApiVersionsResponse(versions(handlers, asked.listener())));
  }

  static ApiVersionsResponseData versions(Handlers handlers, Listener listener) {
    ApiVersionsResponseData data = new ApiVersionsResponseData().setFinalizedFeaturesEpoch(0);
    for (ApiKeys key : handlers.keys()) {
      data.apiKeys().add(key.toApiVersion(false).orElseThrow()); // Without a version that Kafka may change.
    }
    if (handlers.keys().contains(ApiKeys.PRODUCE)) {
      // Brokers name old versions of Produce that no broker takes. librdkafka before 2.8 looks for these versions, and uses a later one.
      data.apiKeys().find(ApiKeys.PRODUCE.id).setMinVersion(ApiKeys.PRODUCE_API_VERSIONS_RESPONSE_MIN_VERSION);
    }
    if (listener.asksForName()) {
      // Version 0 of the handshake is followed by bytes that are no requests.
      data.apiKeys().add(ApiVersionsResponse.toApiVersion(ApiKeys.SASL_HANDSHAKE).setMinVersion((short) 1));
      data.apiKeys().add(ApiVersionsResponse.toApiVersion(ApiKeys.SASL_AUTHENTICATE));
    }
    if (handlers.keys().contains(ApiKeys.CONSUMER_GROUP_HEARTBEAT)) {
      feature(data, "group.version", (short) 1);
    }
    return data;
  }

  /** A feature that clients look for. */
  private static void feature(ApiVersionsResponseData data, String name, short level) {
    data.finalizedFeatures()
        .add(new ApiVersionsResponseData.FinalizedFeatureKey().setName(name).setMinVersionLevel(level).setMaxVersionLevel(level));
    // Clients before 3.9 take no lowest version of 0.
    data.supportedFeatures().add(new ApiVersionsResponseData.SupportedFeatureKey().setName(name).setMinVersion(level).setMaxVersion(level));
  }
}
