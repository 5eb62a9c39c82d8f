package io.sparklog.serve.members;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.CheckedLine;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.log.Version;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;

/**
 * A server of a root. FORMAT.md annex G.
 *
 * @param format of its heartbeats, from 1: servers of one format share groups out by the same rule
 * @param node its number
 * @param sessionMs it is alive for so long after a heartbeat
 * @param endpoints by the names of listeners
 */
public record Server(int format, int node, long sessionMs, Map<String, Endpoint> endpoints) {
  /** The format of this program. */
  static final int FORMAT = 1;

  /** The largest heartbeat. */
  static final int BYTES_MAX = 64 << 10;

  private static final int LISTENERS_MAX = 64;
  private static final int TEXT_MAX = 1024;
  static final int SESSION_MS_MIN = 100;
  static final int SESSION_MS_MAX = 600_000;

  /** The most clients that a heartbeat names. */
  private static final int CLIENTS_MAX = 50;

  /**
   * A client that is connected. A client chooses its name and its software.
   *
   * @param host its address
   */
  public record Client(String listener, String name, String software, String host, int connections) {
    public Client with(int count) {
      return new Client(listener, name, software, host, count);
    }
  }

  public Server {
    endpoints = Map.copyOf(endpoints);
  }

  /** The server with these listeners. Its number is a hash of an endpoint, so that the number is the same after a restart. */
  static Server of(Map<String, Endpoint> endpoints, long sessionMs) {
    // With the kind, which names the machine: 127.0.0.1:9092 is an address of each machine.
    String first = endpoints.values().stream().map(each -> each.address() + " " + each.kind()).sorted().findFirst().orElseThrow();
    long bits = UUID.nameUUIDFromBytes(first.getBytes(StandardCharsets.UTF_8)).getMostSignificantBits();
    return new Server(FORMAT, (int) (bits >>> 33), sessionMs, endpoints);
  }

  /** The fields of its heartbeat that other servers read. */
  ObjectNode json() {
    ObjectNode json = Json.MAPPER.createObjectNode().put("format", format).put("node", node).put("session", sessionMs);
    ObjectNode listeners = json.putObject("listeners");
    new TreeMap<>(endpoints).forEach((name, endpoint) -> listeners.putObject(name)
        .put("host", endpoint.address().host())
        .put("port", endpoint.address().port())
        .put("kind", endpoint.kind()));
    return json;
  }

  /**
   * A heartbeat of this server, which is never too large to be read. Other servers read the fields of the server alone. The rest is for
   * people who look at the root.
   *
   * @param since when the server began, in ms since 1970
   * @param clients all that are connected; the file has room for some
   */
  byte[] heartbeat(long since, List<Client> clients) {
    ObjectNode json = json().put("since", since).put("program", Version.WRITER);
    ArrayNode told = json.putArray("clients");
    int others = clients.stream().mapToInt(Client::connections).sum();
    long bytes = CheckedLine.of(json.put("others", others)).length;
    List<Client> first = clients.stream().sorted(Comparator.comparing(Client::connections).reversed()).limit(CLIENTS_MAX).toList();
    for (Client client : first) {
      ObjectNode row = Json.MAPPER.createObjectNode()
          .put("listener", whole(client.listener))
          .put("name", whole(client.name))
          .put("software", whole(client.software))
          .put("host", whole(client.host))
          .put("connections", client.connections);
      long more = row.toString().getBytes(StandardCharsets.UTF_8).length + 1;
      if (bytes + more <= BYTES_MAX) {
        told.add(row);
        bytes += more;
        others -= client.connections;
      }
    }
    return CheckedLine.of(json.put("others", others));
  }

  /** The text without half of a surrogate pair, which a cut can leave, and which JSON cannot store. */
  private static String whole(String text) {
    return new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
  }

  /** The server of a heartbeat of any format, whose bytes may be hostile. */
  static Server parse(byte[] bytes) throws Damaged {
    JsonNode json = CheckedLine.parse(bytes).json();
    int format = (int) Json.number(Json.field(json, "format"), "format", 1, Integer.MAX_VALUE);
    int node = (int) Json.number(Json.field(json, "node"), "node", 0, Integer.MAX_VALUE);
    long session = Json.number(Json.field(json, "session"), "session", SESSION_MS_MIN, SESSION_MS_MAX);
    JsonNode listeners = Json.field(json, "listeners");
    Damaged.unless(listeners.isObject() && listeners.size() > 0 && listeners.size() <= LISTENERS_MAX,
        () -> "field listeners is not an object of 1 to " + LISTENERS_MAX + " listeners");
    Map<String, Endpoint> endpoints = new TreeMap<>();
    for (Map.Entry<String, JsonNode> listener : listeners.properties()) {
      JsonNode value = listener.getValue();
      String host = text(value, "host");
      Damaged.unless(!host.isBlank(), () -> "field host is empty");
      int port = (int) Json.number(Json.field(value, "port"), "port", 1, 65_535);
      endpoints.put(listener.getKey(), new Endpoint(new Address(host, port), text(value, "kind")));
    }
    return new Server(format, node, session, endpoints);
  }

  private static String text(JsonNode object, String name) throws Damaged {
    String text = Json.text(object, name);
    Damaged.unless(text.length() <= TEXT_MAX, () -> "field " + name + " has " + text.length() + " characters");
    return text;
  }
}
