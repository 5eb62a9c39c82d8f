package io.sparklog.serve.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.serve.members.Server;
import io.sparklog.serve.metrics.Metrics;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Clients choose their names, and may be many. */
final class RequestMetricsTest {
  @Test
  void metricsNameSomeClientsAndCountTheOthersByListener() {
    Metrics metrics = new Metrics();
    RequestMetrics traffic = new RequestMetrics(metrics);
    for (int i = 0; i < 600; i++) {
      traffic.begin(i < 590 ? "A" : "B", "10.0.0.1").name("client-" + i / 2);
    }
    RequestMetrics.ClientConnection many = traffic.begin("A", "10.0.0.2");
    assertEquals(List.of(), lines(metrics, "(others)"));
    for (int i = 0; i < 600; i++) {
      traffic.begin("B", "10.0.0.3").name("late-" + i);
    }
    assertEquals(501, lines(metrics, "partlog_server_clients{").size());
    assertEquals(List.of("partlog_server_clients{listener=\"B\",client=\"(others)\",software=\"\",host=\"\"} 401.0"),
        lines(metrics, "(others)"));
    assertEquals(1201, traffic.clients().stream().mapToInt(Server.Client::connections).sum());
    assertTrue(traffic.clients().contains(new Server.Client("A", "client-7", "", "10.0.0.1", 2)));
    traffic.end(many);
    assertEquals(1200, traffic.clients().stream().mapToInt(Server.Client::connections).sum());
  }

  @Test
  void clientsWhoseTextsAreEqualOnlyWhenJoinedAreTwo() {
    RequestMetrics traffic = new RequestMetrics(new Metrics());
    for (List<String> each : List.of(List.of("a\0b", "c"), List.of("a", "b\0c"))) {
      RequestMetrics.ClientConnection client = traffic.begin("A", "10.0.0.1");
      client.name(each.get(0));
      client.software(each.get(1));
    }
    assertEquals(List.of(new Server.Client("A", "a", "b\0c", "10.0.0.1", 1), new Server.Client("A", "a\0b", "c", "10.0.0.1", 1)),
        traffic.clients());
  }

  private static List<String> lines(Metrics metrics, String with) {
    return metrics.text().lines().filter(line -> line.contains(with)).toList();
  }
}
