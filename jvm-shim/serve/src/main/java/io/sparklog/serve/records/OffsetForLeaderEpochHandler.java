package io.sparklog.serve.records;

import io.sparklog.log.State;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.serve.topics.ServedTopics;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderPartition;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderTopic;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.OffsetForLeaderTopicResult;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochRequest;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochResponse;

/** Tells that no record was truncated: the only leader epoch is 0, and it ends at the end offset. */
public record OffsetForLeaderEpochHandler(ServedTopics topics, Workers work) implements Handler<OffsetsForLeaderEpochRequest> {
  @Override
  public CompletableFuture<OffsetsForLeaderEpochResponse> answer(ClientRequest asked, OffsetsForLeaderEpochRequest request) {
    return work.run(() -> {
      OffsetForLeaderEpochResponseData data = new OffsetForLeaderEpochResponseData();
      for (OffsetForLeaderTopic topic : request.data().topics()) {
        OffsetForLeaderTopicResult told = new OffsetForLeaderTopicResult().setTopic(topic.topic());
        topic.partitions().forEach(partition -> told.partitions().add(partition(asked, topic.topic(), partition)));
        data.topics().add(told);
      }
      return new OffsetsForLeaderEpochResponse(data);
    });
  }

  private EpochEndOffset partition(ClientRequest asked, String topic, OffsetForLeaderPartition partition) {
    int number = partition.partition();
    EpochEndOffset told = new EpochEndOffset().setPartition(number);
    if (!asked.rights().mayRead(topic)) {
      return told.setErrorCode(Errors.TOPIC_AUTHORIZATION_FAILED.code());
    }
    try {
      Optional<State> state = topics.newest(topic).filter(found -> number >= 0 && number < found.partitions());
      if (state.isEmpty()) {
        return told.setErrorCode(Errors.UNKNOWN_TOPIC_OR_PARTITION.code());
      }
      if (partition.currentLeaderEpoch() > 0) {
        return told.setErrorCode(Errors.UNKNOWN_LEADER_EPOCH.code());
      }
      return partition.leaderEpoch() == 0 ? told.setLeaderEpoch(0).setEndOffset(state.get().end(number)) : told;
    } catch (RuntimeException e) {
      return told.setErrorCode(KafkaErrors.of(e).code());
    }
  }
}
