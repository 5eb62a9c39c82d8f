package io.sparklog.serve;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import io.sparklog.kit.WrittenTopic;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Bytes that no client sends, and clients that take no answers: they end their own connections alone. */
final class HostileTest {
  private static final int MUTANTS = 3000;
  private static final int BUDGET = 1_000_000;
  private static final int LONGEST = BUDGET - BUDGET / 8;

  @TempDir
  static Path folder;

  private static WrittenTopic topic;
  private static RootServer server;

  @BeforeAll
  static void open() throws IOException {
    topic = new WrittenTopic(folder.resolve("root"), "t").segment(0, 3, 4).commit();
    server = new RootServer(ServeConfig.of(folder.resolve("root").toString(), "--listen", "127.0.0.1:0", "socket.request.max.bytes=1000000",
        "queued.max.request.bytes=1000000"));
  }

  @AfterAll
  static void close() {
    server.close();
  }

  /** A client that behaves gets an answer, to a frame that needs the whole budget of long frames. */
  private static void assertServes() throws IOException {
    try (RawClient client = new RawClient(server.address())) {
      byte[] padded = new byte[LONGEST];
      client.send(padded); // An unknown version of Produce: it ends its connection.
      assertTrue(client.isEnded());
    }
    try (RawClient client = new RawClient(server.address())) {
      MetadataResponse answer = client.ask(ApiKeys.METADATA, 12, new MetadataRequestData().setTopics(null));
      assertEquals(List.of("t"), answer.data().topics().stream().map(each -> each.name()).filter("t"::equals).toList());
    }
  }

  @Test
  void mutatedRequestsEndNoOtherConnection() throws IOException {
    Random random = new Random(Seed.draw());
    List<byte[]> requests = requests();
    try (RawClient other = new RawClient(server.address())) {
      for (int i = 0; i < MUTANTS; i++) {
        try (RawClient client = new RawClient(server.address())) {
          client.send(mutated(requests.get(random.nextInt(requests.size())), random));
        }
        if (i % 100 == 0) {
          other.ask(ApiKeys.API_VERSIONS, 0, new ApiVersionsRequestData());
        }
      }
    }
    assertServes();
  }

  /** Each outcome in each version. */
  private static List<byte[]> requests() {
    List<byte[]> requests = new ArrayList<>();
    for (Outcome outcome : EveryVersionTest.outcomes(topic.root)) {
      for (int version = outcome.first(); version <= outcome.last(); version++) {
        requests.add(RawClient.frame(new RequestHeader(outcome.api(), (short) version, "raw", 7), outcome.request()));
      }
    }
    return requests;
  }

  private static byte[] mutated(byte[] request, Random random) {
    byte[] bytes = random.nextInt(4) == 0 ? java.util.Arrays.copyOf(request, random.nextInt(request.length + 50)) : request.clone();
    for (int n = random.nextInt(5); n > 0 && bytes.length > 0; n--) {
      int at = random.nextInt(bytes.length);
      switch (random.nextInt(4)) {
        case 0 -> bytes[at] = (byte) random.nextInt();
        case 1 -> bytes[at] ^= 1 << random.nextInt(8);
        case 2 -> bytes[at] = -1;
        default -> bytes[at] = Byte.MAX_VALUE;
      }
    }
    return bytes;
  }

  @Test
  void randomBytesEndNoOtherConnection() throws IOException {
    Random random = new Random(Seed.draw());
    for (int i = 0; i < 500; i++) {
      byte[] bytes = new byte[random.nextInt(2000)];
      random.nextBytes(bytes);
      try (RawClient client = new RawClient(server.address())) {
        client.sendBytes(bytes);
      } catch (java.net.SocketException ended) {
        // The server was faster.
      }
    }
    assertServes();
  }

  @Test
  void anotherProtocolIsEnded() throws IOException {
    for (String text : List.of("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\u0016\u0003\u0001\u0002\u0000", "SSH-2.0-OpenSSH_9.6\r\n")) {
      try (RawClient client = new RawClient(server.address())) {
        client.sendBytes(text.getBytes(StandardCharsets.ISO_8859_1));
        assertTrue(client.isEnded(), text);
      }
    }
    assertServes();
  }

  /** Each asks again and again and reads nothing. Answers are some 40 times as long as requests. */
  @Test
  void aClientThatTakesNoAnswersIsNotRead() throws IOException, InterruptedException {
    List<RawClient> slow = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      RawClient client = new RawClient(server.address());
      slow.add(client);
      client.sendUntilFull(RawClient.frame(new RequestHeader(ApiKeys.API_VERSIONS, (short) 0, "raw", 7), new ApiVersionsRequestData()));
    }
    assertServes(); // The last frame of each slow client, which may be incomplete, is short, and has memory of the reserve.
    for (RawClient client : slow) {
      client.close();
    }
    assertServes();
  }

  @Test
  void twoThousandConnectionsAreServed() throws IOException {
    List<RawClient> clients = new ArrayList<>();
    try {
      for (int i = 0; i < 2000; i++) {
        clients.add(new RawClient(server.address()));
      }
      for (RawClient client : clients) {
        client.send(ApiKeys.API_VERSIONS, (short) 0, new ApiVersionsRequestData());
      }
      for (RawClient client : clients) {
        client.receive(new RequestHeader(ApiKeys.API_VERSIONS, (short) 0, "raw", 0));
      }
      assertServes();
    } finally {
      for (RawClient client : clients) {
        client.close();
      }
    }
  }
}
