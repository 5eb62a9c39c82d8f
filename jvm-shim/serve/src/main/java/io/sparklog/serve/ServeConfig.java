package io.sparklog.serve;

import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import io.sparklog.serve.members.Address;
import io.sparklog.serve.net.Limits;
import io.sparklog.commits.CommitSettings;
import io.sparklog.serve.security.Credentials;
import io.sparklog.serve.security.Listener;
import io.sparklog.serve.security.Rights;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.ServerSettings;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.net.ssl.KeyManagerFactory;

/**
 * The arguments of {@link Serve}, and the file that they name. Where Kafka has a setting, its key is the same here.
 *
 * @param isUnprotected whether a listener may be open to other machines
 * @param endsWithInput whether the server ends when its standard input does
 */
record ServeConfig(String root, boolean readOnly, boolean isUnprotected, boolean endsWithInput, SortedMap<String, String> entries) {
  private static final String LISTENERS = "listeners";
  private static final String ADVERTISED = "advertised.listeners";
  private static final String PROTOCOLS = "listener.security.protocol.map";
  private static final String MECHANISMS = "sasl.enabled.mechanisms";
  private static final String CREDENTIALS = "sasl.credentials.file";
  private static final String KEYSTORE = "ssl.keystore.location";
  private static final String KEYSTORE_PASSWORD = "ssl.keystore.password";
  private static final String KEYSTORE_TYPE = "ssl.keystore.type";
  private static final String METRICS = "metrics.address";
  private static final String READ_ONLY = "read.only";
  private static final Pattern METRICS_ADDRESS = Pattern.compile("(?:(?:\\[([^]]*)]|([^:/]*)):)?([0-9]{1,5})");

  private static final Pattern LISTENER = Pattern.compile("([A-Z0-9_]+)://(?:\\[([^]]*)]|([^:/]*)):([0-9]{1,5})");

  /** Defaults of topics, by the names that brokers have for them. */
  private static final Map<String, String> KAFKAS = Map.of("partitions", "num.partitions", "max.message.bytes", "message.max.bytes",
      "message.timestamp.type", "log.message.timestamp.type", "retention.ms", "log.retention.ms", "retention.bytes", "log.retention.bytes");

  /**
   * Takes ROOT [--listen HOST:PORT] [--read-only] [--unprotected] [--end-with-input] [--config FILE] [KEY=VALUE …]. An argument wins over
   * the file.
   *
   * @throws PartlogException ROOT_REQUIRED, SETTING_UNKNOWN, OPTION_VALUE, OPTION_CONFLICT
   */
  static ServeConfig of(String... arguments) {
    String root = null;
    boolean readOnly = false;
    boolean isUnprotected = false;
    boolean endsWithInput = false;
    String listen = null;
    TreeMap<String, String> given = new TreeMap<>();
    TreeMap<String, String> entries = new TreeMap<>(ServerSettings.defaults());
    for (int i = 0; i < arguments.length; i++) {
      String argument = arguments[i];
      int equals = argument.indexOf('=');
      if (argument.equals("--listen") && i + 1 < arguments.length) {
        listen = "PLAINTEXT://" + arguments[++i];
      } else if (argument.equals("--config") && i + 1 < arguments.length) {
        entries.putAll(file(arguments[++i]));
      } else if (argument.equals("--read-only")) {
        readOnly = true;
      } else if (argument.equals("--unprotected")) {
        isUnprotected = true;
      } else if (argument.equals("--end-with-input")) {
        endsWithInput = true;
      } else if (equals > 0 && ServerSettings.isDeclared(argument.substring(0, equals))) {
        given.put(argument.substring(0, equals), argument.substring(equals + 1));
      } else if (root == null && !argument.startsWith("-")) {
        root = argument;
      } else {
        String key = equals > 0 ? argument.substring(0, equals) : argument;
        throw PartlogException.of("SETTING_UNKNOWN", "setting", key, "nearest", ServerSettings.nearest(key));
      }
    }
    if (listen != null && given.put(LISTENERS, listen) != null) {
      throw PartlogException.of("OPTION_CONFLICT", "options", "--listen and " + LISTENERS, "reason", "each of them gives the addresses");
    }
    if (root == null) {
      throw PartlogException.of("ROOT_REQUIRED");
    }
    entries.putAll(given);
    entries.replaceAll(ServerSettings::canonical); // Before a root is made.
    return new ServeConfig(root, readOnly, isUnprotected, endsWithInput, entries);
  }

  private static Map<String, String> file(String name) {
    Properties properties = new Properties();
    try (Reader reader = new InputStreamReader(new FileInputStream(name), StandardCharsets.UTF_8)) {
      properties.load(reader);
    } catch (IOException | IllegalArgumentException e) {
      throw bad("config", name, "the file cannot be read (" + e.getMessage() + ")");
    }
    Map<String, String> entries = new TreeMap<>();
    for (String key : properties.stringPropertyNames()) {
      if (!ServerSettings.isDeclared(key)) {
        String nearest = " It is in " + name + "." + ServerSettings.nearest(key);
        throw PartlogException.of("SETTING_UNKNOWN", "setting", key, "nearest", nearest);
      }
      entries.put(key, properties.getProperty(key).trim());
    }
    return entries;
  }

