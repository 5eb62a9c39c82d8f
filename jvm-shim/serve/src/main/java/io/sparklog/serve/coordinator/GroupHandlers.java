package io.sparklog.serve.coordinator;

import io.sparklog.serve.members.Address;
import io.sparklog.serve.members.Server;
import io.sparklog.serve.members.Servers;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handlers;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.security.Rights;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.FindCoordinatorResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatRequest;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatResponse;
import org.apache.kafka.common.requests.FindCoordinatorRequest.CoordinatorType;
import org.apache.kafka.common.requests.FindCoordinatorRequest;
import org.apache.kafka.common.requests.FindCoordinatorResponse;
import org.apache.kafka.common.requests.HeartbeatRequest;
import org.apache.kafka.common.requests.HeartbeatResponse;
import org.apache.kafka.common.requests.JoinGroupRequest;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.LeaveGroupRequest;
import org.apache.kafka.common.requests.LeaveGroupResponse;
import org.apache.kafka.common.requests.SyncGroupRequest;
import org.apache.kafka.common.requests.SyncGroupResponse;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.server.util.FutureUtils;

/** The requests of groups. This class answers the members of both protocols. */
public record GroupHandlers(GroupRequests groups, Servers servers) {
  private static final short KEYS = FindCoordinatorRequest.MIN_BATCHED_VERSION;

  public void addTo(Handlers handlers) {
    handlers.add(ApiKeys.FIND_COORDINATOR, this::findCoordinator)
        .add(ApiKeys.JOIN_GROUP, this::join)
        .add(ApiKeys.SYNC_GROUP, this::sync)
        .add(ApiKeys.HEARTBEAT, this::beat)
        .add(ApiKeys.LEAVE_GROUP, this::leave)
        .add(ApiKeys.CONSUMER_GROUP_HEARTBEAT, this::beatOfConsumer);
    new OffsetHandlers(groups).addTo(handlers);
    new GroupListHandlers(groups).addTo(handlers);
  }

  /** Names the server that coordinates a group. By this answer, one server alone has the records of a group in memory. */
  private CompletableFuture<FindCoordinatorResponse> findCoordinator(ClientRequest asked, FindCoordinatorRequest request) {
    List<String> keys = asked.version() < KEYS ? List.of(request.data().key()) : request.data().coordinatorKeys();
    return FutureUtils
        .combineFutures(keys.stream().map(key -> coordinator(asked, request.data().keyType(), key)).toList(), ArrayList::new, List::addAll)
        .thenApply(all -> {
          FindCoordinatorResponseData data = new FindCoordinatorResponseData();
          if (asked.version() >= KEYS) {
            return new FindCoordinatorResponse(data.setCoordinators(all));
          }
          FindCoordinatorResponseData.Coordinator one = all.get(0);
          return new FindCoordinatorResponse(data.setErrorCode(one.errorCode())
              .setErrorMessage(one.errorMessage())
              .setNodeId(one.nodeId())
              .setHost(one.host())
              .setPort(one.port()));
        });
  }

  /** A transactional id gets an error that no client repeats. @return a list of one */
  private CompletableFuture<List<FindCoordinatorResponseData.Coordinator>> coordinator(ClientRequest asked, byte type, String key) {
    CompletableFuture<Integer> partition = type == CoordinatorType.GROUP.id()
        ? groups.partition(key)
        : CompletableFuture.failedFuture(type == CoordinatorType.TRANSACTION.id()
            ? Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                .exception("This server does not support transactions: leave transactional.id out.")
            : Errors.INVALID_REQUEST.exception("This server has coordinators of consumer groups alone."));
    FindCoordinatorResponseData.Coordinator told = new FindCoordinatorResponseData.Coordinator().setKey(key);
    return partition.thenApply(of -> {
      Server server = servers.coordinator(asked.listener().name(), of);
      Address address = server.endpoints().get(asked.listener().name()).address();
      return told.setNodeId(server.node()).setHost(address.host()).setPort(address.port());
    }).exceptionally(failure -> {
      ApiError error = KafkaErrors.error(failure);
      return told.setErrorCode(error.error().code()).setErrorMessage(error.message()).setNodeId(-1).setHost("").setPort(-1);
    }).thenApply(List::of);
  }

  private CompletableFuture<JoinGroupResponse> join(ClientRequest asked, JoinGroupRequest request) {
    return groups
        .ask(request.data().groupId(), coordinator -> coordinator.joinGroup(asked.context(), request.data(), BufferSupplier.NO_CACHING))
        .thenApply(data -> new JoinGroupResponse(data, asked.version()));
  }

  private CompletableFuture<SyncGroupResponse> sync(ClientRequest asked, SyncGroupRequest request) {
    if (!request.areMandatoryProtocolTypeAndNamePresent()) {
      throw Errors.INCONSISTENT_GROUP_PROTOCOL.exception();
    }
    return groups
        .ask(request.data().groupId(), coordinator -> coordinator.syncGroup(asked.context(), request.data(), BufferSupplier.NO_CACHING))
        .thenApply(SyncGroupResponse::new);
  }

  private CompletableFuture<HeartbeatResponse> beat(ClientRequest asked, HeartbeatRequest request) {
    return groups.ask(request.data().groupId(), coordinator -> coordinator.heartbeat(asked.context(), request.data()))
        .thenApply(HeartbeatResponse::new);
  }

  private CompletableFuture<LeaveGroupResponse> leave(ClientRequest asked, LeaveGroupRequest request) {
    return groups.ask(request.data().groupId(), coordinator -> coordinator.leaveGroup(asked.context(), request.normalizedData()))
        .thenApply(data -> new LeaveGroupResponse(data, asked.version()));
  }

  private CompletableFuture<ConsumerGroupHeartbeatResponse> beatOfConsumer(ClientRequest asked, ConsumerGroupHeartbeatRequest request) {
    Rights rights = asked.rights();
    List<String> names = request.data().subscribedTopicNames();
    String pattern = request.data().subscribedTopicRegex();
    if (names != null && !names.stream().allMatch(rights::mayRead)) {
      throw Errors.TOPIC_AUTHORIZATION_FAILED.exception();
    }
    if (pattern != null && !pattern.isEmpty() && !rights.prefixes().isEmpty()) { // The coordinator would match the hidden topics too.
      throw Errors.TOPIC_AUTHORIZATION_FAILED.exception("This listener shows a part of the topics: subscribe to topics by their names.");
    }
    String group = request.data().groupId();
    Function<GroupCoordinator, CompletableFuture<ConsumerGroupHeartbeatResponseData>> beat = coordinator -> coordinator
        .consumerGroupHeartbeat(asked.context(), request.data());
    CompletableFuture<ConsumerGroupHeartbeatResponseData> answer = names != null
        ? groups.ask(group, names, beat)
        : pattern != null && !pattern.isEmpty() ? groups.askWithAllTopics(group, beat) : groups.ask(group, beat);
    return answer.thenApply(ConsumerGroupHeartbeatResponse::new);
  }
}
