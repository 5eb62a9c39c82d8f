package io.sparklog.door.cluster;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.UUID;

/** The servers of a root, as this one knows them. */
public final class Servers {
  private final Server self;
  private final String clusterId;

  /**
   * A server.
   *
   * @param node its number: a hash of its address, so that it is the same after a restart
   * @param addresses by the names of listeners
   */
  public record Server(int node, Map<String, Address> addresses) {
    public Server {
      addresses = Map.copyOf(addresses);
    }
  }

  /** @param addresses of this server, by the names of listeners */
  public Servers(String clusterId, Map<String, Address> addresses) {
    this.clusterId = clusterId;
    String first = addresses.values().stream().map(Address::toString).sorted().findFirst().orElseThrow();
    long bits = UUID.nameUUIDFromBytes(first.getBytes(StandardCharsets.UTF_8)).getMostSignificantBits();
    this.self = new Server((int) (bits >>> 33), addresses);
  }

  public String clusterId() {
    return clusterId;
  }

  /** This server. */
  public Server self() {
    return self;
  }

  /** All that are alive, this one among them. */
  public List<Server> alive() {
    return List.of(self);
  }

  /** The addresses of servers that are alive, by node, for the clients of a listener. */
  public SortedMap<Integer, Address> at(String listener) {
    TreeMap<Integer, Address> addresses = new TreeMap<>();
    for (Server server : alive()) {
      Address address = server.addresses().get(listener);
      if (address != null) {
        addresses.put(server.node(), address);
      }
    }
    return addresses;
  }

  /** The server that clients should ask first for a topic: any server may be asked for any topic, but one is faster than several. */
  public Server preferred(String topicId) {
    return self;
  }
}
