package io.sparklog.door.api;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.sparklog.door.cluster.ServedTopics;
import io.sparklog.door.produce.Terms;
import io.sparklog.door.produce.TopicWriters;
import io.sparklog.door.security.Listener;
import io.sparklog.door.security.Rights;
import io.sparklog.format.BatchEncoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Codec;
import io.sparklog.kit.Drivers;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.message.ProduceRequestData.PartitionProduceData;
import org.apache.kafka.common.message.ProduceRequestData.TopicProduceData;
import org.apache.kafka.common.message.ProduceResponseData;
import org.apache.kafka.common.message.ProduceResponseData.PartitionProduceResponse;
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

/** Requests that add batches, where the server itself fails. */
@Timeout(120)
final class ProduceHandlerTest extends Drivers {
  private static final short VERSION = 12;

  @BeforeEach
  void create() throws Exception {
    new Driver().commit(Map.of("kafka.view", "none"), 0);
  }

  private static Errors answer(ProduceHandler handler, Map<Integer, ByteBuffer> batches) throws Exception {
    TopicProduceData topic = new TopicProduceData().setName("t");
    batches.forEach((partition, batch) -> topic.partitionData()
        .add(new PartitionProduceData().setIndex(partition).setRecords(MemoryRecords.readableRecords(batch))));
    ProduceRequestData data = new ProduceRequestData().setAcks((short) -1).setTimeoutMs(60_000);
    data.topicData().add(topic);
    RequestHeader header = new RequestHeader(ApiKeys.PRODUCE, VERSION, "a client", 1);
    RequestContext context = new RequestContext(header, "1", InetAddress.getLoopbackAddress(), KafkaPrincipal.ANONYMOUS,
        new ListenerName("PLAINTEXT"), SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
    Asked asked = new Asked(context, new Listener("PLAINTEXT", Rights.ALL, false, List.of()));
    ProduceResponseData told = handler.answer(asked, new ProduceRequest(data, VERSION)).get(60, TimeUnit.SECONDS);
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
    Work ended = new Work(1);
    try (TopicWriters writers = new TopicWriters(driver.root, Terms.USUAL, topic -> {}, clock(), random); Work work = new Work(1)) {
      ProduceHandler whole = new ProduceHandler(topics, writers, clock(), work);
      assertEquals(Errors.NONE, answer(whole, Map.of(0, batch())));
      ended.close();
      assertEquals(Errors.KAFKA_STORAGE_ERROR, answer(new ProduceHandler(topics, writers, clock(), ended), Map.of(0, batch(), 1, batch())));
      assertEquals(Errors.NONE, answer(whole, Map.of(0, batch(), 1, batch())));
    }
  }

  private static ByteBuffer batch() {
    BatchEncoder encoder = new BatchEncoder(Codec.NONE, false);
    encoder.begin(1_700_000_000_000L, -1, 0, 1);
    byte[] batch = encoder.close(0);
    BatchHeader.setMaxTimestamp(batch, 1_700_000_000_000L); // Makes the CRC right.
    return ByteBuffer.wrap(batch);
  }
}
