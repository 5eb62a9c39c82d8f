package io.sparklog.serve.members;

import io.sparklog.segment.Names.ServerHeartbeat;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.random.RandomGenerator;

/**
 * The servers of a root, as this one knows them. This server says at intervals that it is alive, and looks for others. If it cannot write
 * to the root, it knows the others, and the others do not know it. A wrong guess costs time alone: each server serves each topic, and
 * commits decide.
 */
public final class Servers implements AutoCloseable {
  private static final long INTERVAL_MS = 2000;

  /** In a store, each heartbeat takes three requests: a put, a listing, and the deletion of the last heartbeat. */
  private static final long REMOTE_INTERVAL_MS = 10_000;

  /** A server that is silent for so long is not expected back. */
  private static final long SWEPT_MS = 600_000;

  /** A server that starts deletes older files. If a clock is wrong, the other server puts its next heartbeat all the same. */
  private static final long OLD_MS = TimeUnit.DAYS.toMillis(1);

  private static final long LEAVE_MS = 2000;

  /** A session has at least this number of refreshes, so that a late refresh does not end the session. */
  private static final long REFRESHES_MIN = 3;

  private final ServersFolder folder;
  private final String location;
  private final Server self;
  private final String identity;
  private final long since = System.currentTimeMillis();
  private final Supplier<List<Server.Client>> clients;
  private final String clusterId;
  private final Living living;
  private final ScheduledExecutorService thread = Executors.newSingleThreadScheduledExecutor(task -> {
    Thread made = new Thread(task, "servers");
    made.setDaemon(true);
    return made;
  });
  private volatile Cluster cluster;
  private volatile Runnable refreshed = () -> {};

  /** When the last refresh that succeeded began. */
  private volatile long refreshedAt;

  // The thread alone uses these.
  private long number;
  private boolean isAnnounced;
  private long announcedAt;
  private boolean isUnwritable;
  private boolean isTaken;
  private boolean isSilentOfClients;

  /**
   * Says that this server is alive, and looks for others, before it returns.
   *
   * @param endpoints of this server, by the names of listeners
   * @param clients gives the connected clients, for each heartbeat
   * @param intervalMs between two heartbeats; −1 for the default of the place
   * @param sessionMs others take this server for dead so long after a heartbeat; −1 for 4.5 intervals
   * @throws PartlogException OPTION_VALUE if a session has no time for three intervals, or is too long
   */
  public Servers(LogStore store, Map<String, Endpoint> endpoints, Supplier<List<Server.Client>> clients, long intervalMs, long sessionMs,
      RandomGenerator random) {
    this.clients = clients;
    long usual = store.isRemote() ? REMOTE_INTERVAL_MS : INTERVAL_MS;
    long interval = intervalMs > 0 ? intervalMs : sessionMs > 0 ? Math.min(usual, sessionMs / REFRESHES_MIN) : usual;
    this.self = Server.of(endpoints, sessionMs > 0 ? sessionMs : interval * 9 / 2);
    if (self.sessionMs() < interval * REFRESHES_MIN || self.sessionMs() < Server.SESSION_MS_MIN
        || self.sessionMs() > Server.SESSION_MS_MAX) {
      throw PartlogException.of("OPTION_VALUE", "option", "broker.session.timeout.ms", "value", self.sessionMs(), "reason",
          "It must be at least " + REFRESHES_MIN + " times broker.heartbeat.interval.ms, which is " + interval + ", and from "
              + Server.SESSION_MS_MIN + " to " + Server.SESSION_MS_MAX);
    }
    this.identity = Names.identity(random);
    this.folder = new ServersFolder(store, identity);
    this.location = store.location(Names.SERVERS);
    this.living = new Living(self.sessionMs());
    this.cluster = Cluster.of(self, false, List.of());
    this.clusterId = folder.cluster();
    this.refreshedAt = System.nanoTime() - TimeUnit.MILLISECONDS.toNanos(self.sessionMs());
    refresh();
    thread.scheduleWithFixedDelay(this::refresh, interval, interval, TimeUnit.MILLISECONDS);
  }

  public String clusterId() {
    return clusterId;
  }

  /** This server. */
  public Server self() {
    return self;
  }

  /** The addresses of servers that are alive, by node, for the clients of a listener. */
  public SortedMap<Integer, Address> at(String listener) {
    return cluster.at(listener);
  }

