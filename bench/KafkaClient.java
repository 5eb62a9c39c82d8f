import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.HeartbeatRequest;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * One process of Kafka's own client for all servers and all rounds, so that each of them meets the same warm code. A line of standard input
 * is a request, and a line of standard output is its answer:
 *
 * <ul>
 * <li>{@code create ADDRESS TOPIC PARTITIONS [KEY=VALUE …]}
 * <li>{@code produce ADDRESS TOPIC LINGER_MS RECORDS BYTES RECORDS_PER_SECOND}; a rate of 0 is as fast as possible. The answer has the
 * seconds, and the milliseconds from the time at which a record is due to its acknowledgement: p50, p99, most
 * <li>{@code fetch ADDRESS TOPIC PARTITIONS RECORDS} reads RECORDS records from the start. The answer has the seconds and the bytes
 * <li>{@code watch ADDRESS TOPIC} begins a consumer of a group, which reads the records of {@code produce} from now on
 * <li>{@code seen RECORDS} waits for RECORDS records of the watch. The answer has the milliseconds from send to poll: p50, p99, most
 * <li>{@code probe ADDRESS TOPIC COUNT EVERY_MS} sends COUNT heartbeats, and as many fetches of the first records, each at its time. The
 * answer has the milliseconds of a heartbeat, and those of a fetch: p50, p99, most
 * <li>{@code load ADDRESS TOPIC PRODUCERS BYTES} begins producers that send requests of about so many bytes, one after another, until
 * {@code rest}, whose answer has the records
 * </ul>
 */
public final class KafkaClient {
  private static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();
  private static final Map<String, KafkaConsumer<byte[], byte[]>> CONSUMERS = new HashMap<>();
  private static final Random RANDOM = new Random(1);

  /** The milliseconds of the records that the watch has seen. This object guards it. */
  private static final List<Double> SEEN = new ArrayList<>();

  private static final List<Thread> LOADS = new ArrayList<>();
  private static final AtomicInteger LOADED = new AtomicInteger();
  private static volatile boolean isLoading;

