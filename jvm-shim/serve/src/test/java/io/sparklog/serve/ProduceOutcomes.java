package io.sparklog.serve;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.format.BatchEncoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Codec;
import io.sparklog.format.Layout;
import io.sparklog.log.Root;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.Supplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.InitProducerIdRequestData;
import org.apache.kafka.common.message.ProduceRequestData.PartitionProduceData;
import org.apache.kafka.common.message.ProduceRequestData.TopicProduceData;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.message.ProduceResponseData.PartitionProduceResponse;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.InitProducerIdResponse;
import org.apache.kafka.common.requests.ProduceResponse;

/** Outcomes of the requests that write. Partition 1 of the topic {@code t} is theirs. */
final class ProduceOutcomes {
  private ProduceOutcomes() {}

  static List<Outcome> all(Root root) {
    Uuid id = Uuid.fromString(root.state("t").topicId());
    return List.of(Outcome.<InitProducerIdResponse>of("an id", ApiKeys.INIT_PRODUCER_ID, producer(null), (answer, version) -> {
      error(Errors.NONE, answer.data().errorCode());
      assertTrue(answer.data().producerId() >= 0);
      assertEquals(0, answer.data().producerEpoch());
    }), Outcome.<InitProducerIdResponse>of("the next epoch", ApiKeys.INIT_PRODUCER_ID,
        producer(null).setProducerId(7).setProducerEpoch((short) 3), (answer, version) -> {
          assertEquals(7, answer.data().producerId());
          assertEquals(4, answer.data().producerEpoch());
        }).from(3),
        Outcome.<InitProducerIdResponse>of("a transaction", ApiKeys.INIT_PRODUCER_ID, producer("x"),
            (answer, version) -> error(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, answer.data().errorCode())),
        byName("a batch", "t", 1, batch(0), Errors.NONE), byId("a batch", id, 1, batch(0), Errors.NONE),
        byName("an unknown topic", "absent", 0, batch(0), Errors.UNKNOWN_TOPIC_OR_PARTITION),
        byName("an illegal name", "a/b", 0, batch(0), Errors.INVALID_TOPIC_EXCEPTION),
        byName("the topic of groups", "__consumer_offsets", 0, batch(0), Errors.TOPIC_AUTHORIZATION_FAILED),
        byId("an unknown topic", new Uuid(1, 2), 0, batch(0), Errors.UNKNOWN_TOPIC_ID),
        byName("an unknown partition", "t", 7, batch(0), Errors.UNKNOWN_TOPIC_OR_PARTITION),
        byName("a control batch", "t", 1, batch(0x20), Errors.INVALID_RECORD), byName("damage", "t", 1, () -> {
          ByteBuffer damaged = batch(0).get();
          return damaged.put(Layout.HEADER_BYTES, (byte) 99);
        }, Errors.CORRUPT_MESSAGE), byName("nothing", "t", 1, () -> ByteBuffer.allocate(0), Errors.CORRUPT_MESSAGE));
  }

  private static Outcome byName(String name, String topic, int partition, Supplier<ByteBuffer> batch, Errors error) {
    return of(name + " by name", new TopicProduceData().setName(topic), partition, batch, error).to(12);
  }

  private static Outcome byId(String name, Uuid topic, int partition, Supplier<ByteBuffer> batch, Errors error) {
    return of(name + " by id", new TopicProduceData().setTopicId(topic), partition, batch, error).from(13);
  }

  private static Outcome of(String name, TopicProduceData topic, int partition, Supplier<ByteBuffer> batch, Errors error) {
    topic.partitionData().add(new PartitionProduceData().setIndex(partition).setRecords(MemoryRecords.readableRecords(batch.get())));
    ProduceRequestData request = new ProduceRequestData().setAcks((short) -1).setTimeoutMs(60_000);
    request.topicData().add(topic);
    return Outcome.<ProduceResponse>of(name, ApiKeys.PRODUCE, request, (answer, version) -> {
      PartitionProduceResponse partitionAnswer = answer.data().responses().iterator().next().partitionResponses().get(0);
      error(error, partitionAnswer.errorCode());
      assertEquals(partition, partitionAnswer.index());
      assertEquals(error == Errors.NONE, partitionAnswer.baseOffset() >= 0);
      assertEquals(-1, partitionAnswer.logAppendTimeMs());
    });
  }

  private static InitProducerIdRequestData producer(String transaction) {
    return new InitProducerIdRequestData().setTransactionalId(transaction).setTransactionTimeoutMs(1000);
  }

  private static Supplier<ByteBuffer> batch(int attributes) {
    return () -> {
      BatchEncoder encoder = new BatchEncoder(Codec.NONE, false);
      encoder.begin(1_700_000_000_000L, -1, 0, 1);
      byte[] batch = encoder.close(0);
      batch[Layout.ATTRIBUTES_AT + 1] |= (byte) attributes;
      BatchHeader.setMaxTimestamp(batch, 1_700_000_000_000L); // Makes the CRC right.
      return ByteBuffer.wrap(batch);
    };
  }

  private static void error(Errors expected, short code) {
    assertEquals(expected, Errors.forCode(code));
  }
}
