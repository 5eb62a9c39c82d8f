package io.sparklog.serve.protocol;

import java.util.EnumMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/** Which API has which handler. ApiVersions tells clients exactly these. */
public final class Handlers {
  private final Map<ApiKeys, Handler<?>> handlers = new EnumMap<>(ApiKeys.class);

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

  Set<ApiKeys> keys() {
    return handlers.keySet();
  }

  @SuppressWarnings("unchecked") // The handler of a key takes the class of its requests.
  CompletableFuture<? extends AbstractResponse> answer(ClientRequest asked, AbstractRequest request) {
    Handler<AbstractRequest> handler = (Handler<AbstractRequest>) handlers.get(request.apiKey());
    if (handler == null) {
      throw Errors.UNSUPPORTED_VERSION.exception("This server does not have the API " + request.apiKey().name + ".");
    }
    return handler.answer(asked, request);
  }
}
