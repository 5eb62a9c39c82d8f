package io.sparklog.serve.net;

/** Serves the connections of a listener. */
public interface Service {
  /** A connection has begun. */
  Session open(Peer peer);
}
