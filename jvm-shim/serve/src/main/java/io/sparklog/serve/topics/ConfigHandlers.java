package io.sparklog.serve.topics;

import io.sparklog.log.State;
import io.sparklog.serve.members.Servers;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handlers;
import io.sparklog.serve.protocol.KafkaErrors;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.function.Function;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.AlterConfigsResponseData;
import org.apache.kafka.common.message.DescribeConfigsRequestData.DescribeConfigsResource;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResourceResult;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResult;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsSynonym;
import org.apache.kafka.common.message.DescribeConfigsResponseData;
import org.apache.kafka.common.message.IncrementalAlterConfigsRequestData.AlterableConfig;
import org.apache.kafka.common.message.IncrementalAlterConfigsResponseData;
import org.apache.kafka.common.message.ListConfigResourcesResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AlterConfigsRequest;
import org.apache.kafka.common.requests.AlterConfigsResponse;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.DescribeConfigsRequest;
import org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource;
import org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType;
import org.apache.kafka.common.requests.DescribeConfigsResponse;
import org.apache.kafka.common.requests.IncrementalAlterConfigsRequest;
import org.apache.kafka.common.requests.IncrementalAlterConfigsResponse;
import org.apache.kafka.common.requests.ListConfigResourcesRequest;
import org.apache.kafka.common.requests.ListConfigResourcesResponse;

/**
 * The requests about the settings of topics and of this server.
 *
 * @param settings of this server
 */
record ConfigHandlers(TopicChanges operators, Servers servers, SortedMap<String, String> settings) {
  /** @param mayChange whether the clients of the listener may change settings */
  void addTo(Handlers handlers, boolean mayChange) {
    handlers.addBlocking(ApiKeys.DESCRIBE_CONFIGS, this::describe).addBlocking(ApiKeys.LIST_CONFIG_RESOURCES, this::list);
    if (mayChange) {
      handlers.addBlocking(ApiKeys.INCREMENTAL_ALTER_CONFIGS, this::alter).addBlocking(ApiKeys.ALTER_CONFIGS, this::alterAll);
    }
  }

  private DescribeConfigsResponse describe(ClientRequest asked, DescribeConfigsRequest request) {
    List<DescribeConfigsResult> results = request.data().resources().stream().map(resource -> described(asked, resource)).toList();
    if (!request.data().includeSynonyms()) {
      results.forEach(result -> result.configs().forEach(config -> config.setSynonyms(List.of())));
    }
    return new DescribeConfigsResponse(new DescribeConfigsResponseData().setResults(results));
  }

  private DescribeConfigsResult described(ClientRequest asked, DescribeConfigsResource resource) {
    DescribeConfigsResult result = new DescribeConfigsResult();
    ApiError error = KafkaErrors.attempt(() -> {
      List<TopicSettings.Told> told = switch (ConfigResource.Type.forId(resource.resourceType())) {
        case TOPIC -> TopicSettings.told(resource.resourceName(), operators.topics().readable(asked, resource.resourceName()).config());
        case BROKER -> ofServer(resource.resourceName());
        case GROUP, CLIENT_METRICS -> List.of();
        default -> throw Errors.INVALID_REQUEST.exception("Topics, brokers, groups and client metrics alone have settings.");
      };
      List<String> keys = resource.configurationKeys();
      result.setConfigs(told.stream().filter(each -> keys == null || keys.contains(each.name())).map(ConfigHandlers::config).toList());
    });
    return result.setResourceType(resource.resourceType())
        .setResourceName(resource.resourceName())
        .setErrorCode(error.error().code())
        .setErrorMessage(error.message());
  }

