package io.sparklog.door.cluster;

import java.net.InetAddress;
import java.net.UnknownHostException;

/**
 * A listener of a server, as clients see it.
 *
 * @param kind listeners of one name with this kind serve the same clients, so a client of one may be sent to another
 */
public record Endpoint(Address address, String kind) {
  /**
   * The endpoint at an address. If the address means another machine on each machine, as 127.0.0.1 does, only servers of this machine have
   * its kind.
   *
   * @param kind of the listener at any address
   */
  public static Endpoint at(Address address, String kind) {
    return new Endpoint(address, isOfThisMachine(address) ? kind + " on " + machine() : kind);
  }

  private static boolean isOfThisMachine(Address address) {
    try {
      InetAddress found = InetAddress.getByName(address.host());
      return found.isLoopbackAddress() || found.isAnyLocalAddress();
    } catch (UnknownHostException e) {
      return false; // Clients may know the name.
    }
  }

  private static String machine() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException e) {
      return "this machine";
    }
  }
}
