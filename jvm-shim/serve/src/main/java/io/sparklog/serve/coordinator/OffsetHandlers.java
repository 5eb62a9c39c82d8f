package io.sparklog.serve.coordinator;

import io.sparklog.log.State;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handlers;
import io.sparklog.serve.protocol.KafkaErrors;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestPartition;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestTopicCollection;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopics;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponsePartitions;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseTopics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.OffsetCommitResponse;
import org.apache.kafka.common.requests.OffsetDeleteRequest;
import org.apache.kafka.common.requests.OffsetDeleteResponse;
import org.apache.kafka.common.requests.OffsetFetchRequest;
import org.apache.kafka.common.requests.OffsetFetchResponse;
import org.apache.kafka.common.utils.BufferSupplier;

/**
 * The requests about the offsets of groups. Older versions name topics, and newer versions give ids alone. The coordinator gets both, so an
 * offset is of one topic id in any version.
 */
record OffsetHandlers(GroupRequests groups) {
  void addTo(Handlers handlers) {
    handlers.add(ApiKeys.OFFSET_COMMIT, this::commit).add(ApiKeys.OFFSET_FETCH, this::fetch).add(ApiKeys.OFFSET_DELETE, this::delete);
  }

  private CompletableFuture<OffsetCommitResponse> commit(ClientRequest asked, OffsetCommitRequest request) {
    return groups.work().run(() -> known(asked, request)).thenCompose(known -> {
      if (known.request.topics().isEmpty()) {
        return CompletableFuture.completedFuture(known.answer.build());
      }
      return groups
          .ask(known.request.groupId(), coordinator -> coordinator.commitOffsets(asked.context(), known.request, BufferSupplier.NO_CACHING))
          .thenApply(data -> known.answer.merge(data).build());
    });
  }

  /** The part of a commit about topics and partitions that exist, and the answer to the rest. */
  private record KnownCommit(OffsetCommitRequestData request, OffsetCommitResponse.Builder answer) {}

