package io.sparklog.serve.protocol;

import io.sparklog.serve.net.Peer;
import io.sparklog.serve.net.Service;
import io.sparklog.serve.net.Session;
import io.sparklog.serve.security.Credentials;
import io.sparklog.serve.security.Listener;
import io.sparklog.serve.security.Sasl;

/**
 * Kafka's protocol for the clients of one listener.
 *
 * @param handlers of all APIs that are served
 * @param credentials of users; null if the listener does not ask for a name
 * @param traffic of all listeners
 */
public record KafkaService(Listener listener, Handlers handlers, Credentials credentials, Workers work,
    RequestMetrics traffic) implements Service {
  @Override
  public Session open(Peer peer) {
    Sasl sasl = listener.asksForName() ? new Sasl(listener.mechanisms(), credentials) : null;
    return new KafkaSession(listener, handlers, peer, sasl, work, traffic);
  }
}
