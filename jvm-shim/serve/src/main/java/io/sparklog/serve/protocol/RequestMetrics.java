package io.sparklog.serve.protocol;

import io.sparklog.serve.members.Server;
import io.sparklog.serve.metrics.Metrics.Sample;
import io.sparklog.serve.metrics.Metrics;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;

/** The clients of a server that are connected, and their requests with times, bytes and errors. */
public final class RequestMetrics {
  /** Clients name themselves, and in any number: beyond this, they are told together. */
  private static final int CLIENTS_MAX = 500;
  private static final int NAME_MAX = 100;
  private static final String OTHERS = "(others)";

  private final Metrics.Timer seconds;
  private final Metrics.Counter read;
  private final Metrics.Counter written;
  private final Metrics.Counter errors;
  private final Metrics.Counter begun;
  private final Set<ClientConnection> connected = ConcurrentHashMap.newKeySet();

  /** Declares the metrics. */
  public RequestMetrics(Metrics metrics) {
    seconds = metrics.times("partlog_server_request_seconds",
        "Time from a request that is read to its answer. A Fetch waits for records in it, and a Produce for its commit.", "api");
    read = metrics.counter("partlog_server_request_bytes_total", "Bytes of requests.", "api");
    written = metrics.counter("partlog_server_response_bytes_total", "Bytes of answers.", "api");
    errors = metrics.counter("partlog_server_errors_total", "Errors in answers, by Kafka's names. An answer may have several.", "api",
        "error");
    begun = metrics.counter("partlog_server_connections_total", "Connections that were accepted.", "listener");
    metrics.gauge("partlog_server_clients", "Connections of now, by the names that clients give themselves.",
        List.of("listener", "client", "software", "host"), this::samples);
  }

  /** The client of a connection. A client chooses the lengths of its names, so they are cut. */
  static final class ClientConnection {
    private final String listener;
    private final String host;
    private volatile String name = "";
    private volatile String software = "";

    private ClientConnection(String listener, String host) {
      this.listener = listener;
      this.host = host;
    }

    /** @param given by the client; null if it gives none */
    void name(String given) {
      name = given == null ? "" : cut(given);
    }

    void software(String given) {
      software = cut(given.strip());
    }

    private static String cut(String given) {
      return given.substring(0, Math.min(given.length(), NAME_MAX));
    }
  }

  /** A connection has begun. {@link #end} must follow. */
  ClientConnection begin(String listener, String host) {
    ClientConnection client = new ClientConnection(listener, host);
    connected.add(client);
    begun.add(1, listener);
    return client;
  }

  void end(ClientConnection client) {
    connected.remove(client);
  }

  /** A request has come. */
  void read(ApiKeys api, int bytes) {
    read.add(bytes, api.name);
  }

  /** A request has an answer, or its connection has ended. */
  void took(ApiKeys api, long nanos) {
    seconds.add(api.name, nanos);
  }

  void wrote(ApiKeys api, long bytes, AbstractResponse answer) {
    written.add(bytes, api.name);
    answer.errorCounts().forEach((error, count) -> {
      if (error != Errors.NONE) {
        errors.add(count, api.name, error.name());
      }
    });
  }

  /** The clients that are connected, in the order of their texts. */
  public List<Server.Client> clients() {
    Map<Server.Client, Integer> counts = new TreeMap<>(Comparator.comparing(Server.Client::listener)
        .thenComparing(Server.Client::name)
        .thenComparing(Server.Client::software)
        .thenComparing(Server.Client::host));
    connected.forEach(each -> counts.merge(new Server.Client(each.listener, each.name, each.software, each.host, 0), 1, Integer::sum));
    return counts.entrySet().stream().map(each -> each.getKey().with(each.getValue())).toList();
  }

  private List<Sample> samples() {
    Map<List<String>, Integer> others = new TreeMap<>(Comparator.comparing(labels -> labels.get(0)));
    List<Sample> samples = new ArrayList<>();
    for (Server.Client client : clients()) {
      if (samples.size() < CLIENTS_MAX) {
        samples.add(Sample.of(client.connections(), client.listener(), client.name(), client.software(), client.host()));
      } else {
        others.merge(List.of(client.listener(), OTHERS, "", ""), client.connections(), Integer::sum);
      }
    }
    others.forEach((labels, count) -> samples.add(new Sample(labels, count)));
    return samples;
  }
}
