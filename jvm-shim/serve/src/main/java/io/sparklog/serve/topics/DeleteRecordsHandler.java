package io.sparklog.serve.topics;

import io.sparklog.admin.Changed;
import io.sparklog.log.State;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.protocol.Workers;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.DeleteRecordsRequestData.DeleteRecordsPartition;
import org.apache.kafka.common.message.DeleteRecordsRequestData.DeleteRecordsTopic;
import org.apache.kafka.common.message.DeleteRecordsResponseData.DeleteRecordsPartitionResult;
import org.apache.kafka.common.message.DeleteRecordsResponseData.DeleteRecordsTopicResult;
import org.apache.kafka.common.message.DeleteRecordsResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.DeleteRecordsRequest;
import org.apache.kafka.common.requests.DeleteRecordsResponse;

/** Raises log start offsets, of all partitions of a topic in one commit. */
public record DeleteRecordsHandler(Operators operators, Workers work) implements Handler<DeleteRecordsRequest> {
  @Override
  public CompletableFuture<DeleteRecordsResponse> answer(ClientRequest asked, DeleteRecordsRequest request) {
    return work.run(() -> {
      DeleteRecordsResponseData data = new DeleteRecordsResponseData();
      request.data().topics().forEach(topic -> data.topics().add(deleted(asked, topic)));
      return new DeleteRecordsResponse(data);
    });
  }

  private DeleteRecordsTopicResult deleted(ClientRequest asked, DeleteRecordsTopic topic) {
    DeleteRecordsTopicResult result = new DeleteRecordsTopicResult().setName(topic.name());
    TreeMap<Integer, Long> offsets = new TreeMap<>();
    Errors failed = Errors.NONE;
    State after = null;
    try {
      State state = operators.changeable(asked, topic.name());
      for (DeleteRecordsPartition partition : topic.partitions()) {
        if (error(state, partition) == Errors.NONE) {
          offsets.put(partition.partitionIndex(), partition.offset());
        }
      }
      Changed changed = operators.of(topic.name()).deleteRecordsOf(state.topicId(), offsets);
      after = changed.is();
    } catch (RuntimeException e) {
      failed = KafkaErrors.of(e);
    }
    for (DeleteRecordsPartition partition : topic.partitions()) {
      Errors error = after == null ? failed : error(after, partition);
      int number = partition.partitionIndex();
      result.partitions()
          .add(new DeleteRecordsPartitionResult().setPartitionIndex(number)
              .setErrorCode(error.code())
              .setLowWatermark(error == Errors.NONE ? after.start(number) : DeleteRecordsResponse.INVALID_LOW_WATERMARK));
    }
    return result;
  }

  private static Errors error(State state, DeleteRecordsPartition partition) {
    int number = partition.partitionIndex();
    if (number < 0 || number >= state.partitions()) {
      return Errors.UNKNOWN_TOPIC_OR_PARTITION;
    }
    return partition.offset() < -1 || partition.offset() > state.end(number) ? Errors.OFFSET_OUT_OF_RANGE : Errors.NONE;
  }
}
