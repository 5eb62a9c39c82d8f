package io.sparklog.serve.members;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.regex.Pattern;

/**
 * A listener of a server, as clients see it.
 *
 * @param kind listeners of one name with this kind serve the same clients, so a client of one may be sent to another
 */
public record Endpoint(Address address, String kind) {
  /** Hosts that mean the same to each machine that looks them up. A name of a machine is a loopback address on that machine alone. */
  private static final Pattern NO_NAME = Pattern.compile("localhost|[0-9.]+|.*:.*");

  /**
   * The endpoint at an address. If the address means another machine on each machine, as 127.0.0.1 does, only servers of this machine have
   * its kind. The name of this machine may be a loopback address here. It then counts by the address that the listener takes.
   *
   * @param address that clients are told
   * @param taken the address that the listener takes
   * @param kind of the listener at any address
   */
  public static Endpoint at(Address address, Address taken, String kind) {
    boolean isOfThisMachine = isLoopback(address) && (NO_NAME.matcher(address.host()).matches() || isLoopback(taken));
    return new Endpoint(address, isOfThisMachine ? kind + " on " + machine() : kind);
  }

  private static boolean isLoopback(Address address) {
    try {
      return InetAddress.getByName(address.host()).isLoopbackAddress();
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
