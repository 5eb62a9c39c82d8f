package io.sparklog.serve;

import io.netty.handler.ssl.SslContext;
import io.sparklog.commits.TopicWriters;
import io.sparklog.feed.CommitWaits;
import io.sparklog.log.Root;
import io.sparklog.serve.coordinator.GroupHandlers;
import io.sparklog.serve.coordinator.GroupMetrics;
import io.sparklog.serve.coordinator.GroupRequests;
import io.sparklog.serve.coordinator.Groups;
import io.sparklog.serve.members.Address;
import io.sparklog.serve.members.Endpoint;
import io.sparklog.serve.members.Servers;
import io.sparklog.serve.metrics.Metrics;
import io.sparklog.serve.metrics.MetricsPage;
import io.sparklog.serve.net.SocketServer;
import io.sparklog.serve.protocol.Handlers;
import io.sparklog.serve.protocol.KafkaSession;
import io.sparklog.serve.protocol.RequestMetrics;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.serve.records.FetchHandler;
import io.sparklog.serve.records.PartitionOffsetHandlers;
import io.sparklog.serve.records.ProduceHandler;
import io.sparklog.serve.records.fetch.Fetches;
import io.sparklog.serve.records.fetch.OffsetLookup;
import io.sparklog.serve.records.fetch.PartitionReads;
import io.sparklog.serve.security.Credentials;
import io.sparklog.serve.security.Listener;
import io.sparklog.serve.security.Rights;
import io.sparklog.serve.topics.ServedTopics;
import io.sparklog.serve.topics.TopicHandlers;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;
import java.util.stream.Collectors;
import org.apache.kafka.common.protocol.ApiKeys;

/** A server of a root: the parts of the packages below, and how they know each other. */
final class RootServer implements AutoCloseable {
  private static final long LOOK_MS = 1000;
  private static final long DRAIN_MS = 15_000;

  /**
   * As much as this share of the heap may hold copies of batches for answers, and as much the reads of partitions. All limits together fit
   * in the heap of 512 MiB that {@code sparklog serve} has: 128 MiB of requests and 16 more while they grow, 9 of clients without a name,
   * 64 of batches that wait for a commit, 64 of batches that are checked, 32 of copies, 32 of reads, 128 of groups.
   */
  private static final int READ_SHARE = 16;

  private final Root root;
  private final SocketServer server;
  private final Workers work;
  private final Workers checks;
  private final CommitWaits commits;
  private final PartitionReads reads;
  private final Map<String, Address> addresses = new LinkedHashMap<>();
  private final Servers servers;
  private final ServedTopics topics;
  private final RandomGenerator random = new SecureRandom();
  private final TopicWriters writers;
  private final Groups groups;
  private final GroupRequests groupRequests;
  private final FetchHandler fetch;
  private final ProduceHandler produce;
  private final Metrics metrics = new Metrics();
  private final Optional<MetricsPage> page;
  private final Optional<Address> pageAddress;
  private final CountDownLatch ended = new CountDownLatch(1);

  /** @throws PartlogException of a root that cannot be served; SERVE_ADDRESS */
  RootServer(ServeConfig config) {
    root = Root.of(config.root());
    if (config.readOnly()) {
      root.requireReadable();
    } else {
      root.requireWritable();
      root.prepare();
    }
    List<ServeConfig.Entrance> entrances = config.entrances();
    boolean asksForNames = entrances.stream().anyMatch(entrance -> entrance.listener().asksForName());
    Credentials credentials = asksForNames ? config.credentials(root.location()) : null;
    boolean isEncrypted = entrances.stream().anyMatch(entrance -> entrance.listener().isEncrypted());
    SslContext tls = isEncrypted ? config.tls() : null;
    Optional<Address> metricsAddress = config.metrics();
    server = new SocketServer(config.limits());
    Map<String, Endpoint> endpoints = new LinkedHashMap<>();
    Map<ServeConfig.Entrance, SocketServer.Listening> listening = new LinkedHashMap<>();
    for (ServeConfig.Entrance entrance : entrances) {
      SocketServer.Listening taken = listen(entrance.address(), entrance.listener().isEncrypted() ? tls : null);
      listening.put(entrance, taken);
      int port = entrance.advertised().port();
      Address told = new Address(entrance.advertised().host(), port == 0 ? taken.address().getPort() : port);
      addresses.put(entrance.listener().name(), told);
      endpoints.put(entrance.listener().name(), Endpoint.at(told, entrance.address(), entrance.listener().kind()));
    }
    work = new Workers("server-work", config.number("num.io.threads"));
    checks = new Workers("server-check", ProduceHandler.checksAtOnce(config.number("num.io.threads")));
    commits = new CommitWaits(root, work, Clock.systemUTC());
    reads = new PartitionReads(root, Clock.systemUTC(), Runtime.getRuntime().maxMemory() / READ_SHARE);
    RequestMetrics traffic = new RequestMetrics(metrics);
    servers = new Servers(root.store(), endpoints, traffic::clients, config.number("broker.heartbeat.interval.ms"),
        config.number("broker.session.timeout.ms"), random);
    topics = new ServedTopics(root, Clock.systemUTC());
    Metrics.Counter made = metrics.counter("partlog_server_commits_total", "Commits of records by this server.");
    writers = new TopicWriters(root, config.commits(), topic -> {
      if (!topic.equals(Rights.OFFSETS_TOPIC)) {
        made.add(1);
      }
      commits.committed(topic);
    }, Clock.systemUTC(), random);
    produce = new ProduceHandler(topics, writers, Clock.systemUTC(), work, checks);
    fetch = new FetchHandler(topics, new Fetches(root, reads, commits, work), config.number("max.incremental.fetch.session.cache.slots"),
        random, work, config.number("fetch.max.bytes"));
    groups = new Groups(root, writers, servers.self().node(), config.entries(), servers::coordinates, Clock.systemUTC(), random);
    groupRequests = new GroupRequests(groups, topics, work);
    servers.afterEachRefresh(groups::release);
    declareNumbers(config);
    page = metricsAddress.map(this::serveMetrics);
    pageAddress = metricsAddress.map(address -> new Address(address.host(), page.get().port()));
    listening.forEach((entrance, taken) -> taken
        .serve(KafkaSession.service(entrance.listener(), handlers(config, entrance.listener()), credentials, work, traffic)));
  }

