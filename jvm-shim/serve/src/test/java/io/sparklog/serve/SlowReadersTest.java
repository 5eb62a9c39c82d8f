package io.sparklog.serve;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.WrittenTopic;
import io.sparklog.serve.members.Address;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.message.FetchRequestData.FetchPartition;
import org.apache.kafka.common.message.FetchRequestData.FetchTopic;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Two thousand connections, most of them slow or hostile: the memory of the server stays in its bounds, and the others are served. */
@Tag("slow")
final class SlowReadersTest {
  private static final int CONNECTIONS = 2000;
  private static final int NORMAL = 40;
  private static final int FETCHING = 700;
  private static final int ASKING = 300;
  private static final int ROUNDS = 5;

  private static final long MIB = 1 << 20;
  /** As `sparklog serve` has it. */
  private static final long HEAP = 512 * MIB;
  private static final long REQUESTS = 64 * MIB;
  /** The length of an incomplete frame. All of these frames take most of {@link #REQUESTS}. */
  private static final int HALF_BYTES = 60_000;

  /** Outside the heap: answers that clients have not taken, and the buffers of files and sockets, of 1 MiB a thread. */
  private static final long DIRECT = HEAP / 8 + 64 * MIB;
  /** The last part is the virtual machine itself, with its code, classes and threads. */
  private static final long RSS = HEAP + DIRECT + 250 * MIB;

  private static final int PARTITIONS = 1000;

  @TempDir
  Path folder;

  /** The server in its process: {@link Serve}, and for each line on its stdin a line with its memory. */
  static final class Served {
    private Served() {}

    public static void main(String[] arguments) throws Exception {
      Thread asked = new Thread(Served::answer);
      asked.setDaemon(true);
      asked.start();
      Serve.main(arguments);
    }

