package io.sparklog.serve;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Root;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.stream.LongStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchRequestData.FetchPartition;
import org.apache.kafka.common.message.FetchRequestData.FetchTopic;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData.PartitionData;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsTopic;
import org.apache.kafka.common.message.ListOffsetsRequestData;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderPartition;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderTopic;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochResponse;

/** Outcomes of the requests of consumers. The topic has 7 records in partition 0, 5 in partition 2, and none in partition 1. */
final class FetchOutcomes {
  private static final int BY_ID = 13;

  private FetchOutcomes() {}

  static List<Outcome> all(Root root) {
    List<Outcome> all = new ArrayList<>();
    fetch(all, root);
    offsets(all);
    epochs(all);
    return all;
  }

  private static void fetch(List<Outcome> all, Root root) {
    Uuid id = Uuid.fromString(root.state("t").topicId());
    records(all, "all records", id, 0, 0, 0, 7);
    records(all, "the batch of an offset", id, 0, 5, 3, 7);
    records(all, "records of the second partition", id, 2, 1, 0, 5);
    records(all, "the end offset", id, 0, 7, 7, 7);
    records(all, "a partition without records", id, 1, 0, 0, 0);
    refused(all, "below the log start offset", id, 0, -1, Errors.OFFSET_OUT_OF_RANGE);
    refused(all, "beyond the end offset", id, 0, 8, Errors.OFFSET_OUT_OF_RANGE);
    refused(all, "an unknown partition", id, 3, 0, Errors.UNKNOWN_TOPIC_OR_PARTITION);
    all.add(
        Outcome
            .<FetchResponse>of("an unknown id", ApiKeys.FETCH, fetch("", new Uuid(1, 2), 0, 0, -1),
                (answer, version) -> assertEquals(Errors.UNKNOWN_TOPIC_ID.code(), only(answer).errorCode()))
            .from(BY_ID));
    all.add(
        Outcome
            .<FetchResponse>of("an unknown name", ApiKeys.FETCH, fetch("absent", Uuid.ZERO_UUID, 0, 0, -1),
                (answer, version) -> assertEquals(Errors.UNKNOWN_TOPIC_OR_PARTITION.code(), only(answer).errorCode()))
            .to(BY_ID - 1));
    all.add(
        Outcome
            .<FetchResponse>of("a later leader epoch", ApiKeys.FETCH, fetch("t", Uuid.ZERO_UUID, 0, 0, 1),
                (answer, version) -> assertEquals(Errors.UNKNOWN_LEADER_EPOCH.code(), only(answer).errorCode()))
            .from(9)
            .to(BY_ID - 1));
    sessions(all, id);
  }

  private static void sessions(List<Outcome> all, Uuid id) {
    byNameAndId(all, "the first request of a session", id, 0, 0, FetchMetadata.INITIAL, (answer, version) -> {
      assertTrue(answer.sessionId() > 0);
      assertEquals(7, only(answer).highWatermark());
    });
    byNameAndId(all, "the end of a session", id, 0, 0, new FetchMetadata(17, FetchMetadata.FINAL_EPOCH), (answer, version) -> {
      assertEquals(0, answer.sessionId());
      assertEquals(7, only(answer).highWatermark());
    });
    for (int to : new int[] {BY_ID - 1, 18}) {
      FetchRequestData next = fetch(to < BY_ID ? "t" : "", to < BY_ID ? Uuid.ZERO_UUID : id, 0, 0, -1).setSessionId(17).setSessionEpoch(3);
      all.add(Outcome.<FetchResponse>of("an unknown session", ApiKeys.FETCH, next, (answer, version) -> {
        assertEquals(Errors.FETCH_SESSION_ID_NOT_FOUND, answer.error());
      }).from(to < BY_ID ? 7 : BY_ID).to(to));
    }
  }

