package io.sparklog.serve.topics;

import io.sparklog.serve.members.Servers;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.Workers;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.ListConfigResourcesResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ListConfigResourcesRequest;
import org.apache.kafka.common.requests.ListConfigResourcesResponse;

/** Tells the names of topics and servers, whose settings DescribeConfigs tells. */
public record ListConfigResourcesHandler(ServedTopics topics, Servers servers,
    Workers work) implements Handler<ListConfigResourcesRequest> {
  @Override
  public CompletableFuture<ListConfigResourcesResponse> answer(ClientRequest asked, ListConfigResourcesRequest request) {
    return work.run(() -> {
      Set<Byte> types = Set.copyOf(request.data().resourceTypes());
      if (!request.supportedResourceTypes().containsAll(types)) {
        throw Errors.UNSUPPORTED_VERSION.exception();
      }
      ListConfigResourcesResponseData data = new ListConfigResourcesResponseData();
      if (isAsked(request, types, ConfigResource.Type.TOPIC)) {
        topics.all().keySet().stream().filter(asked.rights()::mayRead).forEach(name -> add(data, name, ConfigResource.Type.TOPIC));
      }
      if (isAsked(request, types, ConfigResource.Type.BROKER)) {
        servers.at(asked.listener().name()).keySet().forEach(node -> add(data, Integer.toString(node), ConfigResource.Type.BROKER));
      }
      return new ListConfigResourcesResponse(data);
    });
  }

  /** Version 0 asks for the metrics of clients alone, and no type stands for all types. */
  private static boolean isAsked(ListConfigResourcesRequest request, Set<Byte> types, ConfigResource.Type type) {
    return request.version() > 0 && (types.isEmpty() || types.contains(type.id()));
  }

  private static void add(ListConfigResourcesResponseData data, String name, ConfigResource.Type type) {
    data.configResources().add(new ListConfigResourcesResponseData.ConfigResource().setResourceName(name).setResourceType(type.id()));
  }
}
