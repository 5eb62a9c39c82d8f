package io.sparklog.serve.topics;

import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.Workers;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.common.message.IncrementalAlterConfigsRequestData.AlterConfigsResource;
import org.apache.kafka.common.message.IncrementalAlterConfigsRequestData.AlterableConfig;
import org.apache.kafka.common.message.IncrementalAlterConfigsResponseData.AlterConfigsResourceResponse;
import org.apache.kafka.common.message.IncrementalAlterConfigsResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.IncrementalAlterConfigsRequest;
import org.apache.kafka.common.requests.IncrementalAlterConfigsResponse;

/** Changes the settings of topics that a client names. */
public record IncrementalAlterConfigsHandler(Operators operators, Workers work) implements Handler<IncrementalAlterConfigsRequest> {
  @Override
  public CompletableFuture<IncrementalAlterConfigsResponse> answer(ClientRequest asked, IncrementalAlterConfigsRequest request) {
    return work.run(() -> {
      IncrementalAlterConfigsResponseData data = new IncrementalAlterConfigsResponseData();
      request.data().resources().forEach(resource -> data.responses().add(changed(asked, resource, request.data().validateOnly())));
      return new IncrementalAlterConfigsResponse(data);
    });
  }

  private AlterConfigsResourceResponse changed(ClientRequest asked, AlterConfigsResource resource, boolean validateOnly) {
    ApiError error = SettingsChange.make(operators, asked, resource.resourceType(), resource.resourceName(), validateOnly, state -> {
      Map<String, String> changes = new HashMap<>();
      resource.configs().forEach(config -> changes.putAll(change(resource.resourceName(), config)));
      return changes;
    });
    return new AlterConfigsResourceResponse().setResourceType(resource.resourceType())
        .setResourceName(resource.resourceName())
        .setErrorCode(error.error().code())
        .setErrorMessage(error.message());
  }

  private static Map<String, String> change(String topic, AlterableConfig config) {
    OpType type = OpType.forId(config.configOperation());
    if (type == OpType.DELETE) {
      return TopicSettings.reset(topic, config.name());
    }
    if (type != OpType.SET) {
      throw Errors.INVALID_CONFIG.exception("The setting " + config.name() + " can be set or deleted. Give its whole value.");
    }
    Map<String, String> given = new HashMap<>();
    given.put(config.name(), config.value());
    return TopicSettings.changes(given);
  }
}
