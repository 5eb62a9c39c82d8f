package io.sparklog.kit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The proxy of {@code tests/stores/faults.py} in front of a server, which runs in another process. */
public final class FaultyServer {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private final URI control;

  public FaultyServer(String endpoint) {
    control = URI.create(endpoint + "/.faults");
  }

  /** Forgets all faults and all requests, and lets requests go wrong as {@code inject} of the proxy says. */
  public void begin(List<Map<String, Object>> faults) throws IOException, InterruptedException {
    ask(HttpRequest.newBuilder(control).POST(HttpRequest.BodyPublishers.ofString(JSON.writeValueAsString(faults))).build());
  }

  /** Lets no further request go wrong. */
  public void heal() throws IOException, InterruptedException {
    ask(HttpRequest.newBuilder(control).DELETE().build());
  }

  /** Lets the next {@code times} puts of this key be answered with a status, and not be carried out. */
  public static Map<String, Object> answer(int status, String key, int times) {
    return Map.of("kind", "answer", "status", status, "method", "PUT", "key", key, "times", times);
  }

  /** Cuts the connection of the next {@code times} puts of this key before the server has the request. */
  public static Map<String, Object> cut(String key, int times) {
    return Map.of("kind", "cut", "method", "PUT", "key", key, "times", times);
  }

  /** Lets the next {@code times} puts of this key be carried out, and cuts their connections without an answer. */
  public static Map<String, Object> lose(String key, int times) {
    return Map.of("kind", "lose", "method", "PUT", "key", key, "times", times);
  }

  /** Cuts the connection of the next put of this key, which the server gets some seconds later. */
  public static Map<String, Object> late(String key, double seconds) {
    return Map.of("kind", "late", "method", "PUT", "key", key, "seconds", seconds);
  }

  /**
   * A request.
   *
   * @param told the status that the client was told; 0 if none
   * @param done the status that the server answered; 0 while it has answered none
   */
  public record Request(String method, String key, String query, int told, int done) {
    private boolean isListing() {
      return method.equals("GET") && query.contains("list-type");
    }
  }

  /** The requests since {@link #begin}. */
  public List<Request> requests() throws IOException, InterruptedException {
    List<Request> requests = new ArrayList<>();
    for (JsonNode each : ask(HttpRequest.newBuilder(control).GET().build())) {
      requests.add(new Request(each.get("method").asText(), each.get("key").asText(), each.get("query").asText(), each.get("told").asInt(),
          each.get("done").asInt()));
    }
    return requests;
  }

  /** How many requests of each kind there were; a listing is a LIST. */
  public Map<String, Integer> counted() throws IOException, InterruptedException {
    TreeMap<String, Integer> counted = new TreeMap<>();
    for (Request request : requests()) {
      counted.merge(request.isListing() ? "LIST" : request.method(), 1, Integer::sum);
    }
    return counted;
  }

  private JsonNode ask(HttpRequest request) throws IOException, InterruptedException {
    return JSON.readTree(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
  }
}
