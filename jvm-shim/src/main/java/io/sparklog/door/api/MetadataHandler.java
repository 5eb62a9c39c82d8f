package io.sparklog.door.api;

import io.sparklog.door.cluster.ServedTopics;
import io.sparklog.door.cluster.Servers;
import io.sparklog.door.security.Rights;
import io.sparklog.log.State;
import io.sparklog.segment.Names;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.MetadataRequestData.MetadataRequestTopic;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseBroker;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponsePartition;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.MetadataRequest;

/**
 * Tells servers, topics and their partitions. All partitions of a topic have one leader, as a commit is of a topic.
 *
 * @param firstUse creates topics that clients name; empty if a topic must be created before its use
 */
public record MetadataHandler(ServedTopics topics, Servers servers, Optional<FirstUse> firstUse,
    Work work) implements Handler<MetadataRequest> {
  @Override
  public CompletableFuture<MetadataResponseData> answer(Asked asked, MetadataRequest request) {
    return work.run(() -> {
      MetadataResponseData data = new MetadataResponseData().setClusterId(servers.clusterId()).setControllerId(servers.self().node());
      servers.at(asked.listener().name())
          .forEach((node, address) -> data.brokers()
              .add(new MetadataResponseBroker().setNodeId(node).setHost(address.host()).setPort(address.port())));
      if (asked.version() >= 8 && asked.version() <= 10 && request.data().includeClusterAuthorizedOperations()) {
        data.setClusterAuthorizedOperations(Operations.ofCluster(asked.rights()));
      }
      if (request.isAllTopics()) {
        topics.all()
            .values()
            .stream()
            .filter(state -> asked.rights().mayRead(state.topic()))
            .forEach(state -> data.topics().add(told(state)));
      } else {
        request.data().topics().forEach(topic -> data.topics().add(topic(asked.rights(), topic, request.allowAutoTopicCreation())));
      }
      if (request.data().includeTopicAuthorizedOperations()) {
        data.topics()
            .forEach(
                topic -> topic.setTopicAuthorizedOperations(topic.name() == null ? 0 : Operations.ofTopic(asked.rights(), topic.name())));
      }
      return data;
    });
  }

  private MetadataResponseTopic topic(Rights rights, MetadataRequestTopic asked, boolean mayCreate) {
    boolean isById = asked.name() == null;
    try {
      Optional<State> state = isById ? topics.newestById(asked.topicId().toString()) : topics.newest(asked.name());
      if (state.isPresent() && rights.mayRead(state.get().topic())) {
        return told(state.get());
      }
      if (mayCreate && !isById && firstUse.isPresent() && rights.mayWrite(asked.name()) && Names.illegalTopic(asked.name()).isEmpty()) {
        return told(firstUse.get().create(asked.name()));
      }
      Errors error = isById
          ? Errors.UNKNOWN_TOPIC_ID
          : Names.illegalTopic(asked.name()).isPresent()
              ? Errors.INVALID_TOPIC_EXCEPTION
              : rights.mayRead(asked.name()) ? Errors.UNKNOWN_TOPIC_OR_PARTITION : Errors.TOPIC_AUTHORIZATION_FAILED;
      return untold(asked, error);
    } catch (RuntimeException e) {
      return untold(asked, KafkaErrors.of(e));
    }
  }

  /** Versions up to 11 cannot say null for the name. */
  private static MetadataResponseTopic untold(MetadataRequestTopic asked, Errors error) {
    return new MetadataResponseTopic().setName(asked.name()).setTopicId(asked.topicId()).setErrorCode(error.code());
  }

  private MetadataResponseTopic told(State state) {
    List<Integer> leader = List.of(servers.preferred(state.topicId()).node());
    MetadataResponseTopic topic = new MetadataResponseTopic().setName(state.topic())
        .setTopicId(Uuid.fromString(state.topicId()))
        .setIsInternal(state.topic().equals(Rights.OFFSETS_TOPIC));
    for (int partition = 0; partition < state.partitions(); partition++) {
      topic.partitions()
          .add(new MetadataResponsePartition().setPartitionIndex(partition)
              .setLeaderId(leader.get(0))
              .setLeaderEpoch(0)
              .setReplicaNodes(leader)
              .setIsrNodes(leader));
    }
    return topic;
  }
}
