package io.sparklog.serve.coordinator;

import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handlers;
import io.sparklog.serve.protocol.KafkaErrors;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.DeleteGroupsResponseData.DeletableGroupResult;
import org.apache.kafka.common.message.DeleteGroupsResponseData.DeletableGroupResultCollection;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.ListGroupsResponseData;
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

/**
 * The requests of tools that list, describe and delete groups. An error of one group leaves the others as they are. A client that may not
 * know a topic of a group sees the name of the group alone, and does not delete the group.
 */
public record GroupListHandlers(GroupRequests groups) {
  public Handlers addTo(Handlers handlers) {
    return handlers.add(ApiKeys.LIST_GROUPS, this::list)
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
        (group, failure) -> List
            .of(new DescribeGroupsResponseData.DescribedGroup().setGroupId(group).setErrorCode(KafkaErrors.of(failure).code())))
        .thenApply(found -> {
          List<DescribeGroupsResponseData.DescribedGroup> all = flat(found);
          all.stream()
              .filter(group -> !group.members().stream().allMatch(member -> HiddenTopics.mayKnow(asked.rights(), member)))
              .forEach(group -> group.setErrorCode(Errors.GROUP_AUTHORIZATION_FAILED.code()).setMembers(List.of()));
          return new DescribeGroupsResponse(new DescribeGroupsResponseData().setGroups(all));
        });
  }

  private CompletableFuture<ConsumerGroupDescribeResponse> describeConsumers(ClientRequest asked, ConsumerGroupDescribeRequest request) {
    return each(request.data().groupIds(), (coordinator, group) -> coordinator.consumerGroupDescribe(asked.context(), List.of(group)),
        (group, failure) -> List
            .of(new ConsumerGroupDescribeResponseData.DescribedGroup().setGroupId(group).setErrorCode(KafkaErrors.of(failure).code())))
        .thenApply(found -> {
          List<ConsumerGroupDescribeResponseData.DescribedGroup> all = flat(found);
          all.stream()
              .filter(group -> !group.members().stream().allMatch(member -> HiddenTopics.mayKnow(asked.rights(), member)))
              .forEach(group -> group.setErrorCode(Errors.TOPIC_AUTHORIZATION_FAILED.code()).setMembers(List.of()));
          return new ConsumerGroupDescribeResponse(new ConsumerGroupDescribeResponseData().setGroups(all));
        });
  }

  private CompletableFuture<DeleteGroupsResponse> delete(ClientRequest asked, DeleteGroupsRequest request) {
    return each(request.data().groupsNames(),
        (coordinator, group) -> HiddenTopics.requireKnown(asked, coordinator, group)
            .thenCompose(known -> coordinator.deleteGroups(asked.context(), List.of(group), BufferSupplier.NO_CACHING)),
        (group, failure) -> new DeletableGroupResultCollection(
            List.of(new DeletableGroupResult().setGroupId(group).setErrorCode(KafkaErrors.of(failure).code())).iterator()))
        .thenApply(found -> {
          DeletableGroupResultCollection all = new DeletableGroupResultCollection();
          found.forEach(results -> results.forEach(result -> all.add(result.duplicate())));
          return new DeleteGroupsResponse(new DeleteGroupsResponseData().setResults(all));
        });
  }

  private <T> CompletableFuture<List<T>> each(List<String> names, BiFunction<GroupCoordinator, String, CompletableFuture<T>> request,
      BiFunction<String, Throwable, T> refused) {
    List<CompletableFuture<T>> answers = names.stream().map(group -> {
      Function<GroupCoordinator, CompletableFuture<T>> ask = coordinator -> request.apply(coordinator, group);
      return groups.ask(group, ask).exceptionally(failure -> refused.apply(group, failure));
    }).toList();
    return CompletableFuture.allOf(answers.toArray(CompletableFuture[]::new))
        .thenApply(done -> answers.stream().map(CompletableFuture::join).toList());
  }

  private static <T> List<T> flat(List<List<T>> lists) {
    List<T> all = new ArrayList<>();
    lists.forEach(all::addAll);
    return all;
  }
}