    private static void answer() {
      try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
        while (in.readLine() != null) {
          System.gc();
          long heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
          long direct = ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)
              .stream()
              .filter(pool -> pool.getName().equals("direct"))
              .mapToLong(BufferPoolMXBean::getMemoryUsed)
              .sum();
          System.out.println("memory " + heap + " " + direct);
        }
      } catch (IOException ended) {
        return;
      }
      System.exit(1); // The test has ended, however it did.
    }
  }

  private Process process;
  private BufferedReader out;
  private Address address;
  private URI metrics;

  /** Bytes that are used. @param rssMost the most that the process ever had */
  private record Memory(long heap, long direct, long rss, long rssMost) {
    @Override
    public String toString() {
      return "heap " + heap / MIB + " MiB, direct memory " + direct / MIB + " MiB, RSS " + rss / MIB + " MiB, most RSS " + rssMost / MIB
          + " MiB";
    }
  }

  private void serve() throws IOException {
    List<String> command = List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx" + HEAP,
        "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"), Served.class.getName(), folder.resolve("root").toString(),
        "--listen", "127.0.0.1:0", "metrics.address=0", "queued.max.request.bytes=" + REQUESTS);
    process = new ProcessBuilder(command).redirectError(folder.resolve("stderr").toFile()).start();
    out = process.inputReader();
    Matcher listens = line("Serving .* at (.*):([0-9]+)");
    address = new Address(listens.group(1), Integer.parseInt(listens.group(2)));
    metrics = URI.create(line("Metrics for Prometheus are at (.*)").group(1));
  }

  private Matcher line(String pattern) throws IOException {
    for (String line; (line = out.readLine()) != null;) {
      Matcher matcher = Pattern.compile(pattern).matcher(line);
      if (matcher.matches()) {
        return matcher;
      }
    }
    throw new IOException("the server has ended: " + Files.readString(folder.resolve("stderr")));
  }

  private Memory memory(String when) throws IOException {
    process.outputWriter().append("\n").flush();
    Matcher used = line("memory ([0-9]+) ([0-9]+)");
    String status = Files.readString(Path.of("/proc/" + process.pid() + "/status"));
    Memory memory = new Memory(Long.parseLong(used.group(1)), Long.parseLong(used.group(2)), kibibytes(status, "VmRSS") << 10,
        kibibytes(status, "VmHWM") << 10);
    System.out.println(when + ": " + memory + "; " + number("partlog_server_connections") + " connections, "
        + number("partlog_server_request_memory_bytes") + " bytes of requests, " + number("partlog_server_requests_waiting")
        + " requests wait for memory");
    return memory;
  }

  private static long kibibytes(String status, String key) {
    Matcher found = Pattern.compile(key + ":\\s+([0-9]+) kB").matcher(status);
    assertTrue(found.find(), status);
    return Long.parseLong(found.group(1));
  }

  private long number(String metric) throws IOException {
    try {
      String page = HttpClient.newHttpClient().send(HttpRequest.newBuilder(metrics).build(), HttpResponse.BodyHandlers.ofString()).body();
      return page.lines()
          .filter(line -> line.startsWith(metric + " "))
          .mapToLong(line -> (long) Double.parseDouble(line.split(" ")[1]))
          .sum();
    } catch (InterruptedException e) {
      throw new IOException(e);
    }
  }

  private static FetchRequestData fetch(int partition, int bytes) {
    FetchPartition all = new FetchPartition().setPartition(partition).setFetchOffset(0).setPartitionMaxBytes(bytes);
    return new FetchRequestData().setMaxBytes(bytes)
        .setMaxWaitMs(0)
        .setTopics(List.of(new FetchTopic().setTopic("t").setPartitions(List.of(all))));
  }

  private static byte[] frame(ApiKeys api, int version, org.apache.kafka.common.protocol.ApiMessage message) {
    byte[] frame = RawClient.frame(new RequestHeader(api, (short) version, "raw", 7), message);
    return ByteBuffer.allocate(Integer.BYTES + frame.length).putInt(frame.length).put(frame).array();
  }

  private static byte[] many(byte[] frame, int bytes) {
    ByteBuffer many = ByteBuffer.allocate(bytes / frame.length * frame.length);
    while (many.hasRemaining()) {
      many.put(frame);
    }
    return many.array();
  }

  /** Asks in rounds, as a client that takes its answers does. @return the answers */
  private static int ask(List<RawClient> clients) throws IOException {
    int answers = 0;
    for (int round = 0; round < ROUNDS; round++) {
      for (RawClient client : clients) {
        client.ask(ApiKeys.API_VERSIONS, 3, new ApiVersionsRequestData());
        MetadataResponse topics = client.ask(ApiKeys.METADATA, 12, new MetadataRequestData().setTopics(null));
        assertTrue(topics.topicMetadata().stream().anyMatch(found -> found.partitionMetadata().size() == PARTITIONS), () -> "" + topics);
        FetchResponse records = client.ask(ApiKeys.FETCH, 12, fetch(2, 1000));
        assertTrue(FetchResponse.recordsSize(records.data().responses().get(0).partitions().get(0)) > 0);
        answers += 3;
      }
    }
    return answers;
  }

  @Test
  void theMemoryStaysInItsBoundsAndOthersAreServed() throws Exception {
    WrittenTopic topic = new WrittenTopic(folder.resolve("root"), "t");
    topic.config.put("partitions", Integer.toString(PARTITIONS));
    topic.padding = offset -> 10_000;
    topic.segment(0, 4000);
    for (int i = 0; i < 200; i++) {
      topic.segment(1, 1); // A short part of an answer is a copy.
    }
    topic.segment(2, 3).commit();
    try {
      serve();
      Memory before = memory("before");
      for (int round = 0; round < 2; round++) { // The second round must find the memory of the first.
        ask();
        for (int look = 0; number("partlog_server_connections") > 0; look++) {
          assertTrue(look < 1000, "connections are left");
          Thread.sleep(100);
        }
        Memory after = memory("after");
        assertEquals(0, number("partlog_server_request_memory_bytes") + number("partlog_server_answer_memory_bytes"));
        assertTrue(after.heap < before.heap + 32 * MIB, before + " became " + after);
      }
      String log = Files.readString(folder.resolve("stderr"));
      assertFalse(log.contains("Error") || log.contains("LEAK"), log);
    } catch (Exception | AssertionError e) {
      throw new AssertionError("the server wrote: " + Files.readString(folder.resolve("stderr")), e);
    } finally {
      if (process != null) {
        process.destroyForcibly().waitFor();
      }
    }
  }

  private void ask() throws Exception {
    byte[] large = frame(ApiKeys.FETCH, 12, fetch(0, 50_000_000));
    byte[] copied = frame(ApiKeys.FETCH, 12, fetch(1, 50_000_000));
    byte[] names = many(frame(ApiKeys.METADATA, 12, new MetadataRequestData().setTopics(null)), 60_000);
    byte[] half = ByteBuffer.allocate(HALF_BYTES / 2).putInt(HALF_BYTES).array();
    List<RawClient> clients = new ArrayList<>();
    ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      connect(clients);
      for (int i = NORMAL; i < CONNECTIONS; i++) {
        clients.get(i).sendBytes(i < NORMAL + FETCHING ? i % 2 == 0 ? large : copied : i < NORMAL + FETCHING + ASKING ? names : half);
      }
      List<Future<Integer>> asking = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        List<RawClient> some = clients.subList(i * NORMAL / 4, (i + 1) * NORMAL / 4);
        asking.add(threads.submit(() -> ask(some)));
      }
      int answers = 0;
      for (Future<Integer> each : asking) {
        answers += each.get(10, TimeUnit.MINUTES);
      }
      assertEquals(NORMAL * ROUNDS * 3, answers);
      Memory during = memory("with " + CONNECTIONS + " connections, after " + answers + " answers");
      assertTrue(during.direct < DIRECT, during + ", and the bound is " + DIRECT / MIB + " MiB");
      assertTrue(during.rssMost < RSS, during + ", and the bound is " + RSS / MIB + " MiB");
    } finally {
      threads.shutdownNow();
      for (RawClient client : clients) {
        client.close();
      }
    }
  }

  private void connect(List<RawClient> clients) throws IOException {
    try {
      while (clients.size() < CONNECTIONS) {
        clients.add(new RawClient(address));
      }
    } catch (IOException e) {
      throw new IOException("After " + clients.size() + " connections. A limit of open files below some " + 2 * CONNECTIONS
          + " is too small: run `ulimit -n 20000`.", e);
    }
  }
}
