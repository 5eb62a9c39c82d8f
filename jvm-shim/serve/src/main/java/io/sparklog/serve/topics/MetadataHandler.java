package io.sparklog.serve.topics;

import io.sparklog.log.State;
import io.sparklog.segment.Names;
import io.sparklog.serve.members.Servers;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.serve.security.Rights;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.MetadataRequestData.MetadataRequestTopic;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseBroker;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponsePartition;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;

/**
 * Tells servers, topics and their partitions. All partitions of a topic have one leader, as a commit is of a topic.
 *
 * @param firstUse creates topics that clients name; empty if a topic must be created before its use
 */
public record MetadataHandler(ServedTopics topics, Servers servers, Optional<FirstUse> firstUse,
    Workers work) implements Handler<MetadataRequest> {
  @Override
  public CompletableFuture<MetadataResponse> answer(ClientRequest asked, MetadataRequest request) {
    return work.run(() -> {
      MetadataResponseData data = new MetadataResponseData().setClusterId(servers.clusterId()).setControllerId(servers.self().node());
      servers.at(asked.listener().name())
          .forEach((node, address) -> data.brokers()
              .add(new MetadataResponseBroker().setNodeId(node).setHost(address.host()).setPort(address.port())));
      if (asked.version() >= 8 && asked.version() <= 10 && request.data().includeClusterAuthorizedOperations()) {
        data.setClusterAuthorizedOperations(AuthorizedOperations.ofCluster(asked.rights()));
      }
      if (request.isAllTopics()) {
        topics.all()
            .values()
            .stream()
            .filter(state -> asked.rights().mayRead(state.topic()))
            .forEach(state -> data.topics().add(told(asked, state)));
      } else {
        request.data()
            .topics()
            .stream()
            .distinct()
            .forEach(topic -> data.topics().add(topic(asked, topic, request.allowAutoTopicCreation())));
      }
      if (request.data().includeTopicAuthorizedOperations()) {
        data.topics()
            .forEach(topic -> topic
                .setTopicAuthorizedOperations(topic.name() == null ? 0 : AuthorizedOperations.ofTopic(asked.rights(), topic.name())));
      }
      return new MetadataResponse(data, asked.version());
    });
  }

  private MetadataResponseTopic topic(ClientRequest asked, MetadataRequestTopic wanted, boolean mayCreate) {
    Rights rights = asked.rights();
    boolean isById = wanted.name() == null;
    try {
      Optional<State> state = isById ? topics.newestById(wanted.topicId().toString()) : topics.newest(wanted.name());
      if (state.isPresent() && rights.mayRead(state.get().topic())) {
        return told(asked, state.get());
      }
      if (mayCreate && !isById && firstUse.isPresent() && rights.mayWrite(wanted.name()) && Names.illegalTopic(wanted.name()).isEmpty()) {
        return told(asked, firstUse.get().create(wanted.name()));
      }
      Errors error = isById
          ? Errors.UNKNOWN_TOPIC_ID
          : Names.illegalTopic(wanted.name()).isPresent()
              ? Errors.INVALID_TOPIC_EXCEPTION
              : rights.mayRead(wanted.name()) ? Errors.UNKNOWN_TOPIC_OR_PARTITION : Errors.TOPIC_AUTHORIZATION_FAILED;
      return untold(wanted, error);
    } catch (RuntimeException e) {
      return untold(wanted, KafkaErrors.of(e));
    }
  }

  /** Versions up to 11 cannot say null for the name. */
  private static MetadataResponseTopic untold(MetadataRequestTopic wanted, Errors error) {
    return new MetadataResponseTopic().setName(wanted.name()).setTopicId(wanted.topicId()).setErrorCode(error.code());
  }

  private MetadataResponseTopic told(ClientRequest asked, State state) {
    List<Integer> leader = List.of(servers.preferred(asked.listener().name(), state.topicId()).node());
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
