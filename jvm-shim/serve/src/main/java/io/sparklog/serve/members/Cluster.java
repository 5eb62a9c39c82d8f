package io.sparklog.serve.members;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The servers of a root at a moment, as a server knows them.
 *
 * @param isAnnounced whether the others know this server
 * @param others without servers that have the number of this one, and each number once
 */
record Cluster(Server self, boolean isAnnounced, List<Server> others) {
  static Cluster of(Server self, boolean isAnnounced, Collection<Server> alive) {
    Map<Integer, Server> byNode = new TreeMap<>();
    List<Server> sorted = new ArrayList<>(alive);
    // A server that started again may be there twice: its newer format counts.
    sorted.sort(Comparator.comparing(Server::format).reversed().thenComparing(Cluster::addresses));
    sorted.forEach(each -> byNode.putIfAbsent(each.node(), each));
    byNode.remove(self.node());
    return new Cluster(self, isAnnounced, List.copyOf(byNode.values()));
  }

  private static String addresses(Server server) {
    return server.endpoints().values().stream().map(endpoint -> endpoint.address().toString()).sorted().toList().toString();
  }

  /** The others that serve the same clients at a listener of this server. */
  private List<Server> peers(String listener) {
    String kind = self.endpoints().get(listener).kind();
    return others.stream().filter(each -> {
      Endpoint endpoint = each.endpoints().get(listener);
      return endpoint != null && endpoint.kind().equals(kind);
    }).toList();
  }

  /** The addresses of the servers for the clients of a listener, by node. */
  SortedMap<Integer, Address> at(String listener) {
    TreeMap<Integer, Address> addresses = new TreeMap<>();
    peers(listener).forEach(each -> addresses.put(each.node(), each.endpoints().get(listener).address()));
    addresses.put(self.node(), self.endpoints().get(listener).address());
    return addresses;
  }

  /**
   * The server that the clients of a listener should ask for {@code key}. Servers that know the same servers name the same one, and if a
   * server comes or goes, no key moves between two others.
   */
  Server preferred(String listener, String key) {
    return first(reachable(listener), key);
  }

  /**
   * The server that coordinates the groups of a partition, for the clients of a listener. Servers of the newest format share all groups
   * among themselves. A program of an earlier format need not know by which rule.
   */
  Server coordinator(String listener, int partition) {
    List<Server> servers = reachable(listener);
    int newest = servers.stream().mapToInt(Server::format).max().orElseThrow();
    return first(servers.stream().filter(each -> each.format() == newest).toList(), "groups-" + partition);
  }

  /** The peers, and this server unless they do not know it. */
  private List<Server> reachable(String listener) {
    List<Server> servers = new ArrayList<>(peers(listener));
    if (isAnnounced || servers.isEmpty()) {
      servers.add(self);
    }
    return servers;
  }

  private static Server first(List<Server> servers, String key) {
    return servers.stream().reduce((one, other) -> isBefore(key, one, other) ? one : other).orElseThrow();
  }

  private static boolean isBefore(String key, Server one, Server other) {
    int order = Long.compareUnsigned(weight(key, one.node()), weight(key, other.node()));
    return order > 0 || order == 0 && one.node() < other.node();
  }

  /** FORMAT.md annex G. */
  static long weight(String key, int node) {
    try {
      return ByteBuffer.wrap(MessageDigest.getInstance("MD5").digest((key + " " + node).getBytes(StandardCharsets.UTF_8))).getLong();
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
