package io.sparklog.door.api;

import io.sparklog.door.net.Peer;
import io.sparklog.door.net.Service;
import io.sparklog.door.net.Session;
import io.sparklog.door.security.Credentials;
import io.sparklog.door.security.Listener;
import io.sparklog.door.security.Sasl;

/**
 * Kafka's protocol for the clients of one listener.
 *
 * @param handlers of all APIs that are served
 * @param credentials of users; null if the listener does not ask for a name
 * @param traffic of all listeners
 */
public record KafkaService(Listener listener, Handlers handlers, Credentials credentials, Work work, Traffic traffic) implements Service {
  @Override
  public Session open(Peer peer) {
    Sasl sasl = listener.asksForName() ? new Sasl(listener.mechanisms(), credentials) : null;
    return new KafkaSession(listener, handlers, peer, sasl, work, traffic);
  }
}
