package io.sparklog.serve.members;

import io.sparklog.segment.Names.ServerHeartbeat;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/**
 * Which servers are alive, by their heartbeats. A server is alive as long as its heartbeats change, by the clock of the process that
 * refreshes: no time that another process wrote is compared with it.
 *
 * <p>It has no I/O and no clock. Times are in ns of a clock that only rises.
 */
final class Living {
  /** How often files of a server are read that have no content of a server: the server may be about to write the first one. */
  private static final int READS_MAX = 3;

  private final long ownSessionNanos;
  private final Map<String, Sight> sights = new HashMap<>();
  private long refreshedAt;
  private boolean hasRefreshed;

  /** A server, as the refreshes have shown it. */
  private static final class Sight {
    private long number;

    /** Since when its heartbeat is as it is. */
    private long since;

    /** Whether it may be alive: its first heartbeat was young, or another heartbeat followed. */
    private boolean isYoung;

    /** Whether another heartbeat followed the first that was seen. */
    private boolean hasMoved;

    private int reads;

    /** Null until its file is read. */
    private Server server;
  }

  Living(long ownSessionMs) {
    this.ownSessionNanos = TimeUnit.MILLISECONDS.toNanos(ownSessionMs);
  }

  /**
   * Takes the heartbeats that a refresh has listed.
   *
   * @param heartbeats the newest of each server, without this one
   * @param isYoung whether the heartbeat of a new server is younger than a session, by the clock of the place that keeps it
   * @param asked when the refresh began, and {@code now} when the refresh ended: the heartbeats are of some moment between
   * @return the heartbeats whose files should be read, for {@link #read}
   */
  List<ServerHeartbeat> seen(Collection<ServerHeartbeat> heartbeats, Predicate<ServerHeartbeat> isYoung, long asked, long now) {
    if (hasRefreshed && asked - refreshedAt > ownSessionNanos / 2) {
      // This process slept. Others may have sent heartbeats meanwhile that it did not see.
      sights.values().forEach(sight -> sight.since = now);
    }
    hasRefreshed = true;
    refreshedAt = asked;
    Map<String, Sight> before = new HashMap<>(sights);
    sights.clear();
    List<ServerHeartbeat> unread = new ArrayList<>();
    for (ServerHeartbeat heartbeat : heartbeats) {
      Sight sight = before.get(heartbeat.identity());
      if (sight == null) {
        sight = new Sight();
        sight.number = heartbeat.number();
        sight.since = now;
        sight.isYoung = isYoung.test(heartbeat);
      } else if (sight.number != heartbeat.number()) {
        sight.number = heartbeat.number();
        sight.since = now;
        sight.isYoung = true;
        sight.hasMoved = true;
      }
      sights.put(heartbeat.identity(), sight);
      if (sight.server == null && sight.isYoung && sight.reads < READS_MAX) {
        sight.reads++;
        unread.add(heartbeat);
      }
    }
    return unread;
  }

  /** Takes the file of a server. */
  void read(String identity, Server server) {
    sights.get(identity).server = server;
  }

  /** Those that are alive, as of the last refresh. */
  List<Server> alive() {
    return sights.values().stream().filter(this::isAlive).map(sight -> sight.server).toList();
  }

  /** Whether another server that is surely alive has this number. */
  boolean isTaken(int node) {
    return sights.values().stream().anyMatch(sight -> isAlive(sight) && sight.hasMoved && sight.server.node() == node);
  }

  /** The identities whose heartbeat has not changed for so long. */
  List<String> silentFor(long ms) {
    long nanos = TimeUnit.MILLISECONDS.toNanos(ms);
    return sights.entrySet().stream().filter(each -> refreshedAt - each.getValue().since > nanos).map(Map.Entry::getKey).toList();
  }

  private boolean isAlive(Sight sight) {
    return sight.server != null && sight.isYoung && refreshedAt - sight.since < TimeUnit.MILLISECONDS.toNanos(sight.server.sessionMs());
  }
}
