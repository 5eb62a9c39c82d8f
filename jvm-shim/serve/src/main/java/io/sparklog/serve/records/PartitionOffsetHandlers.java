package io.sparklog.serve.records;

import io.sparklog.log.State;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handlers;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.records.fetch.OffsetLookup;
import io.sparklog.serve.topics.ServedTopics;
import java.io.IOException;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsTopic;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsTopicResponse;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderTopic;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.OffsetForLeaderTopicResult;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochRequest;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochResponse;

/** The requests for offsets of partitions. */
public record PartitionOffsetHandlers(ServedTopics topics, OffsetLookup offsets) {
  /** The first version of ListOffsets that tells leader epochs. */
  private static final short WITH_EPOCHS = 4;

  public void addTo(Handlers handlers) {
    handlers.addBlocking(ApiKeys.LIST_OFFSETS, this::list).addBlocking(ApiKeys.OFFSET_FOR_LEADER_EPOCH, this::endOfEpoch);
  }

  /** Tells the first, the next, and by time any offset of partitions. */
  private ListOffsetsResponse list(ClientRequest asked, ListOffsetsRequest request) {
    ListOffsetsResponseData data = new ListOffsetsResponseData();
    Set<TopicPartition> twice = request.duplicatePartitions();
    for (ListOffsetsTopic topic : request.topics()) {
      ListOffsetsTopicResponse told = new ListOffsetsTopicResponse().setName(topic.name());
      data.topics().add(told);
      topic.partitions().forEach(partition -> {
        int number = partition.partitionIndex();
        ListOffsetsPartitionResponse one = new ListOffsetsPartitionResponse().setPartitionIndex(number);
        told.partitions().add(one);
        ApiError error = KafkaErrors.attempt(() -> {
          if (twice.contains(new TopicPartition(topic.name(), number))) {
            throw Errors.INVALID_REQUEST.exception();
          }
          State state = topics.readable(asked, topic.name(), number, partition.currentLeaderEpoch());
          OffsetLookup.At at = at(state, number, partition.timestamp());
          one.setOffset(at.offset()).setTimestamp(at.timestampMs());
          if (asked.version() >= WITH_EPOCHS && at.offset() >= 0) {
            one.setLeaderEpoch(0);
          }
        });
        one.setErrorCode(error.error().code());
      });
    }
    return new ListOffsetsResponse(data);
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

  /** Tells that no record was truncated: the only leader epoch is 0, and it ends at the end offset. */
  private OffsetsForLeaderEpochResponse endOfEpoch(ClientRequest asked, OffsetsForLeaderEpochRequest request) {
    OffsetForLeaderEpochResponseData data = new OffsetForLeaderEpochResponseData();
    for (OffsetForLeaderTopic topic : request.data().topics()) {
      OffsetForLeaderTopicResult told = new OffsetForLeaderTopicResult().setTopic(topic.topic());
      data.topics().add(told);
      topic.partitions().forEach(partition -> {
        EpochEndOffset one = new EpochEndOffset().setPartition(partition.partition());
        told.partitions().add(one);
        ApiError error = KafkaErrors.attempt(() -> {
          State state = topics.readable(asked, topic.topic(), partition.partition(), partition.currentLeaderEpoch());
          if (partition.leaderEpoch() == 0) {
            one.setLeaderEpoch(0).setEndOffset(state.end(partition.partition()));
          }
        });
        one.setErrorCode(error.error().code());
      });
    }
    return new OffsetsForLeaderEpochResponse(data);
  }
}
