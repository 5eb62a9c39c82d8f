package io.sparklog.serve.metrics;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.regex.Pattern;

/** The text of metrics over HTTP, at {@code /metrics}. */
public final class MetricsPage implements AutoCloseable {
  private static final int THREADS = 2;
  private static final String TYPE = "text/plain; version=0.0.4; charset=utf-8";

  /** An address, with a port or without. A site of an attacker can give any name to this machine, but not an address. */
  private static final Pattern ADDRESS = Pattern.compile("([0-9]{1,3}(\\.[0-9]{1,3}){3}|\\[[0-9a-f:.]+])(:[0-9]+)?");

  static {
    // In seconds. Without them, a client that sends or takes nothing would keep a thread for ever.
    System.setProperty("sun.net.httpserver.maxReqTime", "10");
    System.setProperty("sun.net.httpserver.maxRspTime", "30");
  }

  private final Metrics metrics;
  private final String host;
  private final HttpServer server;
  private final ExecutorService threads = Executors.newFixedThreadPool(THREADS, task -> {
    Thread thread = new Thread(task, "server-metrics");
    thread.setDaemon(true);
    return thread;
  });

  /**
   * Serves the metrics from now on.
   *
   * @param address to listen at; the page answers for its name too
   * @throws IOException such as "Address already in use"
   */
  public MetricsPage(Metrics metrics, InetSocketAddress address) throws IOException {
    this.metrics = metrics;
    this.host = address.getHostString().toLowerCase(Locale.ROOT);
    this.server = HttpServer.create(address, 0);
    server.setExecutor(threads);
    server.createContext("/", this::answer);
    server.start();
  }

  /** The port, also if 0 was asked for. */
  public int port() {
    return server.getAddress().getPort();
  }

  private void answer(HttpExchange exchange) throws IOException {
    try (exchange) {
      String asked = exchange.getRequestHeaders().getFirst("Host");
      if (!isKnown(asked == null ? "" : asked.toLowerCase(Locale.ROOT))) {
        say(exchange, 421, "This page does not answer for the host of the request: use the address of the server.\n");
      } else if (!exchange.getRequestMethod().equals("GET")) {
        say(exchange, 405, "This page only reads: send GET.\n");
      } else if (!exchange.getRequestURI().getPath().equals("/metrics")) {
        say(exchange, 404, "The metrics are at /metrics.\n");
      } else {
        say(exchange, 200, metrics.text());
      }
    } catch (RuntimeException | Error e) {
      Warnings.warn(MetricsPage.class, "the metrics cannot be told now", e);
      throw e;
    }
  }

  private boolean isKnown(String asked) {
    String name = asked.replaceFirst(":[0-9]+$", "");
    return name.equals("localhost") || name.equals(host) || ADDRESS.matcher(asked).matches();
  }

  private static void say(HttpExchange exchange, int status, String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    exchange.getResponseHeaders().set("Content-Type", TYPE);
    exchange.getResponseHeaders().set("Cache-Control", "no-store");
    exchange.sendResponseHeaders(status, bytes.length);
    exchange.getResponseBody().write(bytes);
  }

  @Override
  public void close() {
    server.stop(0);
    threads.shutdownNow();
  }
}
