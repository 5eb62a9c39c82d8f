package io.sparklog.serve.members;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.json.CheckedLine;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.kit.Seed;
import io.sparklog.log.Root;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Servers of a root on a disk. */
@Timeout(120)
final class ServersTest {
  private static final String LISTENER = "PLAINTEXT";
  private static final long INTERVAL_MS = 50;

  /** Only tests that wait for its end have it: on a busy machine a server may make no heartbeat for a second. */
  private static final long BRIEF_MS = 1000;

  private static final long SESSION_MS = 60_000;

  @TempDir
  Path root;

  private final Random random = new Random(Seed.draw());
  private final List<Servers> opened = new ArrayList<>();
  private LogStore store;

  @BeforeEach
  void prepare() {
    store = Stores.open(root.toString());
    new Root(store).prepare();
  }

  @AfterEach
  void close() {
    opened.forEach(Servers::close);
  }

  private Servers open(String host) {
    return open(host, List::of, SESSION_MS);
  }

  private Servers open(String host, Supplier<List<Server.Client>> clients, long sessionMs) {
    Servers servers = new Servers(store, Map.of(LISTENER, new Endpoint(new Address(host, 9092), "PLAINTEXT")), clients, INTERVAL_MS,
        sessionMs, random);
    opened.add(servers);
    return servers;
  }

  private static void until(BooleanSupplier condition) throws InterruptedException {
    while (!condition.getAsBoolean()) {
      Thread.sleep(10);
    }
  }

  private List<Path> files() throws IOException {
    try (var files = Files.list(root.resolve(Names.SERVERS))) {
      return files.filter(file -> Names.serverHeartbeat(file.getFileName().toString()).isPresent()).toList();
    }
  }

  @Test
  void serversOfARootFindEachOtherAndAgree() throws Exception {
    Servers a = open("a");
    Servers b = open("b");
    assertEquals(2, b.at(LISTENER).size()); // At once: the heartbeat of the other is young.
    until(() -> a.at(LISTENER).size() == 2);
    assertEquals(a.clusterId(), b.clusterId());
    assertTrue(Names.isIdentity(a.clusterId()));
    assertEquals(a.preferred(LISTENER, "t").node(), b.preferred(LISTENER, "t").node());
    assertTrue(a.coordinates(3) ^ b.coordinates(3));
    assertEquals(a.coordinator(LISTENER, 3), b.coordinator(LISTENER, 3));
  }

  @Test
  void aServerThatLeavesIsNotNamedAfterTheNextLookAndLeavesNoFile() throws Exception {
    Servers a = open("a");
    Servers b = open("b");
    until(() -> a.at(LISTENER).size() == 2);
    b.close();
    until(() -> a.at(LISTENER).size() == 1);
    a.close();
    assertEquals(List.of(), files());
    assertEquals(a.clusterId(), open("c").clusterId());
  }

  /** The last heartbeat of a server that was killed stays. */
  @Test
  void aServerThatIsSilentIsNotNamedAfterItsSession() throws Exception {
    store.createFolder(Names.SERVERS);
    dead(7, SESSION_MS);
    dead(8, BRIEF_MS);
    Servers a = open("a");
    assertTrue(a.at(LISTENER).containsKey(7));
    until(() -> !a.at(LISTENER).containsKey(8));
    assertEquals(Set.of(7, a.self().node()), a.at(LISTENER).keySet());
    Servers b = open("b", List::of, BRIEF_MS);
    assertFalse(b.at(LISTENER).containsKey(8), "its heartbeat was old before the first look");
  }

  private void dead(int node, long sessionMs) throws IOException {
    Names.ServerHeartbeat heartbeat = new Names.ServerHeartbeat(Names.identity(random), 5);
    Server server = new Server(1, node, sessionMs, Map.of(LISTENER, new Endpoint(new Address("dead" + node, 9092), "PLAINTEXT")));
    Files.write(root.resolve(heartbeat.file()), server.heartbeat(0, List.of()));
  }

  @Test
  void aServerThatCannotListItsClientsIsAlive() throws Exception {
    Servers a = open("a");
    Servers b = open("b", () -> {
      throw new IllegalStateException("a fault");
    }, SESSION_MS);
    until(() -> a.at(LISTENER).size() == 2);
    assertTrue(b.coordinates(0) || b.coordinator(LISTENER, 0).node() == a.self().node());
  }

  /** Others may have taken its groups over, and it would not know. */
  @Test
  void aServerThatDoesNotLookForOthersCoordinatesNothing() throws Exception {
    Servers a = open("a", List::of, BRIEF_MS);
    until(() -> a.coordinates(3));
    CountDownLatch sleep = new CountDownLatch(1);
    a.afterEachRefresh(() -> {
      try {
        sleep.await();
      } catch (InterruptedException ended) {
        Thread.currentThread().interrupt();
      }
    });
    until(() -> !a.coordinates(3));
    sleep.countDown();
    until(() -> a.coordinates(3));
  }