  private static PartlogException bad(String key, String value, String reason) {
    return PartlogException.of("OPTION_VALUE", "option", key, "value", value, "reason", reason);
  }

  /**
   * A listener with the address that it takes.
   *
   * @param advertised the address that clients are told; port 0 stands for the port that the listener takes
   */
  record Entrance(Listener listener, Address address, Address advertised) {}

  /**
   * The listeners.
   *
   * @throws PartlogException OPTION_VALUE; SERVE_UNPROTECTED for a listener that anybody on the network could use; SERVE_WILDCARD for a
   *     listener whose address clients cannot use
   */
  List<Entrance> entrances() {
    Map<String, Address> advertised = addresses(ADVERTISED);
    Map<String, Address> listening = addresses(LISTENERS);
    if (listening.isEmpty() || !listening.keySet().containsAll(advertised.keySet())) {
      throw bad(advertised.isEmpty() ? LISTENERS : ADVERTISED, get(advertised.isEmpty() ? LISTENERS : ADVERTISED),
          "Name each listener as " + LISTENERS + " does, such as PLAINTEXT://127.0.0.1:9092");
    }
    List<Entrance> entrances = new ArrayList<>();
    listening.forEach((name, address) -> {
      Listener listener = listener(name, address);
      Address told = advertised.getOrDefault(name, address);
      if (isWildcard(told)) {
        throw PartlogException.of("SERVE_WILDCARD", "listener", name, "address", told, "port", address.port());
      }
      entrances.add(new Entrance(listener, address, told));
    });
    return entrances;
  }

  private static boolean isWildcard(Address address) {
    InetAddress found = new InetSocketAddress(address.host(), 0).getAddress();
    return found != null && found.isAnyLocalAddress();
  }

  private Listener listener(String name, Address address) {
    String protocol = Stream.of(get(PROTOCOLS).split(","))
        .map(pair -> pair.trim().split(":", 2))
        .filter(pair -> pair.length == 2 && pair[0].equals(name))
        .map(pair -> pair[1])
        .findFirst()
        .orElseThrow(() -> bad(PROTOCOLS, get(PROTOCOLS), "Give the listener " + name + " a protocol"));
    boolean isLocal = isLocal(address);
    if (protocol.equals("PLAINTEXT") && !isLocal && !isUnprotected) {
      throw PartlogException.of("SERVE_UNPROTECTED", "listener", name, "address", address);
    }
    boolean isEncrypted = protocol.endsWith("SSL");
    List<String> mechanisms = !protocol.startsWith("SASL_")
        ? List.of()
        : Stream.of(get(MECHANISMS).split(","))
            .map(String::trim)
            .filter(mechanism -> isEncrypted || isLocal || isUnprotected || !mechanism.equals("PLAIN"))
            .toList();
    if (!Set.of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL").contains(protocol)) {
      throw bad(PROTOCOLS, get(PROTOCOLS), "Give PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL");
    }
    if (!mechanisms.stream().allMatch(Credentials::isMechanism) || protocol.startsWith("SASL_") && mechanisms.isEmpty()) {
      throw bad(MECHANISMS, get(MECHANISMS), "Give PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; PLAIN needs TLS at this address");
    }
    String key = "listener.name." + name.toLowerCase(Locale.ROOT) + ".";
    List<String> prefixes = Stream.of(entries.getOrDefault(key + "topic.prefixes", "").split(","))
        .map(String::trim)
        .filter(prefix -> !prefix.isEmpty())
        .toList();
    boolean isReadOnly = readOnly || Boolean.parseBoolean(entries.get(key + READ_ONLY));
    return new Listener(name, new Rights(isReadOnly, prefixes), isEncrypted, mechanisms);
  }

  private static boolean isLocal(Address address) {
    InetAddress found = new InetSocketAddress(address.host(), 0).getAddress();
    return found != null && found.isLoopbackAddress();
  }

  /**
   * Where the metrics are; empty if they are not served.
   *
   * @throws PartlogException OPTION_VALUE; SERVE_UNPROTECTED for an address that anybody on the network could ask
   */
  Optional<Address> metrics() {
    if (get(METRICS).isEmpty()) {
      return Optional.empty();
    }
    Matcher parts = METRICS_ADDRESS.matcher(get(METRICS));
    if (!parts.matches() || Integer.parseInt(parts.group(3)) >= 1 << 16) {
      throw bad(METRICS, get(METRICS), "Give a port, or a host and a port, such as 127.0.0.1:9309");
    }
    String host = Stream.of(parts.group(1), parts.group(2)).filter(Objects::nonNull).findFirst().orElse("127.0.0.1");
    Address address = new Address(host, Integer.parseInt(parts.group(3)));
    if (!isLocal(address) && !isUnprotected) {
      throw PartlogException.of("SERVE_UNPROTECTED", "listener", METRICS, "address", address);
    }
    return Optional.of(address);
  }

