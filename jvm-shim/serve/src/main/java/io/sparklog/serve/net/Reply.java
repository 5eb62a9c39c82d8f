package io.sparklog.serve.net;

import io.netty.util.ReferenceCounted;
import java.util.List;

/**
 * The answer to a request.
 *
 * @param parts buffers and file regions, in their order, with the length of the frame in front. The reply owns them
 * @param isLast whether the connection ends with it
 */
public record Reply(List<ReferenceCounted> parts, boolean isLast) {
  /** Nothing is answered. */
  public static final Reply NONE = new Reply(List.of(), false);

  /** Nothing is answered, and the connection ends. */
  public static final Reply CLOSE = new Reply(List.of(), true);

  /** Gives the parts back, in place of writing them. */
  public void release() {
    parts.forEach(ReferenceCounted::release);
  }
}
