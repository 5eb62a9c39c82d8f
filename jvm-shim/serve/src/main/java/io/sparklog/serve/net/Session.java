package io.sparklog.serve.net;

import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;

/** One connection, as the requests of its client see it. */
public interface Session {
  /**
   * Answers a request. Answers go out in the order of requests. When the connection ends, the future is cancelled.
   *
   * <p>Is called on the thread of the network, so it must not block. An exception ends the connection.
   *
   * @param frame the bytes of the request, without their length. The session may keep them
   */
  CompletableFuture<Reply> answer(ByteBuffer frame);

  /**
   * Whether the next request is handed in before the last one is answered. If not, a client that asks often cannot be ahead of others with
   * more than one request. Is asked after each {@link #answer}.
   */
  boolean takesNext();

  /** The connection has ended. Is called once. */
  void ended();

  /** Whether the client has proved its name, or need not. The requests of others have a small memory of their own. */
  boolean isTrusted();

  /** The length of the next request, in bytes: a longer one ends the connection. */
  int frameBytesMax();
}
