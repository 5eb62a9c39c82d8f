package io.sparklog.serve.records;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.format.BatchEncoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Codec;
import io.sparklog.format.Layout;
import io.sparklog.kit.Drivers;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.commits.CommitSettings;
import io.sparklog.commits.TopicWriters;
import io.sparklog.serve.security.Listener;
import io.sparklog.serve.security.Rights;
import io.sparklog.serve.topics.ServedTopics;
import io.sparklog.storage.FarStore;
import io.sparklog.upkeep.TopicWork;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ProduceRequestData.PartitionProduceData;
import org.apache.kafka.common.message.ProduceRequestData.TopicProduceData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.message.ProduceResponseData.PartitionProduceResponse;
import org.apache.kafka.common.message.ProduceResponseData;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests that add batches, where the server itself fails. */
@Timeout(120)
final class ProduceHandlerTest extends Drivers {
  private static final short VERSION = 12;
  private static final short VERSION_OF_IDS = 13;

  @BeforeEach
  void create() throws Exception {
    new Driver().commit(Map.of("kafka.view", "none"), 0);
  }

  private static Errors answer(ProduceHandler handler, Map<Integer, ByteBuffer> batches) throws Exception {
    return answer(handler, new TopicProduceData().setName("t"), batches);
  }

  private static Errors answer(ProduceHandler handler, TopicProduceData topic, Map<Integer, ByteBuffer> batches) throws Exception {
    short version = topic.topicId().equals(Uuid.ZERO_UUID) ? VERSION : VERSION_OF_IDS;
    batches.forEach((partition, batch) -> topic.partitionData()
        .add(new PartitionProduceData().setIndex(partition).setRecords(MemoryRecords.readableRecords(batch))));
    ProduceRequestData data = new ProduceRequestData().setAcks((short) -1).setTimeoutMs(60_000);
    data.topicData().add(topic);
    RequestHeader header = new RequestHeader(ApiKeys.PRODUCE, version, "a client", 1);
    RequestContext context = new RequestContext(header, "1", InetAddress.getLoopbackAddress(), KafkaPrincipal.ANONYMOUS,
        new ListenerName("PLAINTEXT"), SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
    ClientRequest asked = new ClientRequest(context, new Listener("PLAINTEXT", Rights.ALL, false, List.of()));
    ProduceResponseData told = handler.answer(asked, new ProduceRequest(data, version)).get(60, TimeUnit.SECONDS).data();
    List<PartitionProduceResponse> answers = told.responses().iterator().next().partitionResponses();
    assertEquals(batches.size(), answers.size());
    assertEquals(1, answers.stream().map(PartitionProduceResponse::errorCode).distinct().count());
    return Errors.forCode(answers.get(0).errorCode());
  }

  /** The threads that check have ended. The topic takes the batches of the next request. */
  @Test
  void batchesThatNoThreadChecksDoNotBlockTheirTopic() throws Exception {
    Driver driver = new Driver();
    ServedTopics topics = new ServedTopics(driver.root, clock());
    Workers ended = new Workers("test", 1);
    try (TopicWriters writers = new TopicWriters(driver.root, CommitSettings.USUAL, topic -> {}, clock(), random);
        Workers work = new Workers("test", 1)) {
      ProduceHandler whole = new ProduceHandler(topics, writers, clock(), work, work);
      assertEquals(Errors.NONE, answer(whole, Map.of(0, batch())));
      ended.close();
      assertEquals(Errors.KAFKA_STORAGE_ERROR,
          answer(new ProduceHandler(topics, writers, clock(), ended, ended), Map.of(0, batch(), 1, batch())));
      assertEquals(Errors.NONE, answer(whole, Map.of(0, batch(), 1, batch())));
    }
  }

  /** Sixteen requests are checked one after another, and other requests go on. */
  @Test
  void batchesThatWaitForTheirCheckHoldNoThreadOfOtherRequests() throws Exception {
    Driver driver = new Driver();
    ServedTopics topics = new ServedTopics(driver.root, clock());
    CountDownLatch released = new CountDownLatch(1);
    try (TopicWriters writers = new TopicWriters(driver.root, CommitSettings.USUAL, topic -> {}, clock(), random);
        Workers work = new Workers("test", 1);
        Workers checks = new Workers("test-checks", 1)) {
      CompletableFuture<Object> held = checks.run(() -> {
        released.await();
        return null;
      });
      ProduceHandler handler = new ProduceHandler(topics, writers, clock(), work, checks);
      List<CompletableFuture<Errors>> answers = new ArrayList<>();
      for (int request = 0; request < 16; request++) {
        answers.add(CompletableFuture.supplyAsync(() -> {
          try {
            return answer(handler, Map.of(0, batch()));
          } catch (Exception e) {
            throw new CompletionException(e);
          }
        }, task -> new Thread(task).start()));
      }
      assertEquals("answered", work.run(() -> "answered").get(60, TimeUnit.SECONDS));
      assertTrue(answers.stream().noneMatch(CompletableFuture::isDone));
      released.countDown();
      held.get(60, TimeUnit.SECONDS);
      for (CompletableFuture<Errors> each : answers) {
        assertEquals(Errors.NONE, each.get(60, TimeUnit.SECONDS));
      }
    }
  }

  /** Another process has changed the topic a moment ago: the state that this one knows may not refuse a batch. */
  @Test
  void theNewestStateAloneRefusesABatch() throws Exception {
    Administration operator = new Administration(new TopicWork(new Driver().log(), clock(), random));
    operator.configure(Map.of("message.timestamp.before.max.ms", "1"));
    Driver driver = new Driver(new FarStore(folder.toString(), 16).store());
    try (TopicWriters writers = new TopicWriters(driver.root, CommitSettings.USUAL, topic -> {}, clock(), random);
        Workers work = new Workers("test", 1)) {
      ProduceHandler handler = new ProduceHandler(new ServedTopics(driver.root, clock()), writers, clock(), work, work);
      assertEquals(Errors.INVALID_TIMESTAMP, answer(handler, Map.of(0, batch())));
      operator.configure(Map.of("message.timestamp.before.max.ms", String.valueOf(Long.MAX_VALUE)));
      assertEquals("1", driver.log().recent().orElseThrow().config().entries().get("message.timestamp.before.max.ms"));
      assertEquals(Errors.NONE, answer(handler, Map.of(0, batch())));
    }
  }

  /** The server does not find the topic at the first batch of a producer, and finds it at the second. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void noBatchIsAddedBeforeABatchWhoseTopicWasNotFound(boolean byId) throws Exception {
    Driver driver = new Driver();
    Uuid id = Uuid.fromString(driver.log().newest().orElseThrow().topicId());
    Path there = folder.resolve("_partlog/t");
    Path away = folder.resolve("away");
    Files.move(there, away);
    ServedTopics topics = new ServedTopics(new Driver().root, clock());
    try (TopicWriters writers = new TopicWriters(driver.root, CommitSettings.USUAL, topic -> {}, clock(), random);
        Workers work = new Workers("test", 1)) {
      ProduceHandler handler = new ProduceHandler(topics, writers, clock(), work, work);
      Supplier<TopicProduceData> topic = () -> byId ? new TopicProduceData().setTopicId(id) : new TopicProduceData().setName("t");
      assertEquals(byId ? Errors.UNKNOWN_TOPIC_ID : Errors.UNKNOWN_TOPIC_OR_PARTITION,
          answer(handler, topic.get(), Map.of(0, batch(7, 0))));
      Files.move(away, there);
      nowMs += 2000;
      topics.newest("t");
      assertEquals(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, answer(handler, topic.get(), Map.of(0, batch(7, 1))));
      assertEquals(Errors.NONE, answer(handler, topic.get(), Map.of(0, batch(7, 0))));
      assertEquals(Errors.NONE, answer(handler, topic.get(), Map.of(0, batch(7, 1))));
    }
  }

  private static ByteBuffer batch() {
    return batch(-1, -1);
  }

  /** One record of a producer. */
  private static ByteBuffer batch(long id, int sequence) {
    BatchEncoder encoder = new BatchEncoder(Codec.NONE, false);
    encoder.begin(1_700_000_000_000L, -1, 0, 1);
    byte[] batch = encoder.close(0);
    ByteBuffer fields = ByteBuffer.wrap(batch);
    fields.putLong(Layout.PRODUCER_ID_AT, id);
    fields.putShort(Layout.PRODUCER_EPOCH_AT, (short) (id < 0 ? -1 : 0));
    fields.putInt(Layout.BASE_SEQUENCE_AT, sequence);
    BatchHeader.setMaxTimestamp(batch, 1_700_000_000_000L); // Makes the CRC right.
    return ByteBuffer.wrap(batch);
  }
}
