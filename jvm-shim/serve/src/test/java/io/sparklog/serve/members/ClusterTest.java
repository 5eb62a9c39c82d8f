package io.sparklog.serve.members;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Which server clients are sent to. */
final class ClusterTest {
  private static final String LISTENER = "PLAINTEXT";

  private final Server a = LivingTest.server(1);
  private final Server b = LivingTest.server(2);
  private final Server c = LivingTest.server(3);

  private static Server with(int node, String listener, String kind) {
    return new Server(1, node, 9000, Map.of(listener, new Endpoint(new Address("host" + node, 9092), kind)));
  }

  @Test
  void serversThatKnowEachOtherNameTheSameServer() {
    Cluster ofA = Cluster.of(a, true, List.of(b, c));
    Cluster ofB = Cluster.of(b, true, List.of(c, a));
    Map<Integer, Integer> keys = new HashMap<>();
    for (int key = 0; key < 3000; key++) {
      Server named = ofA.preferred(LISTENER, "topic" + key);
      assertEquals(named, ofB.preferred(LISTENER, "topic" + key));
      keys.merge(named.node(), 1, Integer::sum);
    }
    assertTrue(keys.values().stream().allMatch(count -> count > 850) && keys.size() == 3, keys.toString());
    assertEquals(Set.of(1, 2, 3), ofA.at(LISTENER).keySet());
    assertEquals(ofB.at(LISTENER), ofA.at(LISTENER));
  }

  /** In random sets of servers: a key moves only from a server that leaves, or to one that comes. */
  @Test
  void aServerThatLeavesMovesItsOwnKeysAlone() {
    Random random = new Random(Seed.draw());
    for (int run = 0; run < Seed.either(100, 2000); run++) {
      List<Server> all = random.ints(2 + random.nextInt(6), 0, Integer.MAX_VALUE).distinct().mapToObj(LivingTest::server).toList();
      Server gone = all.get(random.nextInt(all.size() - 1) + 1);
      List<Server> left = all.stream().filter(each -> each != gone).toList();
      for (int i = 0; i < 20; i++) {
        String key = "k" + random.nextLong();
        Server before = Cluster.of(all.get(0), true, all).preferred(LISTENER, key);
        Server after = Cluster.of(all.get(0), true, left).preferred(LISTENER, key);
        assertTrue(before.equals(after) || before.equals(gone), () -> key + " moved from " + before + " to " + after);
      }
    }
  }

  /** The name of a machine is a loopback address on the machine itself in many systems. Others reach the machine by it all the same. */
  @Test
  void aListenerThatOthersReachSendsNoClientToALoopbackAddress() throws UnknownHostException {
    Address everywhere = new Address("0.0.0.0", 9092);
    String machine = InetAddress.getLocalHost().getHostName();
    assertEquals("any", Endpoint.at(new Address(machine, 9092), everywhere, "any").kind());
    for (String loopback : List.of("127.0.0.1", "localhost", "::1")) {
      Address address = new Address(loopback, 9092);
      assertEquals("any on " + machine, Endpoint.at(address, address, "any").kind());
      assertEquals("any on " + machine, Endpoint.at(address, everywhere, "any").kind());
    }
  }

  @Test
  void clientsAreSentToListenersOfTheSameNameAndKindAlone() {
    Server other = with(4, LISTENER, "PLAINTEXT read-only");
    Server another = with(5, "INTERNAL", "PLAINTEXT");
    Cluster cluster = Cluster.of(a, true, List.of(b, other, another));
    assertEquals(Set.of(1, 2), cluster.at(LISTENER).keySet());
    assertTrue(IntStream.range(0, 200).allMatch(key -> cluster.preferred(LISTENER, "t" + key).node() <= 2));
  }

  @Test
  void aServerThatOthersDoNotKnowSendsItsClientsToThem() {
    Cluster unknown = Cluster.of(a, false, List.of(b));
    assertTrue(IntStream.range(0, 200).allMatch(key -> unknown.preferred(LISTENER, "t" + key).equals(b)));
    assertEquals(a, Cluster.of(a, false, List.of()).preferred(LISTENER, "t"));
  }

  /** Servers of one format know one rule. Topics have no rule that two servers must share. */
  @Test
  void theNewestFormatCoordinatesAllGroups() {
    Server d = new Server(2, 4, 9000, a.endpoints());
    Server e = new Server(2, 5, 9000, a.endpoints());
    Cluster older = Cluster.of(a, true, List.of(b, d, e));
    Cluster newer = Cluster.of(d, true, List.of(a, b, e));
    for (int partition = 0; partition < 200; partition++) {
      Server coordinator = older.coordinator(LISTENER, partition);
      assertEquals(2, coordinator.format());
      assertEquals(coordinator, newer.coordinator(LISTENER, partition));
      assertEquals(Cluster.of(d, true, List.of(e)).coordinator(LISTENER, partition), coordinator);
      assertEquals(d, Cluster.of(d, true, List.of(a, b)).coordinator(LISTENER, partition));
      assertEquals(1, Cluster.of(d, false, List.of(a, b)).coordinator(LISTENER, partition).format());
    }
    assertTrue(IntStream.range(0, 200).anyMatch(key -> older.preferred(LISTENER, "t" + key).format() == 1));
  }

  /** The last heartbeat of the earlier program stays for its session. */
  @Test
  void aServerThatStartedAgainWithANewerFormatIsOfThatFormat() {
    Server again = new Server(2, 2, 9000, b.endpoints());
    for (List<Server> alive : List.of(List.of(b, again, c), List.of(again, b, c))) {
      Cluster cluster = Cluster.of(a, true, alive);
      assertTrue(IntStream.range(0, 200).allMatch(partition -> cluster.coordinator(LISTENER, partition).equals(again)));
    }
  }

  @Test
  void twoServersWithOneNumberAreOne() {
    Server twin = with(1, LISTENER, "PLAINTEXT");
    assertEquals(Map.of(1, new Address("host1", 9092)), Cluster.of(a, true, List.of(twin)).at(LISTENER));
    assertEquals(2, Cluster.of(a, true, List.of(b, with(2, LISTENER, "PLAINTEXT"))).at(LISTENER).size());
  }

  /** FORMAT.md annex G has this number. */
  @Test
  void theWeightIsTheOneOfTheFormat() {
    assertEquals("e390cfb57cc4e8f", Long.toHexString(Cluster.weight("c9Uau9icSBmvDvtokvlNaA", 7)));
  }
}
