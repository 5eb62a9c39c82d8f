package io.sparklog.serve;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.TopicConfig;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchRequestData.FetchPartition;
import org.apache.kafka.common.message.FetchRequestData.FetchTopic;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData.PartitionData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Clients that read some hundred partitions. The server has room for one session. */
final class FetchSessionsOverConnectionsTest {
  private static final int PARTITIONS = 300;
  private static final short VERSION = 17;
  private static final long WAIT_MS = 120_000;

  @TempDir
  Path folder;

  private WrittenTopic topic;
  private RootServer server;

  @BeforeEach
  void open() throws IOException {
    topic = new WrittenTopic(folder.resolve("root"), "t").with(TopicConfig.PARTITIONS, Integer.toString(PARTITIONS))
        .with(TopicConfig.KAFKA_VIEW, "none");
    for (int partition = 0; partition < PARTITIONS; partition++) {
      topic.segment(partition, 1 + partition % 3);
    }
    topic.commit();
    server = new RootServer(
        ServeConfig.of(folder.resolve("root").toString(), "--listen", "127.0.0.1:0", "max.incremental.fetch.session.cache.slots=1"));
  }

  @AfterEach
  void close() {
    server.close();
  }

  private FetchResponse ask(RawClient client, int session, int epoch, int partitions, long offset) throws IOException {
    FetchTopic wanted = new FetchTopic().setTopicId(Uuid.fromString(topic.root.state("t").topicId()));
    for (int partition = 0; partition < partitions; partition++) {
      wanted.partitions().add(new FetchPartition().setPartition(partition).setFetchOffset(offset).setPartitionMaxBytes(1 << 20));
    }
    FetchRequestData request = new FetchRequestData().setMaxBytes(1 << 20).setMinBytes(1).setSessionId(session).setSessionEpoch(epoch);
    return client.ask(ApiKeys.FETCH, VERSION, partitions == 0 ? request : request.setTopics(List.of(wanted)));
  }

  private static List<PartitionData> partitions(FetchResponse answer) {
    assertEquals(Errors.NONE, answer.error());
    return answer.data().responses().stream().flatMap(each -> each.partitions().stream()).toList();
  }

  @Test
  void laterAnswersHaveThePartitionsWithSomethingNew() throws IOException {
    try (RawClient client = new RawClient(server.address()); RawClient other = new RawClient(server.address())) {
      FetchResponse first = ask(client, 0, FetchMetadata.INITIAL_EPOCH, PARTITIONS, 1);
      int session = first.sessionId();
      assertTrue(session > 0);
      assertEquals(PARTITIONS, partitions(first).size());
      assertEquals(0, ask(other, 0, FetchMetadata.INITIAL_EPOCH, PARTITIONS, 1).sessionId(), "there is no room for another session");
      FetchResponse next = ask(client, session, 1, 0, 0);
      assertEquals(session, next.sessionId());
      assertEquals(PARTITIONS - PARTITIONS / 3, partitions(next).size(), "partitions with records that were not taken");
      assertEquals(List.of(),
          partitions(ask(client, session, 2, PARTITIONS, 3)).stream()
              .filter(each -> each.errorCode() == Errors.NONE.code())
              .filter(each -> each.partitionIndex() % 3 == 2)
              .toList(),
          "nothing is new at the end offset");
    }
  }

  @Test
  void twoClientsReadAllPartitionsAndWhatComesLater() throws IOException {
    List<TopicPartition> partitions = IntStream.range(0, PARTITIONS).mapToObj(number -> new TopicPartition("t", number)).toList();
    Map<String, Object> settings = Map.of("bootstrap.servers", server.address().toString(), "enable.auto.commit", false);
    try (var one = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        var other = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      for (KafkaConsumer<byte[], byte[]> each : List.of(one, other)) {
        each.assign(partitions);
        each.seekToBeginning(partitions);
        assertEquals(PARTITIONS * 2, read(each, PARTITIONS * 2).size());
      }
      topic.segment(17, 5).segment(299, 2).commit();
      for (KafkaConsumer<byte[], byte[]> each : List.of(one, other)) {
        assertEquals(Map.of("17-3", 1, "17-4", 1, "17-5", 1, "17-6", 1, "17-7", 1, "299-3", 1, "299-4", 1), read(each, 7));
      }
    }
  }

  /** How often each record was read, by partition and offset. */
  private static Map<String, Integer> read(KafkaConsumer<byte[], byte[]> consumer, int count) {
    Map<String, Integer> found = new HashMap<>();
    for (long end = System.nanoTime() + WAIT_MS * 1_000_000; found.size() < count && System.nanoTime() < end;) {
      consumer.poll(Duration.ofMillis(500)).forEach(each -> found.merge(each.partition() + "-" + each.offset(), 1, Integer::sum));
    }
    assertEquals(List.of(), found.entrySet().stream().filter(each -> each.getValue() > 1).toList(), "records that were read twice");
    return found;
  }
}
