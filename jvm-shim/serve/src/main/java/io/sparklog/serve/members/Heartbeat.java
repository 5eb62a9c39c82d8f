package io.sparklog.serve.members;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.CheckedLine;
import io.sparklog.json.Json;
import io.sparklog.log.Version;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.List;

/**
 * A heartbeat of this server: FORMAT.md annex G. Other servers read the server alone. The rest is for people who look at the root.
 *
 * @param since when the server began, in ms since 1970
 * @param clients all that are connected; the file has room for some
 */
public record Heartbeat(Server server, long since, List<Client> clients) {
  private static final int CLIENTS_MAX = 50;

  /**
   * A client that is connected. A client chooses its name and its software.
   *
   * @param host its address
   */
  public record Client(String listener, String name, String software, String host, int connections) {}

  /** The content of the file, which is never too large to be read. */
  byte[] bytes() {
    ObjectNode json = server.json().put("since", since).put("program", Version.WRITER);
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
      if (bytes + more <= Server.BYTES_MAX) {
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
}