  private static void byNameAndId(List<Outcome> all, String name, Uuid id, int partition, long offset, FetchMetadata session,
      BiConsumer<FetchResponse, Integer> check) {
    FetchRequestData byName = fetch("t", Uuid.ZERO_UUID, partition, offset, -1);
    FetchRequestData byId = fetch("", id, partition, offset, -1);
    for (FetchRequestData each : List.of(byName, byId)) {
      each.setSessionId(session.sessionId()).setSessionEpoch(session.epoch());
    }
    all.add(Outcome.of(name, ApiKeys.FETCH, byName, check).from(7).to(BY_ID - 1));
    all.add(Outcome.of(name, ApiKeys.FETCH, byId, check).from(BY_ID));
  }

  private static void records(List<Outcome> all, String name, Uuid id, int partition, long offset, long first, long end) {
    byNameAndId(all, name, id, partition, offset, (answer, version) -> {
      PartitionData data = only(answer);
      assertEquals(Errors.NONE.code(), data.errorCode());
      List<Long> found = new ArrayList<>();
      for (Record record : FetchResponse.recordsOrFail(data).records()) {
        record.ensureValid();
        found.add(record.offset());
      }
      assertEquals(LongStream.range(first, end).boxed().toList(), found);
      assertEquals(end, data.highWatermark());
      assertEquals(end, data.lastStableOffset());
      assertEquals(version < 5 ? -1 : 0, data.logStartOffset());
    });
  }

  private static void refused(List<Outcome> all, String name, Uuid id, int partition, long offset, Errors error) {
    byNameAndId(all, name, id, partition, offset, (answer, version) -> assertEquals(error.code(), only(answer).errorCode()));
  }

  private static void byNameAndId(List<Outcome> all, String name, Uuid id, int partition, long offset,
      BiConsumer<FetchResponse, Integer> check) {
    all.add(Outcome.of(name, ApiKeys.FETCH, fetch("t", Uuid.ZERO_UUID, partition, offset, -1), check).to(BY_ID - 1));
    all.add(Outcome.of(name, ApiKeys.FETCH, fetch("", id, partition, offset, -1), check).from(BY_ID));
  }

  private static FetchRequestData fetch(String name, Uuid id, int partition, long offset, int epoch) {
    FetchPartition one = new FetchPartition().setPartition(partition)
        .setFetchOffset(offset)
        .setPartitionMaxBytes(1 << 20)
        .setCurrentLeaderEpoch(epoch);
    return new FetchRequestData().setMaxBytes(1 << 20)
        .setMaxWaitMs(0)
        .setMinBytes(1)
        .setTopics(List.of(new FetchTopic().setTopic(name).setTopicId(id).setPartitions(List.of(one))));
  }

  private static PartitionData only(FetchResponse answer) {
    assertEquals(Errors.NONE.code(), answer.data().errorCode());
    assertEquals(1, answer.data().responses().size());
    assertEquals(1, answer.data().responses().get(0).partitions().size());
    return answer.data().responses().get(0).partitions().get(0);
  }

  private static void offsets(List<Outcome> all) {
    offset(all, "the log start offset", "t", 0, ListOffsetsRequest.EARLIEST_TIMESTAMP, 1, 0, -1);
    offset(all, "the end offset", "t", 0, ListOffsetsRequest.LATEST_TIMESTAMP, 1, 7, -1);
    offset(all, "a time between two records", "t", 0, WrittenTopic.time(4) - 1, 1, 4, WrittenTopic.time(4));
    offset(all, "a time before all records", "t", 2, 0, 1, 0, WrittenTopic.time(0));
    offset(all, "a time after all records", "t", 0, WrittenTopic.time(100), 1, -1, -1);
    offset(all, "a time in a partition without records", "t", 1, 0, 1, -1, -1);
    offset(all, "the greatest time", "t", 0, ListOffsetsRequest.MAX_TIMESTAMP, 7, 6, WrittenTopic.time(6));
    offset(all, "the greatest time without records", "t", 1, ListOffsetsRequest.MAX_TIMESTAMP, 7, -1, -1);
    offset(all, "the earliest local offset", "t", 0, ListOffsetsRequest.EARLIEST_LOCAL_TIMESTAMP, 8, 0, -1);
    offset(all, "the latest tiered offset", "t", 0, ListOffsetsRequest.LATEST_TIERED_TIMESTAMP, 9, -1, -1);
    offset(all, "the earliest offset to upload", "t", 0, ListOffsetsRequest.EARLIEST_PENDING_UPLOAD_TIMESTAMP, 11, -1, -1);
    noOffset(all, "an unknown partition", offsets("t", -1, 3), Errors.UNKNOWN_TOPIC_OR_PARTITION);
    noOffset(all, "an unknown topic", offsets("absent", -1, 0), Errors.UNKNOWN_TOPIC_OR_PARTITION);
    noOffset(all, "a partition twice", offsets("t", -1, 0, 0), Errors.INVALID_REQUEST);
  }