  /** The server that the clients of a listener should ask first for a topic: commits of one server are faster than commits of several. */
  public Server preferred(String listener, String topicId) {
    return cluster.preferred(listener, topicId);
  }

  /** The server that coordinates the groups of a partition, for the clients of a listener. */
  public Server coordinator(String listener, int partition) {
    return cluster.coordinator(listener, partition);
  }

  /** Whether this server coordinates the groups of a partition, for the clients of a listener. */
  public boolean coordinates(String listener, int partition) {
    return isCurrent() && coordinator(listener, partition).node() == self.node();
  }

  /** Whether this server coordinates the groups of a partition, for the clients of any listener. */
  public boolean coordinates(int partition) {
    return self.endpoints().keySet().stream().anyMatch(each -> coordinates(each, partition));
  }

  /** Whether the last refresh is young. If not, it slept, and others may have taken its groups over. */
  public boolean isCurrent() {
    return System.nanoTime() - refreshedAt < TimeUnit.MILLISECONDS.toNanos(self.sessionMs() / 5 * 4);
  }

  /** @param action called after each refresh */
  public void afterEachRefresh(Runnable action) {
    refreshed = action;
  }

  private void refresh() {
    try {
      announce();
      long asked = System.nanoTime();
      Map<String, ServerHeartbeat> heartbeats = folder.heartbeats();
      heartbeats.remove(identity);
      living.seen(heartbeats.values(), this::isYoung, asked, System.nanoTime()).forEach(this::read);
      cluster = Cluster.of(self, isAnnounced, living.alive());
      refreshedAt = asked;
      warnOfTwin();
      living.silentFor(SWEPT_MS).forEach(each -> folder.drop(heartbeats.get(each).file()));
      refreshed.run();
    } catch (Throwable e) { // The refreshes must go on: without them this server coordinates no group.
      Warnings.warn(Servers.class, "the servers in {} are not known: {}", location, e.toString());
    }
  }

  private void announce() {
    long now = System.nanoTime();
    try {
      if (folder.announce(++number, heartbeat())) {
        isAnnounced = true;
        announcedAt = now;
        isUnwritable = false;
      }
    } catch (IOException e) {
      if (!isUnwritable) {
        isUnwritable = true;
        Warnings.warn(Servers.class, "other servers do not know {}, as {} cannot be written: {}", self.endpoints(), location, e.toString());
      }
    }
    isAnnounced &= now - announcedAt < TimeUnit.MILLISECONDS.toNanos(self.sessionMs());
  }

  /** Clients are for people alone, so a fault in telling them costs no heartbeat. */
  private byte[] heartbeat() {
    try {
      return self.heartbeat(since, clients.get());
    } catch (RuntimeException e) {
      if (!isSilentOfClients) {
        isSilentOfClients = true;
        Warnings.warn(Servers.class, "the heartbeats in {} name no client, as the server cannot list its clients: {}", location,
            e.toString());
      }
      return self.heartbeat(since, List.of());
    }
  }

  /** Both times are of the clock of the place, if this server can write to it. */
  private boolean isYoung(ServerHeartbeat heartbeat) {
    long own = isAnnounced ? folder.writtenMs(new ServerHeartbeat(identity, number)) : System.currentTimeMillis();
    long age = own - folder.writtenMs(heartbeat);
    if (age > OLD_MS) {
      folder.drop(heartbeat.file());
    }
    return Math.abs(age) < self.sessionMs();
  }

  private void read(ServerHeartbeat heartbeat) {
    folder.read(heartbeat).ifPresent(server -> living.read(heartbeat.identity(), server));
  }

  /** Two servers on different machines may have been given one address. Clients reach one server alone. */
  private void warnOfTwin() {
    boolean was = isTaken;
    isTaken = living.isTaken(self.node());
    if (isTaken && !was) {
      Warnings.warn(Servers.class, "another server in {} has an address of this one: {}. Give each server its own advertised.listeners",
          location, self.endpoints());
    }
  }

  /** Says that this server leaves, so that the others need not wait for the end of its session. */
  @Override
  public void close() {
    thread.shutdown();
    try {
      if (!thread.awaitTermination(LEAVE_MS, TimeUnit.MILLISECONDS)) {
        thread.shutdownNow();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    folder.drop(new ServerHeartbeat(identity, number).file());
    folder.drop(new ServerHeartbeat(identity, number - 1).file());
  }
}
