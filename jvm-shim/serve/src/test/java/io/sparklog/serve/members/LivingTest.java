package io.sparklog.serve.members;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import io.sparklog.segment.Names.ServerHeartbeat;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The servers that are taken to be alive, by a clock that the test moves. */
final class LivingTest {
  private static final long SESSION_MS = 9000;
  private static final long INTERVAL_MS = 2000;

  private final Living living = new Living(SESSION_MS);

  static Server server(int node) {
    return new Server(1, node, SESSION_MS, Map.of("PLAINTEXT", new Endpoint(new Address("host" + node, 9092), "PLAINTEXT")));
  }

  private static long ns(long ms) {
    return TimeUnit.MILLISECONDS.toNanos(ms);
  }

  private static int node(ServerHeartbeat heartbeat) {
    return Integer.parseInt(heartbeat.identity().substring(1));
  }

  /** A look at a moment, which shows the number of the heartbeat of each server by its node. */
  private void look(long ms, boolean isYoung, Map<Integer, Long> numbers) {
    List<ServerHeartbeat> heartbeats = numbers.entrySet()
        .stream()
        .map(each -> new ServerHeartbeat("s" + each.getKey(), each.getValue()))
        .toList();
    for (ServerHeartbeat unread : living.seen(heartbeats, heartbeat -> isYoung, ns(ms), ns(ms))) {
      living.read(unread.identity(), server(node(unread)));
    }
  }

  private Set<Integer> alive() {
    return living.alive().stream().map(Server::node).collect(Collectors.toSet());
  }

  @Test
  void aServerIsAliveForItsSessionAfterASign() {
    look(0, true, Map.of(1, 1L));
    assertEquals(Set.of(1), alive());
    look(SESSION_MS / 3, true, Map.of(1, 2L));
    look(SESSION_MS * 2 / 3, true, Map.of(1, 2L));
    look(SESSION_MS, true, Map.of(1, 2L));
    assertEquals(Set.of(1), alive());
    look(SESSION_MS * 4 / 3, true, Map.of(1, 2L));
    assertEquals(Set.of(), alive());
    look(SESSION_MS * 5 / 3, true, Map.of(1, 3L));
    assertEquals(Set.of(1), alive());
  }

  @Test
  void aServerWhoseFileIsGoneHasLeft() {
    look(0, true, Map.of(1, 1L, 2, 1L));
    look(1, true, Map.of(2, 1L));
    assertEquals(Set.of(2), alive());
  }

  /** Such a file was left by a server that was killed. */
  @Test
  void aServerWithAnOldSignIsDeadUntilAnotherSignFollows() {
    look(0, false, Map.of(1, 7L));
    assertEquals(Set.of(), alive());
    look(INTERVAL_MS, false, Map.of(1, 8L));
    assertEquals(Set.of(1), alive());
  }

  @Test
  void afterASleepOthersAreAliveUntilTheyAreSilentForTheirSessionAgain() {
    look(0, true, Map.of(1, 1L));
    look(100_000, true, Map.of(1, 1L));
    assertEquals(Set.of(1), alive());
    for (long ms = 102_000; ms <= 100_000 + SESSION_MS; ms += INTERVAL_MS) {
      look(ms, true, Map.of(1, 1L));
    }
    look(100_000 + SESSION_MS, true, Map.of(1, 1L));
    assertEquals(Set.of(), alive());
  }

  @Test
  void aNumberIsTakenOnceItsServerHasSentASecondSign() {
    look(0, true, Map.of(1, 1L));
    assertFalse(living.isTaken(1)); // Perhaps this server itself left the file, before it was started again.
    look(INTERVAL_MS, true, Map.of(1, 2L));
    assertTrue(living.isTaken(1));
    assertFalse(living.isTaken(2));
  }