  private List<TopicSettings.Told> ofServer(String node) {
    if (!node.isEmpty() && !node.equals(Integer.toString(servers.self().node()))) {
      throw Errors.INVALID_REQUEST.exception("A server tells its own settings alone: its node is " + servers.self().node() + ".");
    }
    return settings.entrySet()
        .stream()
        .map(entry -> new TopicSettings.Told(entry.getKey(), entry.getValue(), ConfigSource.STATIC_BROKER_CONFIG, true))
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

  /** Tells the names of topics and servers, whose settings {@link #describe} tells. */
  private ListConfigResourcesResponse list(ClientRequest asked, ListConfigResourcesRequest request) {
    Set<Byte> types = Set.copyOf(request.data().resourceTypes());
    if (!request.supportedResourceTypes().containsAll(types)) {
      throw Errors.UNSUPPORTED_VERSION.exception();
    }
    ListConfigResourcesResponseData data = new ListConfigResourcesResponseData();
    if (isAsked(request, types, ConfigResource.Type.TOPIC)) {
      operators.topics().all(asked).forEach(state -> add(data, state.topic(), ConfigResource.Type.TOPIC));
    }
    if (isAsked(request, types, ConfigResource.Type.BROKER)) {
      servers.at(asked.listener().name()).keySet().forEach(node -> add(data, Integer.toString(node), ConfigResource.Type.BROKER));
    }
    return new ListConfigResourcesResponse(data);
  }

  /** Version 0 asks for the metrics of clients alone, and no type stands for all types. */
  private static boolean isAsked(ListConfigResourcesRequest request, Set<Byte> types, ConfigResource.Type type) {
    return request.version() > 0 && (types.isEmpty() || types.contains(type.id()));
  }

  private static void add(ListConfigResourcesResponseData data, String name, ConfigResource.Type type) {
    data.configResources().add(new ListConfigResourcesResponseData.ConfigResource().setResourceName(name).setResourceType(type.id()));
  }

  /** Changes the settings of topics that a client names. */
  private IncrementalAlterConfigsResponse alter(ClientRequest asked, IncrementalAlterConfigsRequest request) {
    IncrementalAlterConfigsResponseData data = new IncrementalAlterConfigsResponseData();
    request.data().resources().forEach(resource -> {
      String name = resource.resourceName();
      ApiError error = change(asked, resource.resourceType(), name, request.data().validateOnly(), state -> {
        Map<String, String> changes = new HashMap<>();
        resource.configs().forEach(config -> changes.putAll(change(name, config)));
        return changes;
      });
      data.responses()
          .add(new IncrementalAlterConfigsResponseData.AlterConfigsResourceResponse().setResourceType(resource.resourceType())
              .setResourceName(name)
              .setErrorCode(error.error().code())
              .setErrorMessage(error.message()));
    });
    return new IncrementalAlterConfigsResponse(data);
  }

  private static Map<String, String> change(String topic, AlterableConfig config) {
    OpType type = OpType.forId(config.configOperation());
    if (type == OpType.DELETE) {
      return TopicSettings.reset(topic, config.name());
    }
    if (type != OpType.SET) {
      throw Errors.INVALID_CONFIG.exception("The setting " + config.name() + " can be set or deleted. Give its whole value.");
    }
    return TopicSettings.changes(Collections.singletonMap(config.name(), config.value())); // The value may be null.
  }

  /**
   * Changes all settings of topics: the settings that a client does not name get their defaults. Older clients know this request alone.
   * Settings that Kafka does not know stay, since a client cannot name them.
   */
  private AlterConfigsResponse alterAll(ClientRequest asked, AlterConfigsRequest request) {
    AlterConfigsResponseData data = new AlterConfigsResponseData();
    request.data().resources().forEach(resource -> {
      String name = resource.resourceName();
      ApiError error = change(asked, resource.resourceType(), name, request.data().validateOnly(), state -> {
        Map<String, String> changes = TopicSettings.resetAll(name, state.config());
        Map<String, String> given = new HashMap<>();
        resource.configs().forEach(config -> given.put(config.name(), config.value()));
        changes.putAll(TopicSettings.changes(given));
        return changes;
      });
      data.responses()
          .add(new AlterConfigsResponseData.AlterConfigsResourceResponse().setResourceType(resource.resourceType())
              .setResourceName(name)
              .setErrorCode(error.error().code())
              .setErrorMessage(error.message()));
    });
    return new AlterConfigsResponse(data);
  }

  /** @param changes the settings that change, with their values, by the newest state of the topic */
  private ApiError change(ClientRequest asked, byte type, String name, boolean validateOnly, Function<State, Map<String, String>> changes) {
    return KafkaErrors.attempt(() -> {
      if (type != ConfigResource.Type.TOPIC.id()) {
        throw Errors.INVALID_REQUEST.exception("Settings of topics alone can be changed. Give a server its settings when it starts.");
      }
      Map<String, String> made = changes.apply(operators.changeable(asked, name));
      if (!validateOnly && !made.isEmpty()) {
        operators.of(name).configure(made);
      }
    });
  }
}