  private Map<String, Address> addresses(String key) {
    Map<String, Address> addresses = new LinkedHashMap<>();
    for (String text : get(key).isEmpty() ? new String[0] : get(key).split(",")) {
      Matcher parts = LISTENER.matcher(text.trim());
      String host = !parts.matches() ? "" : parts.group(2) != null ? parts.group(2) : parts.group(3);
      if (host.isEmpty() || Integer.parseInt(parts.group(4)) >= 1 << 16) {
        throw bad(key, text, "Give a name, a host and a port, such as PLAINTEXT://127.0.0.1:9092; --listen takes 127.0.0.1:9092");
      }
      addresses.put(parts.group(1), new Address(host, Integer.parseInt(parts.group(4))));
    }
    return addresses;
  }

  /** The certificate for listeners with TLS, by the JDK. @throws PartlogException OPTION_VALUE */
  SslContext tls() {
    try (InputStream file = new FileInputStream(get(KEYSTORE))) {
      KeyStore keys = KeyStore.getInstance(get(KEYSTORE_TYPE));
      char[] password = get(KEYSTORE_PASSWORD).toCharArray();
      keys.load(file, password);
      KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      factory.init(keys, password);
      return SslContextBuilder.forServer(factory).sslProvider(SslProvider.JDK).protocols("TLSv1.2", "TLSv1.3").build();
    } catch (IOException | GeneralSecurityException e) {
      throw PartlogException.caused(e, "OPTION_VALUE", "option", KEYSTORE, "value", get(KEYSTORE), "reason",
          "the key store cannot be read with ssl.keystore.password and ssl.keystore.type (" + e.getClass().getSimpleName() + ")");
    }
  }

  /** The verifiers of users. @throws PartlogException OPTION_VALUE, also for a file in the root, which clients' programs read */
  Credentials credentials(String location) {
    if (isWithin(get(CREDENTIALS), location)) {
      throw bad(CREDENTIALS, get(CREDENTIALS), "Keep the file outside the root");
    }
    return Credentials.read(CREDENTIALS, get(CREDENTIALS));
  }

  /** A link stands for its target file. A root in a store has no local file. */
  private static boolean isWithin(String file, String location) {
    try {
      return Path.of(file).toRealPath().startsWith(Path.of(location).toRealPath());
    } catch (IOException | InvalidPathException e) {
      return false; // A file that does not exist is refused when it is read.
    }
  }

  private String get(String key) {
    return entries.get(key);
  }

  /** How batches wait for their commits. */
  CommitSettings commits() {
    // Beside the requests, which have a quarter of the heap: the copies of batches that wait for their commit.
    long queued = Math.min(number("queued.max.request.bytes"), Runtime.getRuntime().maxMemory() / 8);
    return new CommitSettings(number("append.linger.ms"), number("commit.interval.ms"), (int) queued, number("merge.budget.bytes"),
        isTrue("keys.in.any.partition"));
  }

  /**
   * The settings as the clients of a listener see them: without secrets and other listeners, and with settings of Kafka's brokers.
   *
   * @param address of the listener, as clients reach it
   */
  SortedMap<String, String> told(Listener listener, Address address) {
    TreeMap<String, String> told = new TreeMap<>(entries);
    told.keySet().removeIf(key -> key.startsWith("listener.name."));
    told.keySet().removeAll(List.of(CREDENTIALS, KEYSTORE, KEYSTORE_PASSWORD, KEYSTORE_TYPE, METRICS, PROTOCOLS));
    String advertised = listener.name() + "://" + address;
    told.put(LISTENERS, advertised);
    told.putAll(
        Map.of("default.replication.factor", "1", "offsets.topic.replication.factor", "1", "transaction.state.log.replication.factor", "1",
            "min.insync.replicas", "1", "delete.topic.enable", "true", ADVERTISED, advertised));
    KAFKAS.forEach((ours, kafkas) -> told.putIfAbsent(kafkas, Option.ofTopic(ours).defaultValue()));
    return told;
  }

  /**
   * The limits of the network. All requests together have a quarter of the heap at most, and one request no more than seven eighths of
   * that: the rest is for short requests. Answers are beside the heap, in as much memory as an eighth of it.
   */
  Limits limits() {
    long memory = Math.min(number("queued.max.request.bytes"), Runtime.getRuntime().maxMemory() / 4);
    int frame = (int) Math.min(number("socket.request.max.bytes"), memory - memory / 8);
    return new Limits(number("num.network.threads"), frame, memory, Runtime.getRuntime().maxMemory() / 8, number("max.connections"),
        number("connections.max.idle.ms"));
  }

  boolean isTrue(String key) {
    return Boolean.parseBoolean(entries.get(key));
  }

  /** The whole number of a key. */
  int number(String key) {
    return Integer.parseInt(entries.get(key));
  }
}
