package io.sparklog.serve.net;

import io.netty.channel.Channel;
import java.util.EnumSet;

/** Whether bytes of a connection are read. Several parts stop it, each for its own reason. Belongs to the thread of the connection. */
final class Reading {
  /** Why a connection is not read. */
  enum ReadStop {
    /** The next frame waits for the budget. */
    MEMORY,
    /** The last request must be answered before the next. */
    TURN,
    /** Too much has no answer, or was not taken by the client. */
    UNANSWERED,
    /** The connection ends after its answers. */
    DRAIN
  }

  private final Channel channel;
  private final EnumSet<ReadStop> stops = EnumSet.noneOf(ReadStop.class);
  private Runnable next = () -> {};

  Reading(Channel channel) {
    this.channel = channel;
  }

  /** @param task takes the bytes that were read before the stop. It is called when no stop is left */
  void whenGoesOn(Runnable task) {
    next = task;
  }

  boolean isStopped() {
    return !stops.isEmpty();
  }

  boolean isStopped(ReadStop reason) {
    return stops.contains(reason);
  }

  void stop(ReadStop reason) {
    stops.add(reason);
    pause();
  }

  /** No frame is taken. Bytes are read until there are some, or the connection ends: so its end is seen. */
  void hold(ReadStop reason) {
    stops.add(reason);
  }

  void pause() {
    channel.config().setAutoRead(false);
  }

  void goOn(ReadStop reason) {
    if (stops.remove(reason) && stops.isEmpty()) {
      channel.config().setAutoRead(true);
      channel.eventLoop().execute(next); // Not here: the caller may be in the midst of these bytes.
    }
  }
}