  @Test
  void serversOfTwoMachinesMayBothListenAtTheAddressOfTheirMachine() {
    List<Integer> nodes = Stream.of("m1", "m2")
        .map(machine -> Map.of("INTERNAL", new Endpoint(new Address("127.0.0.1", 9092), "PLAINTEXT on " + machine), LISTENER,
            new Endpoint(new Address(machine, 9093), "PLAINTEXT")))
        .map(endpoints -> Server.of(endpoints, SESSION_MS).node())
        .toList();
    assertNotEquals(nodes.get(0), nodes.get(1));
  }

  @Test
  void aSessionHasTimeForThreeSigns() {
    Map<String, Endpoint> endpoints = Map.of(LISTENER, new Endpoint(new Address("a", 9092), "PLAINTEXT"));
    for (long[] wrong : new long[][] {{1000, 2000}, {-1, 50}, {200_000, -1}}) {
      PartlogException refused = assertThrows(PartlogException.class,
          () -> new Servers(store, endpoints, List::of, wrong[0], wrong[1], random));
      assertEquals("PARTLOG_OPTION_VALUE", refused.condition());
    }
    try (Servers brief = new Servers(store, endpoints, List::of, -1, 900, random)) {
      assertEquals(900, brief.self().sessionMs());
    }
  }

  @Test
  void filesOfAnEarlierDayAreDeleted() throws Exception {
    store.createFolder(Names.SERVERS);
    Path old = root.resolve(new Names.ServerHeartbeat(Names.identity(random), 5).file());
    Files.createFile(old).toFile().setLastModified(System.currentTimeMillis() - 25 * 3_600_000L);
    open("a");
    assertFalse(Files.exists(old));
  }

  @Test
  void aServerHasOneFile() throws Exception {
    open("a");
    Path first = files().get(0);
    until(() -> !Files.exists(first));
    for (int i = 0; i < 20; i++) {
      Thread.sleep(INTERVAL_MS / 5);
      assertTrue(files().size() <= 2, files().toString());
    }
  }

  @Test
  void filesOfOthersAreIgnored() throws Exception {
    store.createFolder(Names.SERVERS);
    String name = new Names.ServerHeartbeat(Names.identity(random), 1).file();
    Files.write(root.resolve(name), new byte[Server.BYTES_MAX + 1]);
    Files.createSymbolicLink(root.resolve(new Names.ServerHeartbeat(Names.identity(random), 1).file()), Path.of("/dev/zero"));
    Files.createDirectory(root.resolve(new Names.ServerHeartbeat(Names.identity(random), 1).file()));
    Files.writeString(root.resolve(Names.SERVERS).resolve("notes.txt"), "x");
    Files.writeString(root.resolve(Names.CLUSTER), "{\"cluster\":\"..\"}");
    Servers a = open("a");
    assertEquals(1, a.at(LISTENER).size());
    assertTrue(Names.isIdentity(a.clusterId()));
  }

  @Test
  void manyFilesDoNotStopAServer() throws Exception {
    store.createFolder(Names.SERVERS);
    for (int i = 0; i < 2100; i++) {
      Files.createFile(root.resolve(new Names.ServerHeartbeat(Names.identity(random), 1).file()));
    }
    Servers a = open("a");
    assertEquals(1, a.at(LISTENER).size());
    until(() -> a.coordinates(0)); // Also if the first look took long.
  }

  @Test
  void aRootThatWasDeletedIsNotMadeAgain() throws Exception {
    AtomicInteger looks = new AtomicInteger();
    open("a").afterEachRefresh(looks::incrementAndGet);
    Files.delete(root.resolve(Names.FOLDER));
    int before = looks.get();
    until(() -> looks.get() >= before + 2); // A heartbeat that had begun is over.
    try (var files = Files.walk(root.resolve(Names.SERVERS))) {
      files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
    }
    Thread.sleep(5 * INTERVAL_MS);
    assertFalse(Files.exists(root.resolve(Names.SERVERS)));
  }