  private static void offset(List<Outcome> all, String name, String topic, int partition, long time, int from, long offset, long found) {
    all.add(Outcome.<ListOffsetsResponse>of(name, ApiKeys.LIST_OFFSETS, offsets(topic, time, partition), (answer, version) -> {
      ListOffsetsPartitionResponse told = answer.topics().get(0).partitions().get(0);
      assertEquals(Errors.NONE.code(), told.errorCode());
      assertEquals(offset, told.offset());
      assertEquals(found, told.timestamp());
      assertEquals(version < 4 || offset < 0 ? -1 : 0, told.leaderEpoch());
    }).from(from));
  }

  private static void noOffset(List<Outcome> all, String name, ListOffsetsRequestData request, Errors error) {
    all.add(Outcome.<ListOffsetsResponse>of(name, ApiKeys.LIST_OFFSETS, request, (answer, version) -> {
      assertTrue(answer.topics().get(0).partitions().stream().allMatch(told -> told.errorCode() == error.code()));
    }));
  }

  private static ListOffsetsRequestData offsets(String topic, long time, int... partitions) {
    ListOffsetsTopic asked = new ListOffsetsTopic().setName(topic);
    for (int partition : partitions) {
      asked.partitions().add(new ListOffsetsPartition().setPartitionIndex(partition).setTimestamp(time));
    }
    return new ListOffsetsRequestData().setReplicaId(ListOffsetsRequest.CONSUMER_REPLICA_ID).setTopics(List.of(asked));
  }

  private static void epochs(List<Outcome> all) {
    epoch(all, "the only epoch", "t", 0, -1, 0, Errors.NONE, 0, 7);
    epoch(all, "a later epoch", "t", 0, -1, 1, Errors.NONE, -1, -1);
    epoch(all, "a leader of a later epoch", "t", 0, 1, 0, Errors.UNKNOWN_LEADER_EPOCH, -1, -1);
    epoch(all, "an unknown partition", "t", 3, -1, 0, Errors.UNKNOWN_TOPIC_OR_PARTITION, -1, -1);
    epoch(all, "an unknown topic", "absent", 0, -1, 0, Errors.UNKNOWN_TOPIC_OR_PARTITION, -1, -1);
  }

  private static void epoch(List<Outcome> all, String name, String topic, int partition, int leader, int asked, Errors error, int epoch,
      long end) {
    OffsetForLeaderPartition one = new OffsetForLeaderPartition().setPartition(partition)
        .setCurrentLeaderEpoch(leader)
        .setLeaderEpoch(asked);
    OffsetForLeaderEpochRequestData request = new OffsetForLeaderEpochRequestData().setReplicaId(-2);
    request.topics().add(new OffsetForLeaderTopic().setTopic(topic).setPartitions(List.of(one)));
    all.add(Outcome.<OffsetsForLeaderEpochResponse>of(name, ApiKeys.OFFSET_FOR_LEADER_EPOCH, request, (answer, version) -> {
      EpochEndOffset told = answer.data().topics().iterator().next().partitions().get(0);
      assertEquals(error.code(), told.errorCode());
      assertEquals(epoch, told.leaderEpoch());
      assertEquals(end, told.endOffset());
    }));
  }
}
