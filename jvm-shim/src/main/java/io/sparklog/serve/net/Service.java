package io.sparklog.door.net;

/** Serves the connections of a listener. */
public interface Service {
  /** A connection has begun. */
  Session open(Peer peer);
}
