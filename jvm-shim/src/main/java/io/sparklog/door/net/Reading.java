package io.sparklog.door.net;

import io.netty.channel.Channel;
import java.util.EnumSet;

/** Whether bytes of a connection are read. Several parts stop it, each for its own reason. Belongs to the thread of the connection. */
final class Reading {
  /** Why a connection is not read. */
  enum Stop {
    /** The next frame waits for the budget. */
    MEMORY,
    /** Too much has no answer, or was not taken by the client. */
    UNANSWERED,
    /** The connection ends after its answers. */
    DRAIN
  }

  private final Channel channel;
  private final EnumSet<Stop> stops = EnumSet.noneOf(Stop.class);

  Reading(Channel channel) {
    this.channel = channel;
  }

  void stop(Stop reason) {
    stops.add(reason);
    channel.config().setAutoRead(false);
  }

  void goOn(Stop reason) {
    if (stops.remove(reason) && stops.isEmpty()) {
      channel.config().setAutoRead(true);
    }
  }
}
