package io.sparklog.door.api;

import io.sparklog.door.cluster.ServedTopics;
import io.sparklog.door.cluster.Servers;
import io.sparklog.door.security.Rights;
import io.sparklog.log.State;
import io.sparklog.spec.Option;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.DescribeConfigsRequestData.DescribeConfigsResource;
import org.apache.kafka.common.message.DescribeConfigsResponseData;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResourceResult;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResult;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsSynonym;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.DescribeConfigsRequest;
import org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource;
import org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType;

/**
 * Tells the settings of topics and of this server.
 *
 * @param settings of this server
 */
public record DescribeConfigsHandler(ServedTopics topics, Servers servers, SortedMap<String, String> settings,
    Work work) implements Handler<DescribeConfigsRequest> {
  /** Settings of Kafka that clients look for, and that a topic of partlog does not have: nothing is compacted, and a commit is enough. */
  private static final Map<String, String> FIXED = Map.of("cleanup.policy", "delete", "min.insync.replicas", "1");

  @Override
  public CompletableFuture<DescribeConfigsResponseData> answer(Asked asked, DescribeConfigsRequest request) {
    return work.run(() -> {
      List<DescribeConfigsResult> results = request.data().resources().stream().map(resource -> result(asked.rights(), resource)).toList();
      if (!request.data().includeSynonyms()) {
        results.forEach(result -> result.configs().forEach(config -> config.setSynonyms(List.of())));
      }
      return new DescribeConfigsResponseData().setResults(results);
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
    TreeMap<String, String> all = new TreeMap<>(FIXED);
    all.putAll(state.config().settings());
    all.remove("partitions");
    return all.entrySet().stream().map(entry -> config(entry, isDefault(state, entry), ConfigSource.TOPIC_CONFIG)).toList();
  }

  private static boolean isDefault(State state, Map.Entry<String, String> entry) {
    boolean isKept = state.config().entries().containsKey(entry.getKey());
    return !isKept || state.config().isKnown(entry.getKey()) && entry.getValue().equals(Option.ofTopic(entry.getKey()).defaultValue());
  }

  private List<DescribeConfigsResourceResult> ofServer(String node) {
    if (!node.isEmpty() && !node.equals(Integer.toString(servers.self().node()))) {
      throw Errors.INVALID_REQUEST.exception("A server tells its own settings alone: its node is " + servers.self().node() + ".");
    }
    return settings.entrySet().stream().map(entry -> config(entry, false, ConfigSource.STATIC_BROKER_CONFIG)).toList();
  }

  private static DescribeConfigsResourceResult config(Map.Entry<String, String> entry, boolean isDefault, ConfigSource source) {
    ConfigSource from = isDefault ? ConfigSource.DEFAULT_CONFIG : source;
    return new DescribeConfigsResourceResult().setName(entry.getKey())
        .setValue(entry.getValue())
        .setConfigSource(from.id())
        .setReadOnly(source == ConfigSource.STATIC_BROKER_CONFIG)
        .setConfigType(type(entry.getValue()).id())
        .setSynonyms(List.of(new DescribeConfigsSynonym().setName(entry.getKey()).setValue(entry.getValue()).setSource(from.id())));
  }

  private static ConfigType type(String value) {
    return value.equals("true") || value.equals("false")
        ? ConfigType.BOOLEAN
        : value.matches("-?[0-9]{1,18}") ? ConfigType.LONG : ConfigType.STRING;
  }
}
