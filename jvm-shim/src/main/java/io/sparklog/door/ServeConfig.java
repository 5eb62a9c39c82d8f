package io.sparklog.door;

import io.sparklog.door.cluster.Address;
import io.sparklog.door.group.Groups;
import io.sparklog.door.net.Limits;
import io.sparklog.door.produce.Terms;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/** The arguments of {@link Serve}. Where Kafka has a setting, its key is the same here. */
record ServeConfig(String root, String host, int port, boolean readOnly, Map<String, String> entries) {
  private static final String LISTEN = "--listen";

  /** Defaults of topics, by the names that brokers have for them. */
  private static final Map<String, String> KAFKAS = Map.of("partitions", "num.partitions", "max.message.bytes", "message.max.bytes",
      "message.timestamp.type", "log.message.timestamp.type", "retention.ms", "log.retention.ms", "retention.bytes", "log.retention.bytes");

  /** Keys with their defaults. */
  private static final Map<String, String> OWN = Map.ofEntries(Map.entry("num.network.threads", "2"), Map.entry("num.io.threads", "16"),
      Map.entry("socket.request.max.bytes", "104857600"), Map.entry("queued.max.request.bytes", "268435456"),
      Map.entry("max.connections", "10000"), Map.entry("connections.max.idle.ms", "600000"), Map.entry("end.when.unused.ms", "-1"),
      Map.entry("append.linger.ms", "0"), Map.entry("commit.interval.ms", "0"), Map.entry("merge.budget.bytes", "33554432"),
      Map.entry("auto.create.topics.enable", "true"), Map.entry("keys.in.any.partition", "false"), Map.entry("fetch.max.bytes", "57671680"),
      Map.entry("num.partitions", Option.ofTopic("partitions").defaultValue()));

  private static final Map<String, String> DEFAULTS = new TreeMap<>(Groups.SETTINGS);

  static {
    DEFAULTS.putAll(OWN);
  }

  /**
   * Takes ROOT [--listen HOST:PORT] [--read-only] [KEY=VALUE …].
   *
   * @throws PartlogException ROOT_REQUIRED, OPTION_UNKNOWN, OPTION_VALUE
   */
  static ServeConfig of(String... arguments) {
    String root = null;
    String listen = "127.0.0.1:9092";
    boolean readOnly = false;
    TreeMap<String, String> entries = new TreeMap<>(DEFAULTS);
    for (int i = 0; i < arguments.length; i++) {
      String argument = arguments[i];
      int equals = argument.indexOf('=');
      if (argument.equals(LISTEN) && i + 1 < arguments.length) {
        listen = arguments[++i];
      } else if (argument.equals("--read-only")) {
        readOnly = true;
      } else if (root == null && !argument.startsWith("-")) {
        root = argument;
      } else if (equals > 0 && DEFAULTS.containsKey(argument.substring(0, equals))) {
        entries.put(argument.substring(0, equals), argument.substring(equals + 1));
      } else {
        throw PartlogException.of("OPTION_UNKNOWN", "option", argument, "nearest", "");
      }
    }
    if (root == null) {
      throw PartlogException.of("ROOT_REQUIRED");
    }
    int colon = listen.lastIndexOf(':');
    String host = listen.substring(0, Math.max(colon, 0)).replaceAll("^\\[|]$", "");
    int port = port(listen, listen.substring(colon + 1));
    if (host.isEmpty()) {
      throw badListen(listen);
    }
    return new ServeConfig(root, host, port, readOnly, entries);
  }

  private static int port(String listen, String text) {
    try {
      int port = Integer.parseInt(text);
      if (port >= 0 && port < 1 << 16) {
        return port;
      }
    } catch (NumberFormatException e) {
      // The answer is below.
    }
    throw badListen(listen);
  }

  private static PartlogException badListen(String listen) {
    return PartlogException.of("OPTION_VALUE", "option", "listen", "value", listen, "reason", "Give a host and a port: 127.0.0.1:9092");
  }

  /** How batches wait for their commits. */
  Terms terms() {
    return new Terms(number("append.linger.ms"), number("commit.interval.ms"), number("queued.max.request.bytes"),
        number("merge.budget.bytes"), isTrue("keys.in.any.partition"));
  }

  /** The settings as clients are told them: the settings of this server, and the settings of a broker that it cannot have otherwise. */
  SortedMap<String, String> told(Address address) {
    TreeMap<String, String> told = new TreeMap<>(entries);
    told.putAll(Map.of("default.replication.factor", "1", "offsets.topic.replication.factor", "1",
        "transaction.state.log.replication.factor", "1", "min.insync.replicas", "1", "delete.topic.enable", "true", "listeners",
        "PLAINTEXT://" + address, "advertised.listeners", "PLAINTEXT://" + address));
    KAFKAS.forEach((ours, kafkas) -> told.putIfAbsent(kafkas, Option.ofTopic(ours).defaultValue()));
    return told;
  }

  /** The limits of the network. All requests together have half of the heap at most, and one request no more than all. */
  Limits limits() {
    long memory = Math.min(number("queued.max.request.bytes"), Runtime.getRuntime().maxMemory() / 2);
    int frame = (int) Math.min(number("socket.request.max.bytes"), memory);
    return new Limits(number("num.network.threads"), frame, memory, number("max.connections"), number("connections.max.idle.ms"));
  }

  boolean isTrue(String key) {
    return Boolean.parseBoolean(entries.get(key));
  }

  /** The whole number of a key. */
  int number(String key) {
    try {
      return Integer.parseInt(entries.get(key));
    } catch (NumberFormatException e) {
      throw PartlogException.caused(e, "OPTION_VALUE", "option", key, "value", entries.get(key), "reason", "Give a whole number");
    }
  }
}
