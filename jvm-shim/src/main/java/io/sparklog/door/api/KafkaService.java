package io.sparklog.door.api;

import io.sparklog.door.net.Peer;
import io.sparklog.door.net.Service;
import io.sparklog.door.net.Session;
import io.sparklog.door.security.Listener;

/**
 * Kafka's protocol for the clients of one listener.
 *
 * @param handlers of all APIs that are served
 */
public record KafkaService(Listener listener, Handlers handlers) implements Service {
  @Override
  public Session open(Peer peer) {
    return new KafkaSession(listener, handlers, peer);
  }
}
