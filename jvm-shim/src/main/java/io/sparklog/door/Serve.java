package io.sparklog.door;

import io.sparklog.door.api.ApiVersionsHandler;
import io.sparklog.door.api.Handlers;
import io.sparklog.door.api.InitProducerIdHandler;
import io.sparklog.door.api.KafkaService;
import io.sparklog.door.api.MetadataHandler;
import io.sparklog.door.api.ProduceHandler;
import io.sparklog.door.api.Work;
import io.sparklog.door.cluster.Address;
import io.sparklog.door.cluster.ServedTopics;
import io.sparklog.door.cluster.Servers;
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

/** Serves a root to Kafka's clients: the main program of the door. */
public final class Serve {
  private Serve() {}

  /** Ends by SIGTERM, or with status 1 after a message on stderr. */
  public static void main(String[] arguments) throws InterruptedException {
    try {
      begin(ServeConfig.of(arguments));
    } catch (PartlogException e) {
      System.err.println(e.condition() + ": " + e.getMessage());
      System.exit(1);
    }
    Thread.currentThread().join();
  }

  private static void begin(ServeConfig config) {
    Root root = Root.of(config.root());
    root.requireReadable();
    Server server = new Server(new Limits(config.number("num.network.threads"), config.number("socket.request.max.bytes")));
    Server.Listening listening;
    try {
      listening = server.listen(new InetSocketAddress(config.host(), config.port()));
    } catch (IOException e) {
      String address = new Address(config.host(), config.port()).toString();
      throw PartlogException.caused(e, "SERVE_ADDRESS", "address", address, "cause", e.getMessage());
    }
    Address address = new Address(config.host(), listening.address().getPort());
    Listener listener = new Listener("PLAINTEXT", new Rights(config.readOnly(), List.of()));
    Servers servers = new Servers("sparklog", Map.of(listener.name(), address));
    ServedTopics topics = new ServedTopics(root, Clock.systemUTC());
    Work work = new Work(config.number("num.io.threads"));
    Handlers handlers = new Handlers();
    handlers.add(ApiKeys.API_VERSIONS, new ApiVersionsHandler(handlers)).add(ApiKeys.METADATA, new MetadataHandler(topics, servers, work));
    if (!config.readOnly()) {
      RandomGenerator random = new SecureRandom();
      TopicWriters writers = new TopicWriters(root, config.terms(), topic -> {}, Clock.systemUTC(), random);
      handlers.add(ApiKeys.PRODUCE, new ProduceHandler(topics, writers, Clock.systemUTC(), work))
          .add(ApiKeys.INIT_PRODUCER_ID, new InitProducerIdHandler(random));
    }
    listening.serve(new KafkaService(listener, handlers));
    System.out.println("Serving " + root.location() + " at " + address);
    System.out.flush();
  }
}
