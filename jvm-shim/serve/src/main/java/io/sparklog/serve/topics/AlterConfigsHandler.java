package io.sparklog.serve.topics;

import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.Workers;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.AlterConfigsRequestData.AlterConfigsResource;
import org.apache.kafka.common.message.AlterConfigsResponseData.AlterConfigsResourceResponse;
import org.apache.kafka.common.message.AlterConfigsResponseData;
import org.apache.kafka.common.requests.AlterConfigsRequest;
import org.apache.kafka.common.requests.AlterConfigsResponse;
import org.apache.kafka.common.requests.ApiError;

/**
 * Changes all settings of topics: the settings that a client does not name get their defaults. Older clients know this request alone.
 * Settings that Kafka does not know stay, since a client cannot name them.
 */
public record AlterConfigsHandler(Operators operators, Workers work) implements Handler<AlterConfigsRequest> {
  @Override
  public CompletableFuture<AlterConfigsResponse> answer(ClientRequest asked, AlterConfigsRequest request) {
    return work.run(() -> {
      AlterConfigsResponseData data = new AlterConfigsResponseData();
      request.data().resources().forEach(resource -> data.responses().add(changed(asked, resource, request.data().validateOnly())));
      return new AlterConfigsResponse(data);
    });
  }

  private AlterConfigsResourceResponse changed(ClientRequest asked, AlterConfigsResource resource, boolean validateOnly) {
    ApiError error = SettingsChange.make(operators, asked, resource.resourceType(), resource.resourceName(), validateOnly, state -> {
      Map<String, String> changes = new HashMap<>(TopicSettings.resetAll(resource.resourceName(), state.config()));
      Map<String, String> given = new HashMap<>();
      resource.configs().forEach(config -> given.put(config.name(), config.value()));
      changes.putAll(TopicSettings.changes(given));
      return changes;
    });
    return new AlterConfigsResourceResponse().setResourceType(resource.resourceType())
        .setResourceName(resource.resourceName())
        .setErrorCode(error.error().code())
        .setErrorMessage(error.message());
  }
}