  @Test
  void aFileOfNoServerIsReadThreeTimes() {
    List<ServerHeartbeat> heartbeat = List.of(new ServerHeartbeat("s1", 1));
    for (int ms = 0; ms < 3; ms++) {
      assertEquals(heartbeat, living.seen(heartbeat, each -> true, ns(ms), ns(ms)));
    }
    assertEquals(List.of(), living.seen(heartbeat, each -> true, ns(4000), ns(4000)));
    assertEquals(List.of(), living.alive());
    assertEquals(List.of("s1"), living.silentFor(3000));
    assertEquals(List.of(), living.silentFor(4000));
  }

  @Test
  void anOldFileIsNotRead() {
    List<ServerHeartbeat> heartbeat = List.of(new ServerHeartbeat("s1", 1));
    assertEquals(List.of(), living.seen(heartbeat, each -> false, 0, 0));
  }

  /** Servers that come, die, sleep and leave at random, and looks that come at random or not at all. */
  @Test
  void randomInterleavingsNameTheLivingAndNoDead() {
    Random random = new Random(Seed.draw());
    int found = 0;
    for (int run = 0; run < Seed.either(200, 5000); run++) {
      found += new Run(random).play();
    }
    assertTrue(found > 1000, "servers died in " + found + " looks alone");
  }

  private static final class Run {
    private static final int SERVERS = 4;

    private final Random random;
    private final Living living = new Living(SESSION_MS);
    private final long[] numbers = new long[SERVERS];
    private final long[] signedAt = new long[SERVERS];
    private final boolean[] beats = new boolean[SERVERS];
    private final boolean[] isThere = new boolean[SERVERS];

    /** When a look came late. */
    private long wokeAt = Long.MIN_VALUE / 2;

    private Run(Random random) {
      this.random = random;
    }

    /** @return how many times a server was rightly found dead */
    private int play() {
      int dead = 0;
      long lastLook = 0;
      long nextLook = 0;
      for (long ms = 0; ms < 120_000; ms += 100) {
        for (int i = 0; i < SERVERS; i++) {
          change(i, ms);
        }
        if (ms >= nextLook) {
          if (ms - lastLook > SESSION_MS / 2) {
            wokeAt = ms;
          }
          lastLook = ms;
          nextLook = ms + (random.nextInt(30) == 0 ? random.nextInt(60_000) : INTERVAL_MS + random.nextInt(400));
          dead += look(ms);
        }
      }
      return dead;
    }

    private void change(int i, long ms) {
      if (random.nextInt(200) == 0) {
        beats[i] = !beats[i]; // It dies or sleeps, or starts or wakes.
      }
      if (beats[i] && (!isThere[i] || ms - signedAt[i] >= INTERVAL_MS)) {
        isThere[i] = true;
        numbers[i]++;
        signedAt[i] = ms;
      }
      if (!beats[i] && isThere[i] && random.nextInt(2000) == 0) {
        isThere[i] = false; // Another server deletes its file.
      }
    }

    private int look(long ms) {
      List<ServerHeartbeat> heartbeats = new ArrayList<>();
      for (int i = 0; i < SERVERS; i++) {
        if (isThere[i]) {
          heartbeats.add(new ServerHeartbeat("s" + i, numbers[i]));
        }
      }
      for (ServerHeartbeat heartbeat : living.seen(heartbeats, added -> ms - signedAt[node(added)] < SESSION_MS, ns(ms), ns(ms))) {
        living.read(heartbeat.identity(), server(node(heartbeat)));
      }
      Set<Integer> alive = new HashSet<>(living.alive().stream().map(Server::node).toList());
      int dead = 0;
      for (int i = 0; i < SERVERS; i++) {
        if (beats[i]) {
          assertTrue(alive.contains(i), "server " + i + " sent a heartbeat " + (ms - signedAt[i]) + " ms ago");
        } else if (!isThere[i] || ms - Math.max(signedAt[i], wokeAt) >= SESSION_MS + INTERVAL_MS + 500) {
          assertFalse(alive.contains(i), "server " + i + " has been silent for " + (ms - signedAt[i]) + " ms");
          dead++;
        }
      }
      return dead;
    }
  }
}