  public static void main(String[] arguments) throws Exception {
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      String[] words = line.split(" ");
      System.out.println(switch (words[0]) {
        case "create" -> create(words);
        case "produce" -> produce(words);
        case "fetch" -> fetch(words);
        case "watch" -> watch(words);
        case "seen" -> seen(Integer.parseInt(words[1]));
        case "probe" -> probe(words);
        case "load" -> load(words);
        case "rest" -> rest();
        default -> throw new IllegalArgumentException(line);
      });
    }
    System.exit(0);
  }

  private static String create(String[] words) throws Exception {
    Map<String, String> config = new HashMap<>();
    for (int i = 4; i < words.length; i++) {
      config.put(words[i].substring(0, words[i].indexOf('=')), words[i].substring(words[i].indexOf('=') + 1));
    }
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", words[1]))) {
      NewTopic topic = new NewTopic(words[2], Integer.parseInt(words[3]), (short) 1).configs(config);
      admin.createTopics(List.of(topic)).all().get();
    }
    return "created";
  }

  private static String produce(String[] words) throws InterruptedException {
    String topic = words[2];
    int count = Integer.parseInt(words[4]);
    int rate = Integer.parseInt(words[6]);
    KafkaProducer<byte[], byte[]> producer = PRODUCERS.computeIfAbsent(words[1] + " " + words[3],
        each -> new KafkaProducer<>(Map.of("bootstrap.servers", words[1], "linger.ms", words[3], "batch.size", 128 << 10, "acks", "all",
            "delivery.timeout.ms", 120_000), new ByteArraySerializer(), new ByteArraySerializer()));
    byte[] value = new byte[Integer.parseInt(words[5])];
    RANDOM.nextBytes(value);
    double[] ms = new double[count];
    AtomicInteger failed = new AtomicInteger();
    long begun = System.nanoTime();
    for (int i = 0; i < count; i++) {
      long due = rate == 0 ? System.nanoTime() : begun + i * 1_000_000_000L / rate;
      for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
        LockSupport.parkNanos(left);
      }
      byte[] bytes = value.clone();
      ByteBuffer.wrap(bytes).putLong(due);
      int number = i;
      producer.send(new ProducerRecord<>(topic, bytes), (told, failure) -> {
        ms[number] = (System.nanoTime() - due) / 1e6;
        if (failure != null && failed.incrementAndGet() == 1) {
          System.err.println(failure);
        }
      });
    }
    producer.flush();
    double seconds = (System.nanoTime() - begun) / 1e9;
    if (failed.get() > 0) {
      throw new IllegalStateException(failed + " records were not acknowledged");
    }
    return seconds + " " + figures(ms);
  }

  private static String figures(double[] ms) {
    Arrays.sort(ms);
    return ms[ms.length / 2] + " " + ms[ms.length * 99 / 100] + " " + ms[ms.length - 1];
  }

  private static String fetch(String[] words) {
    int count = Integer.parseInt(words[4]);
    KafkaConsumer<byte[], byte[]> consumer = CONSUMERS.computeIfAbsent(words[1] + " " + words[2],
        each -> new KafkaConsumer<>(
            Map.of("bootstrap.servers", words[1], "enable.auto.commit", false, "max.poll.records", 5_000, "receive.buffer.bytes", 2 << 20),
            new ByteArrayDeserializer(), new ByteArrayDeserializer()));
    List<TopicPartition> partitions = IntStream.range(0, Integer.parseInt(words[3]))
        .mapToObj(i -> new TopicPartition(words[2], i))
        .toList();
    consumer.assign(partitions);
    consumer.seekToBeginning(partitions);
    partitions.forEach(consumer::position); // The search for the first offset does not count.
    long begun = System.nanoTime();
    long bytes = 0;
    for (int found = 0; found < count;) {
      var records = consumer.poll(Duration.ofSeconds(10));
      if (records.isEmpty()) {
        throw new IllegalStateException(found + " records of " + count);
      }
      found += records.count();
      for (var record : records) {
        bytes += record.serializedValueSize();
      }
    }
    String answer = (System.nanoTime() - begun) / 1e9 + " " + bytes;
    consumer.unsubscribe(); // Otherwise it would ask on, beside the next side.
    return answer;
  }

  private static String watch(String[] words) throws InterruptedException {
    KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
        Map.of("bootstrap.servers", words[1], "group.id", "bench", "auto.offset.reset", "earliest"), new ByteArrayDeserializer(),
        new ByteArrayDeserializer());
    consumer.subscribe(List.of(words[2]));
    Thread thread = new Thread(() -> {
      while (true) {
        consumer.poll(Duration.ofSeconds(1)).forEach(record -> {
          double ms = (System.nanoTime() - ByteBuffer.wrap(record.value()).getLong()) / 1e6;
          synchronized (SEEN) {
            SEEN.add(ms);
            SEEN.notifyAll();
          }
        });
      }
    });
    thread.setDaemon(true);
    thread.start();
    return "watching";
  }

  private static String seen(int count) throws InterruptedException {
    synchronized (SEEN) {
      long end = System.nanoTime() + 60_000_000_000L;
      while (SEEN.size() < count) {
        SEEN.wait(1000);
        if (System.nanoTime() > end) {
          throw new IllegalStateException(SEEN.size() + " records of " + count);
        }
      }
      double[] ms = SEEN.stream().mapToDouble(each -> each).toArray();
      SEEN.clear();
      return ms.length + " " + figures(ms);
    }
  }

  private static String probe(String[] words) throws Exception {
    String[] address = words[1].split(":");
    int count = Integer.parseInt(words[3]);
    long every = Integer.parseInt(words[4]) * 1_000_000L;
    double[][] ms = new double[2][count];
    var beat = new HeartbeatRequest.Builder(new HeartbeatRequestData().setGroupId("probe").setMemberId("probe")).build((short) 4);
    var partition = new FetchRequestData.FetchPartition().setPartition(0).setFetchOffset(0).setPartitionMaxBytes(1 << 10);
    var fetch = new FetchRequest(new FetchRequestData().setReplicaId(-1)
        .setMaxBytes(1 << 10)
        .setTopics(List.of(new FetchRequestData.FetchTopic().setTopic(words[2]).setPartitions(List.of(partition)))), (short) 12);
    try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]))) {
      socket.setTcpNoDelay(true);
      var out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
      var in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
      long begun = System.nanoTime();
      for (int i = 0; i < 2 * count; i++) {
        long due = begun + i * every;
        for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
          LockSupport.parkNanos(left);
        }
        AbstractRequest request = i % 2 == 0 ? beat : fetch;
        ByteBuffer bytes = request.serializeWithHeader(new RequestHeader(request.apiKey(), request.version(), "probe", i));
        long sent = System.nanoTime();
        out.writeInt(bytes.remaining());
        out.write(bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
        out.flush();
        in.readNBytes(in.readInt());
        ms[i % 2][i / 2] = (System.nanoTime() - sent) / 1e6;
      }
    }
    return figures(ms[0]) + " " + figures(ms[1]);
  }

  private static String load(String[] words) {
    byte[] value = new byte[1_000];
    RANDOM.nextBytes(value);
    int bytes = Integer.parseInt(words[4]);
    LOADED.set(0);
    isLoading = true;
    for (int i = 0; i < Integer.parseInt(words[3]); i++) {
      Thread thread = new Thread(() -> {
        Map<String, Object> config = Map.of("bootstrap.servers", words[1], "linger.ms", 1_000, "batch.size", bytes, "acks", "all",
            "max.request.size", 2 * bytes, "buffer.memory", 4L * bytes, "max.in.flight.requests.per.connection", 1);
        var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        while (isLoading) {
          producer.send(new ProducerRecord<>(words[2], 0, null, value), (told, failure) -> LOADED.addAndGet(failure == null ? 1 : 0));
        }
        producer.close();
      });
      LOADS.add(thread);
      thread.start();
    }
    return "loading";
  }

  private static String rest() throws InterruptedException {
    isLoading = false;
    for (Thread each : LOADS) {
      each.join();
    }
    LOADS.clear();
    return String.valueOf(LOADED.get());
  }
}
