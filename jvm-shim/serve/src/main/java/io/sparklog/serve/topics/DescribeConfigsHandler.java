package io.sparklog.serve.topics;

import io.sparklog.log.State;
import io.sparklog.serve.members.Servers;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.serve.security.Rights;
import java.util.List;
import java.util.SortedMap;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.DescribeConfigsRequestData.DescribeConfigsResource;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResourceResult;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResult;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsSynonym;
import org.apache.kafka.common.message.DescribeConfigsResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.DescribeConfigsRequest;
import org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource;
import org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType;
import org.apache.kafka.common.requests.DescribeConfigsResponse;

/**
 * Tells the settings of topics and of this server.
 *
 * @param settings of this server
 */
public record DescribeConfigsHandler(ServedTopics topics, Servers servers, SortedMap<String, String> settings,
    Workers work) implements Handler<DescribeConfigsRequest> {
  @Override
  public CompletableFuture<DescribeConfigsResponse> answer(ClientRequest asked, DescribeConfigsRequest request) {
    return work.run(() -> {
      List<DescribeConfigsResult> results = request.data().resources().stream().map(resource -> result(asked.rights(), resource)).toList();
      if (!request.data().includeSynonyms()) {
        results.forEach(result -> result.configs().forEach(config -> config.setSynonyms(List.of())));
      }
      return new DescribeConfigsResponse(new DescribeConfigsResponseData().setResults(results));
    });
  }

  private DescribeConfigsResult result(Rights rights, DescribeConfigsResource resource) {
    DescribeConfigsResult result = new DescribeConfigsResult().setResourceType(resource.resourceType())
        .setResourceName(resource.resourceName());
    try {
      List<DescribeConfigsResourceResult> configs = switch (ConfigResource.Type.forId(resource.resourceType())) {
        case TOPIC -> ofTopic(rights, resource.resourceName());
        case BROKER -> ofServer(resource.resourceName());
        case GROUP, CLIENT_METRICS -> List.of();
        default -> throw Errors.INVALID_REQUEST.exception("Topics, brokers, groups and client metrics alone have settings.");
      };
      List<String> keys = resource.configurationKeys();
      result.setConfigs(configs.stream().filter(config -> keys == null || keys.contains(config.name())).toList());
    } catch (RuntimeException e) {
      result.setErrorCode(KafkaErrors.of(e).code()).setErrorMessage(KafkaErrors.exception(e).getMessage());
    }
    return result;
  }

  private List<DescribeConfigsResourceResult> ofTopic(Rights rights, String name) {
    if (!rights.mayRead(name)) {
      throw Errors.TOPIC_AUTHORIZATION_FAILED.exception();
    }
    State state = topics.newest(name).orElseThrow(() -> Errors.UNKNOWN_TOPIC_OR_PARTITION.exception());
    return TopicSettings.told(name, state.config()).stream().map(DescribeConfigsHandler::config).toList();
  }

  private List<DescribeConfigsResourceResult> ofServer(String node) {
    if (!node.isEmpty() && !node.equals(Integer.toString(servers.self().node()))) {
      throw Errors.INVALID_REQUEST.exception("A server tells its own settings alone: its node is " + servers.self().node() + ".");
    }
    return settings.entrySet()
        .stream()
        .map(entry -> config(new TopicSettings.Told(entry.getKey(), entry.getValue(), ConfigSource.STATIC_BROKER_CONFIG, true)))
        .toList();
  }

  private static DescribeConfigsResourceResult config(TopicSettings.Told told) {
    byte source = told.source().id();
    return new DescribeConfigsResourceResult().setName(told.name())
        .setValue(told.value())
        .setConfigSource(source)
        .setReadOnly(told.readOnly())
        .setConfigType(type(told.value()).id())
        .setSynonyms(List.of(new DescribeConfigsSynonym().setName(told.name()).setValue(told.value()).setSource(source)));
  }

  private static ConfigType type(String value) {
    return value.equals("true") || value.equals("false")
        ? ConfigType.BOOLEAN
        : value.matches("-?[0-9]{1,18}") ? ConfigType.LONG : ConfigType.STRING;
  }
}
