package io.sparklog.serve.records;

import io.sparklog.log.State;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.serve.records.fetch.OffsetLookup;
import io.sparklog.serve.topics.ServedTopics;
import java.io.IOException;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsTopic;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsTopicResponse;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;

/** Tells the first, the next, and by time any offset of partitions. */
public record ListOffsetsHandler(ServedTopics topics, OffsetLookup offsets, Workers work) implements Handler<ListOffsetsRequest> {
  /** The first version that tells leader epochs. */
  private static final short WITH_EPOCHS = 4;

  @Override
  public CompletableFuture<ListOffsetsResponse> answer(ClientRequest asked, ListOffsetsRequest request) {
    return work.run(() -> {
      ListOffsetsResponseData data = new ListOffsetsResponseData();
      Set<TopicPartition> twice = request.duplicatePartitions();
      for (ListOffsetsTopic topic : request.topics()) {
        ListOffsetsTopicResponse told = new ListOffsetsTopicResponse().setName(topic.name());
        for (ListOffsetsPartition partition : topic.partitions()) {
          boolean isTwice = twice.contains(new TopicPartition(topic.name(), partition.partitionIndex()));
          told.partitions().add(isTwice ? failed(partition, Errors.INVALID_REQUEST) : partition(asked, topic.name(), partition));
        }
        data.topics().add(told);
      }
      return new ListOffsetsResponse(data);
    });
  }

  private ListOffsetsPartitionResponse partition(ClientRequest asked, String topic, ListOffsetsPartition partition) {
    if (!asked.rights().mayRead(topic)) {
      return failed(partition, Errors.TOPIC_AUTHORIZATION_FAILED);
    }
    try {
      Optional<State> state = topics.newest(topic).filter(found -> isOf(found, partition.partitionIndex()));
      if (state.isEmpty()) {
        return failed(partition, Errors.UNKNOWN_TOPIC_OR_PARTITION);
      }
      if (partition.currentLeaderEpoch() > 0) {
        return failed(partition, Errors.UNKNOWN_LEADER_EPOCH);
      }
      OffsetLookup.At at = at(state.get(), partition.partitionIndex(), partition.timestamp());
      ListOffsetsPartitionResponse told = new ListOffsetsPartitionResponse().setPartitionIndex(partition.partitionIndex())
          .setOffset(at.offset())
          .setTimestamp(at.timestampMs());
      return asked.version() >= WITH_EPOCHS && at.offset() >= 0 ? told.setLeaderEpoch(0) : told;
    } catch (IOException | RuntimeException e) {
      return failed(partition, KafkaErrors.of(e));
    }
  }

  private static boolean isOf(State state, int partition) {
    return partition >= 0 && partition < state.partitions();
  }

  private OffsetLookup.At at(State state, int partition, long timestamp) throws IOException {
    if (timestamp == ListOffsetsRequest.LATEST_TIMESTAMP) {
      return new OffsetLookup.At(state.end(partition), -1);
    }
    if (timestamp == ListOffsetsRequest.EARLIEST_TIMESTAMP || timestamp == ListOffsetsRequest.EARLIEST_LOCAL_TIMESTAMP) {
      return new OffsetLookup.At(state.start(partition), -1);
    }
    if (timestamp == ListOffsetsRequest.MAX_TIMESTAMP) {
      return offsets.greatest(state, partition);
    }
    return timestamp < 0 ? OffsetLookup.NONE : offsets.first(state, partition, timestamp); // Nothing is tiered or to be uploaded.
  }

  private static ListOffsetsPartitionResponse failed(ListOffsetsPartition partition, Errors error) {
    return new ListOffsetsPartitionResponse().setPartitionIndex(partition.partitionIndex()).setErrorCode(error.code());
  }
}
