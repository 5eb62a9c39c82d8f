package io.sparklog.serve.protocol;

import io.sparklog.serve.security.Listener;
import io.sparklog.serve.security.Rights;
import org.apache.kafka.common.requests.RequestContext;

/**
 * The circumstances of a request.
 *
 * @param context as Kafka's own classes take it: header with the version and the client id, address, principal
 * @param listener by which the client came in
 */
public record ClientRequest(RequestContext context, Listener listener) {
  /** The version of the API. */
  public short version() {
    return context.header.apiVersion();
  }

  /** The rights of the client. */
  public Rights rights() {
    return listener.rights();
  }
}