  private void declareNumbers(ServeConfig config) {
    Runtime process = Runtime.getRuntime();
    metrics.gauge("partlog_server_connections", "Connections of now.", server::connections);
    metrics.total("partlog_server_connections_refused_total", "Connections that max.connections ended at once, since the start.",
        server::connectionsRefused);
    metrics.gauge("partlog_server_request_memory_bytes", "Bytes of requests that the server reads, or has not answered.",
        server::requestBytes);
    metrics.gauge("partlog_server_request_memory_limit_bytes", "The most of these bytes. Beyond it, requests wait.",
        () -> config.limits().requestBytesMax());
    metrics.gauge("partlog_server_answer_memory_bytes", "Bytes of answers that clients have not taken, without records.",
        server::answerBytes);
    metrics.gauge("partlog_server_requests_waiting", "Requests that wait for memory before they are read.", server::requestsWaiting);
    metrics.gauge("partlog_server_heap_bytes", "Memory of the process that is in use.", () -> process.totalMemory() - process.freeMemory());
    metrics.gauge("partlog_server_heap_limit_bytes", "The most memory of the process.", process::maxMemory);
    metrics.gauge("partlog_server_group_memory_bytes", "Memory of the members and positions of the groups of this server, about.",
        groups::bytes);
    metrics.gauge("partlog_server_group_memory_limit_bytes", "The most of this memory. Beyond it, new positions and members are refused.",
        groups::bytesMax);
    new GroupMetrics(metrics, groupRequests);
  }

  private MetricsPage serveMetrics(Address address) {
    try {
      return new MetricsPage(metrics, new InetSocketAddress(address.host(), address.port()));
    } catch (IOException e) {
      servers.close();
      throw notListening(address, e);
    }
  }

  private SocketServer.Listening listen(Address address, SslContext tls) {
    try {
      return server.listen(new InetSocketAddress(address.host(), address.port()), tls);
    } catch (IOException e) {
      throw notListening(address, e);
    }
  }

  private PartlogException notListening(Address address, IOException e) {
    server.drain(0);
    return PartlogException.caused(e, "SERVE_ADDRESS", "address", address, "cause", e.getMessage());
  }

  /** The APIs for the clients of a listener. */
  private Handlers handlers(ServeConfig config, Listener listener) {
    Handlers handlers = new Handlers(work);
    SortedMap<String, String> told = config.told(listener, addresses.get(listener.name()));
    TopicHandlers.addAll(handlers, topics, servers, told, !listener.rights().readOnly(), random);
    handlers.add(ApiKeys.FETCH, fetch::answer);
    // Also for readers, whose batches are refused: librdkafka reads nothing where it does not find Produce.
    produce.addTo(handlers, random);
    new PartitionOffsetHandlers(topics, new OffsetLookup(root, reads)).addTo(handlers);
    new GroupHandlers(groupRequests, servers).addTo(handlers);
    return handlers;
  }

  String location() {
    return root.location();
  }

  /** Where clients reach the first listener. */
  Address address() {
    return addresses.values().iterator().next();
  }

  /** Where the metrics are; empty if they are not served. */
  Optional<Address> metrics() {
    return pageAddress;
  }

  /** All listeners, as Kafka writes them. */
  String listeners() {
    return addresses.entrySet().stream().map(each -> each.getKey() + "://" + each.getValue()).collect(Collectors.joining(","));
  }

  /**
   * Waits until the server has had no connection for some time, or is closed. Then it accepts no connection.
   *
   * @param ms the time without a connection; −1: for ever
   */
  void awaitUnused(long ms) throws InterruptedException {
    long begun = -1;
    for (long unused = 0; ms < 0 || unused < ms;) {
      long pause = ms < 0 ? LOOK_MS : Math.max(1, Math.min(LOOK_MS, ms - unused));
      if (ended.await(pause, TimeUnit.MILLISECONDS)) {
        return;
      }
      unused = server.connections() > 0 || server.connectionsBegun() != begun ? 0 : unused + pause;
      begun = server.connectionsBegun();
    }
    server.closeListening();
  }

  /** Answers the requests that were read, and ends. */
  @Override
  public void close() {
    ended.countDown();
    server.closeListening();
    servers.close(); // First: while this server drains, clients go to the others.
    groupRequests.close();
    groups.close(); // A member that joins then goes to another server, and does not wait for the other members.
    commits.close();
    server.drain(DRAIN_MS);
    page.ifPresent(MetricsPage::close);
    writers.close();
    checks.close();
    work.close();
  }
}
