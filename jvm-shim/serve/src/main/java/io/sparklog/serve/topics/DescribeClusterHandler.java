package io.sparklog.serve.topics;

import io.sparklog.serve.members.Address;
import io.sparklog.serve.members.Servers;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.DescribeClusterResponseData.DescribeClusterBroker;
import org.apache.kafka.common.message.DescribeClusterResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.DescribeClusterRequest;
import org.apache.kafka.common.requests.DescribeClusterResponse;

/** Tells the servers of the root. There are no controllers. */
public record DescribeClusterHandler(Servers servers) implements Handler<DescribeClusterRequest> {
  private static final byte BROKERS = 1;

  @Override
  public CompletableFuture<DescribeClusterResponse> answer(ClientRequest asked, DescribeClusterRequest request) {
    if (request.data().endpointType() != BROKERS) {
      throw Errors.MISMATCHED_ENDPOINT_TYPE.exception();
    }
    DescribeClusterResponseData data = new DescribeClusterResponseData().setClusterId(servers.clusterId())
        .setControllerId(servers.self().node())
        .setEndpointType(BROKERS);
    servers.at(asked.listener().name()).forEach((node, address) -> data.brokers().add(broker(node, address)));
    if (request.data().includeClusterAuthorizedOperations()) {
      data.setClusterAuthorizedOperations(AuthorizedOperations.ofCluster(asked.rights()));
    }
    return CompletableFuture.completedFuture(new DescribeClusterResponse(data));
  }

  private static DescribeClusterBroker broker(int node, Address address) {
    return new DescribeClusterBroker().setBrokerId(node).setHost(address.host()).setPort(address.port());
  }
}
