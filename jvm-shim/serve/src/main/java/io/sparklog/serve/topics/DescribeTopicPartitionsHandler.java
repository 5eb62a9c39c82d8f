package io.sparklog.serve.topics;

import io.sparklog.log.State;
import io.sparklog.serve.members.Servers;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.serve.security.Rights;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.DescribeTopicPartitionsRequestData;
import org.apache.kafka.common.message.DescribeTopicPartitionsResponseData.Cursor;
import org.apache.kafka.common.message.DescribeTopicPartitionsResponseData.DescribeTopicPartitionsResponsePartition;
import org.apache.kafka.common.message.DescribeTopicPartitionsResponseData.DescribeTopicPartitionsResponseTopic;
import org.apache.kafka.common.message.DescribeTopicPartitionsResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.DescribeTopicPartitionsRequest;
import org.apache.kafka.common.requests.DescribeTopicPartitionsResponse;

/** Tells the partitions of topics, in pages: topics by name, and a cursor where the next page begins. */
public record DescribeTopicPartitionsHandler(ServedTopics topics, Servers servers,
    Workers work) implements Handler<DescribeTopicPartitionsRequest> {
  private static final int PAGE_MAX = 2000;

  @Override
  public CompletableFuture<DescribeTopicPartitionsResponse> answer(ClientRequest asked, DescribeTopicPartitionsRequest request) {
    return work.run(() -> new DescribeTopicPartitionsResponse(page(asked, request.data())));
  }

  private DescribeTopicPartitionsResponseData page(ClientRequest asked, DescribeTopicPartitionsRequestData request) {
    Rights rights = asked.rights();
    DescribeTopicPartitionsRequestData.Cursor from = request.cursor();
    if (from != null && from.partitionIndex() < 0 || request.responsePartitionLimit() <= 0) {
      throw Errors.INVALID_REQUEST.exception();
    }
    Collection<String> all = request.topics().isEmpty()
        ? topics.all().keySet()
        : request.topics().stream().map(each -> each.name()).toList();
    TreeSet<String> names = new TreeSet<>(all);
    if (request.topics().isEmpty()) {
      names.removeIf(name -> !rights.mayRead(name));
    }
    DescribeTopicPartitionsResponseData page = new DescribeTopicPartitionsResponseData();
    int left = Math.min(request.responsePartitionLimit(), PAGE_MAX);
    for (String name : from == null ? names : names.tailSet(from.topicName())) {
      int first = from != null && name.equals(from.topicName()) ? from.partitionIndex() : 0;
      if (left == 0) {
        return page.setNextCursor(new Cursor().setTopicName(name).setPartitionIndex(0));
      }
      Errors error = Errors.NONE;
      Optional<State> state = Optional.empty();
      try {
        state = rights.mayRead(name) ? topics.newest(name) : Optional.empty();
        error = state.isPresent()
            ? Errors.NONE
            : rights.mayRead(name) ? Errors.UNKNOWN_TOPIC_OR_PARTITION : Errors.TOPIC_AUTHORIZATION_FAILED;
      } catch (RuntimeException e) {
        error = KafkaErrors.of(e);
      }
      DescribeTopicPartitionsResponseTopic topic = new DescribeTopicPartitionsResponseTopic().setName(name).setErrorCode(error.code());
      page.topics().add(topic);
      if (state.isPresent()) {
        int end = Math.min(state.get().partitions(), first + left);
        describe(topic, state.get(), asked, first, end);
        left -= Math.max(0, end - first);
        if (end < state.get().partitions()) {
          return page.setNextCursor(new Cursor().setTopicName(name).setPartitionIndex(end));
        }
      }
    }
    return page;
  }

  private void describe(DescribeTopicPartitionsResponseTopic topic, State state, ClientRequest asked, int first, int end) {
    List<Integer> leader = List.of(servers.preferred(asked.listener().name(), state.topicId()).node());
    topic.setTopicId(Uuid.fromString(state.topicId()))
        .setIsInternal(state.topic().equals(Rights.OFFSETS_TOPIC))
        .setTopicAuthorizedOperations(AuthorizedOperations.ofTopic(asked.rights(), state.topic()));
    for (int partition = first; partition < end; partition++) {
      topic.partitions()
          .add(new DescribeTopicPartitionsResponsePartition().setPartitionIndex(partition)
              .setLeaderId(leader.get(0))
              .setLeaderEpoch(0)
              .setReplicaNodes(leader)
              .setIsrNodes(leader)
              .setEligibleLeaderReplicas(List.of())
              .setLastKnownElr(List.of()));
    }
  }
}
