package io.sparklog.serve.coordinator;

import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handlers;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.security.Rights;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.DeleteGroupsResponseData.DeletableGroupResultCollection;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.ListGroupsResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ConsumerGroupDescribeRequest;
import org.apache.kafka.common.requests.ConsumerGroupDescribeResponse;
import org.apache.kafka.common.requests.DeleteGroupsRequest;
import org.apache.kafka.common.requests.DeleteGroupsResponse;
import org.apache.kafka.common.requests.DescribeGroupsRequest;
import org.apache.kafka.common.requests.DescribeGroupsResponse;
import org.apache.kafka.common.requests.ListGroupsRequest;
import org.apache.kafka.common.requests.ListGroupsResponse;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.server.util.FutureUtils;

/**
 * The requests of tools that list, describe and delete groups. An error of one group leaves the others as they are. A listener may show a
 * part of the topics, and groups belong to all: a client that may not know a topic of a group sees the name of the group alone, and does
 * not delete the group.
 */
record GroupListHandlers(GroupRequests groups) {
  void addTo(Handlers handlers) {
    handlers.add(ApiKeys.LIST_GROUPS, this::list)
        .add(ApiKeys.DESCRIBE_GROUPS, this::describe)
        .add(ApiKeys.CONSUMER_GROUP_DESCRIBE, this::describeConsumers)
        .add(ApiKeys.DELETE_GROUPS, this::delete);
  }

  private CompletableFuture<ListGroupsResponse> list(ClientRequest asked, ListGroupsRequest request) {
    return groups.askAll(coordinator -> coordinator.listGroups(asked.context(), request.data()), new ListGroupsResponseData())
        .thenApply(ListGroupsResponse::new);
  }

  private CompletableFuture<DescribeGroupsResponse> describe(ClientRequest asked, DescribeGroupsRequest request) {
    return each(request.data().groups(), (coordinator, group) -> coordinator.describeGroups(asked.context(), List.of(group)),
        DescribeGroupsRequest::getErrorDescribedGroupList, ArrayList::new, List::addAll).thenApply(all -> {
          all.stream()
              .filter(group -> !group.members().stream().allMatch(member -> mayKnow(asked.rights(), member)))
              .forEach(group -> group.setErrorCode(Errors.GROUP_AUTHORIZATION_FAILED.code()).setMembers(List.of()));
          return new DescribeGroupsResponse(new DescribeGroupsResponseData().setGroups(all));
        });
  }

  private CompletableFuture<ConsumerGroupDescribeResponse> describeConsumers(ClientRequest asked, ConsumerGroupDescribeRequest request) {
    return each(request.data().groupIds(), (coordinator, group) -> coordinator.consumerGroupDescribe(asked.context(), List.of(group)),
        ConsumerGroupDescribeRequest::getErrorDescribedGroupList, ArrayList::new, List::addAll).thenApply(all -> {
          all.stream()
              .filter(group -> !group.members().stream().allMatch(member -> mayKnow(asked.rights(), member)))
              .forEach(group -> group.setErrorCode(Errors.TOPIC_AUTHORIZATION_FAILED.code()).setMembers(List.of()));
          return new ConsumerGroupDescribeResponse(new ConsumerGroupDescribeResponseData().setGroups(all));
        });
  }

  private CompletableFuture<DeleteGroupsResponse> delete(ClientRequest asked, DeleteGroupsRequest request) {
    return each(request.data().groupsNames(),
        (coordinator, group) -> requireKnown(asked, coordinator, group)
            .thenCompose(known -> coordinator.deleteGroups(asked.context(), List.of(group), BufferSupplier.NO_CACHING)),
        DeleteGroupsRequest::getErrorResultCollection, DeletableGroupResultCollection::new,
        (all, results) -> results.forEach(result -> all.add(result.duplicate())))
        .thenApply(all -> new DeleteGroupsResponse(new DeleteGroupsResponseData().setResults(all)));
  }

  /** The answers of the coordinators of groups, joined. @param refused the answer for a group that has an error */
  private <T> CompletableFuture<T> each(List<String> names, BiFunction<GroupCoordinator, String, CompletableFuture<T>> request,
      BiFunction<List<String>, Errors, T> refused, Supplier<T> empty, BiConsumer<T, T> join) {
    List<CompletableFuture<T>> answers = new ArrayList<>();
    for (String group : names) {
      CompletableFuture<T> answer = groups.ask(group, coordinator -> request.apply(coordinator, group));
      answers.add(answer.exceptionally(failure -> refused.apply(List.of(group), KafkaErrors.of(failure))));
    }
    return FutureUtils.combineFutures(answers, empty, join);
  }

  /** Whether a client may know the topics of a member. A member that says its topics in its own way may be known where all topics are. */
  private static boolean mayKnow(Rights rights, DescribeGroupsResponseData.DescribedGroupMember member) {
    if (rights.prefixes().isEmpty()) {
      return true;
    }
    try {
      return member.memberMetadata().length == 0 || ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(member.memberMetadata()))
          .topics()
          .stream()
          .allMatch(rights::mayRead)
          && (member.memberAssignment().length == 0 || ConsumerProtocol.deserializeAssignment(ByteBuffer.wrap(member.memberAssignment()))
              .partitions()
              .stream()
              .allMatch(partition -> rights.mayRead(partition.topic())));
    } catch (RuntimeException e) { // Its bytes are not a consumer's.
      return false;
    }
  }

  /** As the other. */
  private static boolean mayKnow(Rights rights, ConsumerGroupDescribeResponseData.Member member) {
    String pattern = member.subscribedTopicRegex();
    return (rights.prefixes().isEmpty() || pattern == null || pattern.isEmpty())
        && member.subscribedTopicNames().stream().allMatch(rights::mayRead)
        && Stream.of(member.assignment(), member.targetAssignment())
            .flatMap(assignment -> assignment.topicPartitions().stream())
            .allMatch(topic -> rights.mayRead(topic.topicName()));
  }

  /** Fails with GROUP_AUTHORIZATION_FAILED if the group has a position in a topic that the client may not know. */
  private static CompletableFuture<Void> requireKnown(ClientRequest asked, GroupCoordinator coordinator, String group) {
    if (asked.rights().prefixes().isEmpty()) {
      return CompletableFuture.completedFuture(null);
    }
    OffsetFetchRequestGroup all = new OffsetFetchRequestGroup().setGroupId(group).setTopics(null);
    return coordinator.fetchOffsets(asked.context(), all, false).thenAccept(found -> {
      if (!found.topics().stream().allMatch(topic -> asked.rights().mayRead(topic.name()))) {
        throw Errors.GROUP_AUTHORIZATION_FAILED.exception();
      }
    });
  }
}
