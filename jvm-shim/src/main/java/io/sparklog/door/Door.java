package io.sparklog.door;

import io.sparklog.door.api.ApiVersionsHandler;
import io.sparklog.door.api.DescribeClusterHandler;
import io.sparklog.door.api.DescribeConfigsHandler;
import io.sparklog.door.api.DescribeLogDirsHandler;
import io.sparklog.door.api.DescribeTopicPartitionsHandler;
import io.sparklog.door.api.FindCoordinatorHandler;
import io.sparklog.door.api.GroupListHandlers;
import io.sparklog.door.api.GroupRequests;
import io.sparklog.door.api.Handlers;
import io.sparklog.door.api.InitProducerIdHandler;
import io.sparklog.door.api.KafkaService;
import io.sparklog.door.api.ListConfigResourcesHandler;
import io.sparklog.door.api.MemberHandlers;
import io.sparklog.door.api.MetadataHandler;
import io.sparklog.door.api.OffsetHandlers;
import io.sparklog.door.api.ProduceHandler;
import io.sparklog.door.api.Work;
import io.sparklog.door.cluster.Address;
import io.sparklog.door.cluster.ServedTopics;
import io.sparklog.door.cluster.Servers;
import io.sparklog.door.group.Groups;
import io.sparklog.door.net.Limits;
import io.sparklog.door.net.Server;
import io.sparklog.door.produce.TopicWriters;
import io.sparklog.door.security.Listener;
import io.sparklog.door.security.Rights;
import io.sparklog.log.Root;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.random.RandomGenerator;
import org.apache.kafka.common.protocol.ApiKeys;

/** A door that is open: the parts of the packages below, and how they know each other. */
final class Door implements AutoCloseable {
  private final Root root;
  private final Server server;
  private final Work work;
  private final Address address;
  private final Groups groups;

  /** @throws PartlogException of a root that cannot be served; SERVE_ADDRESS */
  Door(ServeConfig config) {
    root = Root.of(config.root());
    if (config.readOnly()) {
      root.requireReadable();
    } else {
      root.requireWritable();
      root.prepare();
    }
    server = new Server(new Limits(config.number("num.network.threads"), config.number("socket.request.max.bytes")));
    Server.Listening listening = listen(config);
    address = new Address(config.host(), listening.address().getPort());
    Listener listener = new Listener("PLAINTEXT", new Rights(config.readOnly(), List.of()));
    work = new Work(config.number("num.io.threads"));
    Servers servers = new Servers("sparklog", Map.of(listener.name(), address));
    groups = new Groups(root, servers.self().node(), config.entries(), Clock.systemUTC(), new SecureRandom());
    listening.serve(new KafkaService(listener, handlers(config, servers)));
  }

  private Server.Listening listen(ServeConfig config) {
    try {
      return server.listen(new InetSocketAddress(config.host(), config.port()));
    } catch (IOException e) {
      server.close();
      String asked = new Address(config.host(), config.port()).toString();
      throw PartlogException.caused(e, "SERVE_ADDRESS", "address", asked, "cause", e.getMessage());
    }
  }

  private Handlers handlers(ServeConfig config, Servers servers) {
    ServedTopics topics = new ServedTopics(root, Clock.systemUTC());
    Handlers handlers = new Handlers();
    handlers.add(ApiKeys.API_VERSIONS, new ApiVersionsHandler(handlers))
        .add(ApiKeys.METADATA, new MetadataHandler(topics, servers, work))
        .add(ApiKeys.DESCRIBE_CLUSTER, new DescribeClusterHandler(servers))
        .add(ApiKeys.DESCRIBE_TOPIC_PARTITIONS, new DescribeTopicPartitionsHandler(topics, servers, work))
        .add(ApiKeys.DESCRIBE_CONFIGS, new DescribeConfigsHandler(topics, servers, config.told(address), work))
        .add(ApiKeys.LIST_CONFIG_RESOURCES, new ListConfigResourcesHandler(topics, servers, work))
        .add(ApiKeys.DESCRIBE_LOG_DIRS, new DescribeLogDirsHandler(topics, work));
    if (!config.readOnly()) {
      RandomGenerator random = new SecureRandom();
      TopicWriters writers = new TopicWriters(root, config.terms(), topic -> {}, Clock.systemUTC(), random);
      handlers.add(ApiKeys.PRODUCE, new ProduceHandler(topics, writers, Clock.systemUTC(), work))
          .add(ApiKeys.INIT_PRODUCER_ID, new InitProducerIdHandler(random));
    }
    GroupRequests requests = new GroupRequests(groups, topics, work);
    handlers.add(ApiKeys.FIND_COORDINATOR, new FindCoordinatorHandler(requests, servers));
    new MemberHandlers(requests).addTo(handlers);
    new OffsetHandlers(requests).addTo(handlers);
    new GroupListHandlers(requests).addTo(handlers);
    return handlers;
  }

  String location() {
    return root.location();
  }

  Address address() {
    return address;
  }

  @Override
  public void close() {
    server.close();
    groups.close();
    work.close();
  }
}