  /** Names of control characters take six bytes for a character. */
  @Test
  void aHeartbeatIsReadWhateverNamesClientsChoose() throws Exception {
    List<String> names = List.of("till", "\u0001".repeat(100), "\uD83D\uDE00".repeat(50), "half \uD83D", "\uFFFF\"\\".repeat(33), "");
    List<Server.Client> clients = new ArrayList<>();
    for (int i = 0; i < 300; i++) {
      String name = names.get(i % names.size());
      clients.add(new Server.Client(LISTENER, name, name, "10.0.0." + i, 1 + i));
    }
    Server server = new Server(1, 7, BRIEF_MS, Map.of(LISTENER, new Endpoint(new Address("h", 1), "k")));
    for (int count : new int[] {0, 1, 20, 300}) {
      byte[] bytes = server.heartbeat(5, clients.subList(0, count));
      assertTrue(bytes.length <= Server.BYTES_MAX);
      assertEquals(server, Server.parse(bytes));
      JsonNode heartbeat = CheckedLine.parse(bytes).json();
      List<Integer> connections = new ArrayList<>();
      heartbeat.get("clients").forEach(each -> connections.add(each.get("connections").intValue()));
      assertEquals(count * (count + 1) / 2, connections.stream().mapToInt(each -> each).sum() + heartbeat.get("others").intValue());
      assertEquals(connections.stream().sorted(Comparator.reverseOrder()).toList(), connections);
      assertTrue(connections.size() == count || connections.size() == 50, connections::toString);
    }
    List<Server.Client> longNames = clients.stream().map(each -> client("\u0001".repeat(100))).toList();
    byte[] full = server.heartbeat(5, longNames);
    JsonNode heartbeat = CheckedLine.parse(full).json();
    int told = heartbeat.get("clients").size();
    assertTrue(full.length <= Server.BYTES_MAX && full.length > Server.BYTES_MAX - 2000 && told < 50, () -> full.length + " " + told);
    assertEquals(300, told + heartbeat.get("others").intValue());
  }

  private static Server.Client client(String name) {
    return new Server.Client(LISTENER, name, name, name, 1);
  }

  @Test
  void hostileContentIsNoServer() throws Exception {
    Server good = new Server(1, 7, BRIEF_MS, Map.of(LISTENER, new Endpoint(new Address("h", 1), "k")));
    String text = Json.MAPPER.writeValueAsString(good.json());
    byte[] right = checked(text);
    assertEquals(good, Server.parse(right));
    List<String> bad = List.of("", "[]", "{}", "null", text + "x", text.replace("7", "-1"), text.replace("7", "4294967296"),
        text.replace("1000", "0"), text.replace("1000", "9999999999"), text.replace(":1}", ":0}"),
        text.replace(":1,\"kind", ":65536,\"kind"), text.replace("\"h\"", "\"\""), text.replace("\"h\"", "7"),
        text.replace("\"h\"", "\"" + "h".repeat(2000) + "\""), text.replace("\"format\":1,", ""),
        text.replace("\"format\":1", "\"format\":0"), text.replace("\"format\":1", "\"format\":\"1\""),
        "{\"format\":1,\"node\":1,\"session\":1000,\"listeners\":{}}", "{\"format\":1,\"node\":1,\"session\":1000,\"listeners\":[1]}");
    for (String each : bad) {
      if (!each.equals(text)) {
        assertThrows(Damaged.class, () -> Server.parse(checked(each)), each);
      }
    }
    for (int i = 0; i < 2000; i++) {
      byte[] flipped = right.clone();
      flipped[random.nextInt(right.length)] ^= (byte) (1 << random.nextInt(8));
      assertThrows(Damaged.class, () -> Server.parse(flipped));
      byte[] forged = text.getBytes(StandardCharsets.ISO_8859_1);
      forged[random.nextInt(forged.length)] ^= (byte) (1 << random.nextInt(7));
      try {
        Server.parse(checked(new String(forged, StandardCharsets.ISO_8859_1)));
      } catch (Damaged expected) {
        // No other exception.
      }
    }
    for (int length = 0; length < right.length; length++) { // A server creates the file before it writes it.
      byte[] begun = Arrays.copyOf(right, length);
      assertThrows(Damaged.class, () -> Server.parse(begun));
    }
  }

  /** A heartbeat with this content. */
  private static byte[] checked(String text) {
    CRC32C crc = new CRC32C();
    crc.update(text.getBytes(StandardCharsets.UTF_8));
    return (text + "\ncrc32c:" + Json.crc(crc) + "\n").getBytes(StandardCharsets.UTF_8);
  }

  /** A later release may share groups out by another rule. */
  @Test
  void serversOfALaterFormatTakeAllGroups() throws Exception {
    Servers a = open("a");
    assertTrue(IntStream.range(0, 50).allMatch(a::coordinates));
    Names.ServerHeartbeat heartbeat = new Names.ServerHeartbeat(Names.identity(random), 5);
    Server later = new Server(2, 7, SESSION_MS,
        Map.of(LISTENER, new Endpoint(new Address("later", 9092), a.self().endpoints().get(LISTENER).kind())));
    String text = Json.MAPPER.writeValueAsString(later.json().put("weights", "of another kind"));
    Files.write(root.resolve(heartbeat.file()),
        (new String(checked(text), StandardCharsets.UTF_8) + "more").getBytes(StandardCharsets.UTF_8));
    until(() -> a.at(LISTENER).containsKey(7));
    assertTrue(IntStream.range(0, 50).noneMatch(a::coordinates));
    assertEquals(later, a.coordinator(LISTENER, 3));
    Files.delete(root.resolve(heartbeat.file()));
    until(() -> IntStream.range(0, 50).allMatch(a::coordinates));
  }
}
