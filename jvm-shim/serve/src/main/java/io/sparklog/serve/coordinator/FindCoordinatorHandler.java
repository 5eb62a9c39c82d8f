package io.sparklog.serve.coordinator;

import io.sparklog.serve.members.Address;
import io.sparklog.serve.members.Server;
import io.sparklog.serve.members.Servers;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.KafkaErrors;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.FindCoordinatorResponseData.Coordinator;
import org.apache.kafka.common.message.FindCoordinatorResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.FindCoordinatorRequest.CoordinatorType;
import org.apache.kafka.common.requests.FindCoordinatorRequest;
import org.apache.kafka.common.requests.FindCoordinatorResponse;

/**
 * Names the server that coordinates a group. By this answer, one server alone has the records of a group in memory. A transactional id
 * gets an error that no client repeats.
 */
public record FindCoordinatorHandler(GroupRequests groups, Servers servers) implements Handler<FindCoordinatorRequest> {
  private static final short KEYS = FindCoordinatorRequest.MIN_BATCHED_VERSION;

  @Override
  public CompletableFuture<FindCoordinatorResponse> answer(ClientRequest asked, FindCoordinatorRequest request) {
    List<String> keys = asked.version() < KEYS ? List.of(request.data().key()) : request.data().coordinatorKeys();
    List<CompletableFuture<Coordinator>> found = keys.stream().map(key -> coordinator(asked, request.data().keyType(), key)).toList();
    return CompletableFuture.allOf(found.toArray(CompletableFuture[]::new)).thenApply(done -> {
      FindCoordinatorResponseData data = new FindCoordinatorResponseData();
      List<Coordinator> all = found.stream().map(CompletableFuture::join).toList();
      if (asked.version() >= KEYS) {
        return new FindCoordinatorResponse(data.setCoordinators(all));
      }
      Coordinator one = all.get(0);
      return new FindCoordinatorResponse(data.setErrorCode(one.errorCode())
          .setErrorMessage(one.errorMessage())
          .setNodeId(one.nodeId())
          .setHost(one.host())
          .setPort(one.port()));
    });
  }

  private CompletableFuture<Coordinator> coordinator(ClientRequest asked, byte type, String key) {
    if (type != CoordinatorType.GROUP.id()) {
      boolean isTransaction = type == CoordinatorType.TRANSACTION.id();
      return CompletableFuture.completedFuture(refused(key,
          isTransaction
              ? Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.exception("This server has no transactions: leave transactional.id out.")
              : Errors.INVALID_REQUEST.exception("This server has coordinators of consumer groups alone.")));
    }
    return groups.partition(key).thenApply(partition -> {
      Server server = servers.coordinator(asked.listener().name(), partition);
      Address address = server.endpoints().get(asked.listener().name()).address();
      return new Coordinator().setKey(key).setNodeId(server.node()).setHost(address.host()).setPort(address.port());
    }).exceptionally(failure -> refused(key, failure));
  }

  private static Coordinator refused(String key, Throwable failure) {
    Errors error = KafkaErrors.of(failure);
    return new Coordinator().setKey(key)
        .setErrorCode(error.code())
        .setErrorMessage(KafkaErrors.exception(failure).getMessage())
        .setNodeId(-1)
        .setHost("")
        .setPort(-1);
  }
}