  private KnownCommit known(ClientRequest asked, OffsetCommitRequest request) {
    boolean isById = OffsetCommitResponse.useTopicIds(asked.version());
    OffsetCommitResponse.Builder answer = OffsetCommitResponse.newBuilder(isById);
    List<OffsetCommitRequestTopic> topics = new ArrayList<>();
    for (OffsetCommitRequestTopic topic : request.data().topics()) {
      Optional<State> state = state(asked, isById, topic.topicId(), topic.name());
      if (state.isEmpty()) {
        Errors error = isById ? Errors.UNKNOWN_TOPIC_ID : unknown(asked, topic.name());
        answer.addPartitions(topic.topicId(), topic.name(), topic.partitions(), OffsetCommitRequestPartition::partitionIndex, error);
        continue;
      }
      topic.setName(state.get().topic()).setTopicId(Uuid.fromString(state.get().topicId()));
      List<OffsetCommitRequestPartition> partitions = new ArrayList<>();
      for (OffsetCommitRequestPartition partition : topic.partitions()) {
        if (state.get().hasPartition(partition.partitionIndex())) {
          partitions.add(partition);
        } else {
          answer.addPartition(topic.topicId(), topic.name(), partition.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
        }
      }
      if (!partitions.isEmpty()) {
        topics.add(topic.setPartitions(partitions));
      }
    }
    return new KnownCommit(request.data().setTopics(topics), answer);
  }

  private static Errors unknown(ClientRequest asked, String topic) {
    return asked.rights().mayRead(topic) ? Errors.UNKNOWN_TOPIC_OR_PARTITION : Errors.TOPIC_AUTHORIZATION_FAILED;
  }

  /** The topic that a request names or gives the id of; empty if it does not exist, or the client may not read it. */
  private Optional<State> state(ClientRequest asked, boolean isById, Uuid id, String name) {
    return (isById ? groups.topics().newestById(id.toString()) : groups.topics().newest(name))
        .filter(state -> asked.rights().mayRead(state.topic()));
  }

  private CompletableFuture<OffsetFetchResponse> fetch(ClientRequest asked, OffsetFetchRequest request) {
    List<CompletableFuture<OffsetFetchResponseGroup>> answers = request.groups()
        .stream()
        .map(group -> fetchOf(group, asked, request))
        .toList();
    return CompletableFuture.allOf(answers.toArray(CompletableFuture[]::new))
        .thenApply(done -> new OffsetFetchResponse.Builder(answers.stream().map(CompletableFuture::join).toList()).build(asked.version()));
  }

  private CompletableFuture<OffsetFetchResponseGroup> fetchOf(OffsetFetchRequestGroup group, ClientRequest asked,
      OffsetFetchRequest request) {
    boolean isById = OffsetFetchRequest.useTopicIds(asked.version());
    List<OffsetFetchResponseTopics> unknown = new ArrayList<>();
    return groups.work()
        .run(() -> known(asked, isById, group, unknown))
        .thenCompose(
            known -> groups.ask(group.groupId(), coordinator -> coordinator.fetchOffsets(asked.context(), known, request.requireStable())))
        .thenCompose(data -> groups.work().run(() -> {
          data.setTopics(data.topics().stream().filter(topic -> isShown(asked, isById, topic)).toList());
          if (data.errorCode() == Errors.NONE.code()) {
            data.setTopics(Stream.concat(data.topics().stream(), unknown.stream()).toList());
          }
          return data;
        }))
        .exceptionally(failure -> OffsetFetchResponse.groupError(group, KafkaErrors.of(failure), asked.version()));
  }

  /** The part of a request about topics that exist; the answer to the rest is added to {@code unknown}. */
  private OffsetFetchRequestGroup known(ClientRequest asked, boolean isById, OffsetFetchRequestGroup group,
      List<OffsetFetchResponseTopics> unknown) {
    if (group.topics() == null) { // All topics.
      return group;
    }
    List<OffsetFetchRequestTopics> topics = new ArrayList<>();
    for (OffsetFetchRequestTopics topic : group.topics()) {
      Optional<State> state = state(asked, isById, topic.topicId(), topic.name());
      if (state.isPresent()) {
        topics.add(topic.setName(state.get().topic()).setTopicId(Uuid.fromString(state.get().topicId())));
      } else {
        Errors error = isById
            ? Errors.UNKNOWN_TOPIC_ID
            : asked.rights().mayRead(topic.name()) ? Errors.NONE : Errors.TOPIC_AUTHORIZATION_FAILED;
        unknown.add(unknown(topic, error));
      }
    }
    return group.setTopics(topics);
  }

  /** Kafka gives no error for a name without a topic: the group has no offset there. */
  private static OffsetFetchResponseTopics unknown(OffsetFetchRequestTopics topic, Errors error) {
    return new OffsetFetchResponseTopics().setName(topic.name())
        .setTopicId(topic.topicId())
        .setPartitions(topic.partitionIndexes()
            .stream()
            .map(partition -> new OffsetFetchResponsePartitions().setPartitionIndex(partition)
                .setErrorCode(error.code())
                .setCommittedOffset(OffsetFetchResponse.INVALID_OFFSET)
                .setMetadata(OffsetFetchResponse.NO_METADATA)
                .setCommittedLeaderEpoch(-1))
            .toList());
  }

  /** Whether an answer may have the topic. A request for all topics may find an offset of a deleted topic, which has no id. */
  private boolean isShown(ClientRequest asked, boolean isById, OffsetFetchResponseTopics topic) {
    if (!asked.rights().mayRead(topic.name())) {
      return false;
    }
    if (isById && topic.topicId().equals(Uuid.ZERO_UUID)) {
      groups.topics().newest(topic.name()).ifPresent(state -> topic.setTopicId(Uuid.fromString(state.topicId())));
      return !topic.topicId().equals(Uuid.ZERO_UUID);
    }
    return true;
  }

  private CompletableFuture<OffsetDeleteResponse> delete(ClientRequest asked, OffsetDeleteRequest request) {
    OffsetDeleteRequestData data = request.data();
    OffsetDeleteResponse.Builder answer = new OffsetDeleteResponse.Builder();
    return groups.work().run(() -> {
      OffsetDeleteRequestTopicCollection topics = new OffsetDeleteRequestTopicCollection();
      data.topics().forEach(topic -> {
        if (state(asked, false, null, topic.name()).isPresent()) {
          topics.add(topic.duplicate());
        } else {
          answer.addPartitions(topic.name(), topic.partitions(), OffsetDeleteRequestPartition::partitionIndex,
              unknown(asked, topic.name()));
        }
      });
      return topics;
    }).thenCompose(topics -> {
      OffsetDeleteRequestData known = new OffsetDeleteRequestData().setGroupId(data.groupId()).setTopics(topics);
      return groups.ask(data.groupId(), coordinator -> coordinator.deleteOffsets(asked.context(), known, BufferSupplier.NO_CACHING));
    }).thenApply(deleted -> deleted.errorCode() == Errors.NONE.code() ? answer.merge(deleted).build() : new OffsetDeleteResponse(deleted));
  }
}
