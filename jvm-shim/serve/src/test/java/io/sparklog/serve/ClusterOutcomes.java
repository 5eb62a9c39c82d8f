package io.sparklog.serve;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.log.Root;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.message.CreateAclsRequestData.AclCreation;
import org.apache.kafka.common.message.CreateAclsRequestData;
import org.apache.kafka.common.message.DeleteAclsRequestData.DeleteAclsFilter;
import org.apache.kafka.common.message.DeleteAclsRequestData;
import org.apache.kafka.common.message.DescribeAclsRequestData;
import org.apache.kafka.common.message.DescribeClusterRequestData;
import org.apache.kafka.common.message.DescribeConfigsRequestData.DescribeConfigsResource;
import org.apache.kafka.common.message.DescribeConfigsRequestData;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResult;
import org.apache.kafka.common.message.DescribeLogDirsRequestData;
import org.apache.kafka.common.message.DescribeTopicPartitionsRequestData.Cursor;
import org.apache.kafka.common.message.DescribeTopicPartitionsRequestData.TopicRequest;
import org.apache.kafka.common.message.DescribeTopicPartitionsRequestData;
import org.apache.kafka.common.message.DescribeTopicPartitionsResponseData;
import org.apache.kafka.common.message.ListConfigResourcesRequestData;
import org.apache.kafka.common.message.MetadataRequestData.MetadataRequestTopic;
import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiVersionsResponse;
import org.apache.kafka.common.requests.CreateAclsResponse;
import org.apache.kafka.common.requests.DeleteAclsResponse;
import org.apache.kafka.common.requests.DescribeAclsResponse;
import org.apache.kafka.common.requests.DescribeClusterResponse;
import org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource;
import org.apache.kafka.common.requests.DescribeConfigsResponse;
import org.apache.kafka.common.requests.DescribeLogDirsResponse;
import org.apache.kafka.common.requests.DescribeTopicPartitionsResponse;
import org.apache.kafka.common.requests.ListConfigResourcesResponse;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Outcomes of the requests about the cluster, the topics and the settings. The topic {@code t} has 3 partitions. */
final class ClusterOutcomes {
  private ClusterOutcomes() {}

  static List<Outcome> all(Root root) {
    Uuid id = Uuid.fromString(root.state("t").topicId());
    Uuid unknown = new Uuid(1, 2);
    return List.of(Outcome.<ApiVersionsResponse>of("the versions", ApiKeys.API_VERSIONS,
        new ApiVersionsRequestData().setClientSoftwareName("raw").setClientSoftwareVersion("1"), (answer, version) -> {
          error(Errors.NONE, answer.data().errorCode());
          assertEquals(ApiKeys.METADATA.latestVersion(), answer.apiVersion(ApiKeys.METADATA.id).maxVersion());
          assertNull(answer.apiVersion(ApiKeys.ELECT_LEADERS.id));
        }),
        Outcome
            .<ApiVersionsResponse>of("an illegal name of a client", ApiKeys.API_VERSIONS,
                new ApiVersionsRequestData().setClientSoftwareName("a b").setClientSoftwareVersion("1"),
                (answer, version) -> error(Errors.INVALID_REQUEST, answer.data().errorCode()))
            .from(3),
        Outcome.<MetadataResponse>of("a topic by name", ApiKeys.METADATA, metadata(new MetadataRequestTopic().setName("t")),
            (answer, version) -> {
              MetadataResponseTopic topic = answer.data().topics().iterator().next();
              error(Errors.NONE, topic.errorCode());
              assertEquals("t", topic.name());
              assertEquals(version < 10 ? Uuid.ZERO_UUID : id, topic.topicId());
              assertEquals(3, topic.partitions().size());
              int node = answer.data().brokers().iterator().next().nodeId();
              topic.partitions().forEach(partition -> assertEquals(node, partition.leaderId()));
              topic.partitions().forEach(partition -> assertEquals(List.of(node), partition.isrNodes()));
            }),
        Outcome.<MetadataResponse>of("a topic by id", ApiKeys.METADATA, metadata(new MetadataRequestTopic().setName(null).setTopicId(id)),
            (answer, version) -> assertEquals("t", answer.data().topics().iterator().next().name())).from(12),
        Outcome
            .<MetadataResponse>of("an unknown id", ApiKeys.METADATA, metadata(new MetadataRequestTopic().setName(null).setTopicId(unknown)),
                (answer, version) -> error(Errors.UNKNOWN_TOPIC_ID, answer.data().topics().iterator().next().errorCode()))
            .from(12),
        Outcome
            .<MetadataResponse>of("an unknown name", ApiKeys.METADATA,
                metadata(new MetadataRequestTopic().setName("absent")).setAllowAutoTopicCreation(false),
                (answer, version) -> error(Errors.UNKNOWN_TOPIC_OR_PARTITION, answer.data().topics().iterator().next().errorCode()))
            .from(4),
        Outcome.<MetadataResponse>of("an illegal name", ApiKeys.METADATA, metadata(new MetadataRequestTopic().setName("a/b")),
            (answer, version) -> error(Errors.INVALID_TOPIC_EXCEPTION, answer.data().topics().iterator().next().errorCode())),
        Outcome
            .<MetadataResponse>of("all topics", ApiKeys.METADATA, new MetadataRequestData().setTopics(null),
                (answer, version) -> assertTrue(answer.data().topics().stream().anyMatch(topic -> topic.name().equals("t"))))
            .from(1),
        Outcome
            .<MetadataResponse>of("rights", ApiKeys.METADATA,
                metadata(new MetadataRequestTopic().setName("t")).setIncludeTopicAuthorizedOperations(true),
                (answer, version) -> assertTrue(answer.data().topics().iterator().next().topicAuthorizedOperations() > 0))
            .from(8),
        Outcome.<DescribeClusterResponse>of("the servers", ApiKeys.DESCRIBE_CLUSTER,
            new DescribeClusterRequestData().setIncludeClusterAuthorizedOperations(true), (answer, version) -> {
              error(Errors.NONE, answer.data().errorCode());
              assertEquals(1, answer.nodes().size());
              assertEquals(answer.data().controllerId(), answer.nodes().keySet().iterator().next());
              assertTrue(answer.data().clusterAuthorizedOperations() > 0);
            }),
        Outcome.<DescribeClusterResponse>of("controllers", ApiKeys.DESCRIBE_CLUSTER,
            new DescribeClusterRequestData().setEndpointType((byte) 2),
            (answer, version) -> error(Errors.MISMATCHED_ENDPOINT_TYPE, answer.data().errorCode())).from(1),
        Outcome.<DescribeTopicPartitionsResponse>of("the first page", ApiKeys.DESCRIBE_TOPIC_PARTITIONS, partitions(2, "t"),
            (answer, version) -> {
              assertEquals(List.of(0, 1), indexes(answer.data()));
              assertEquals(2, answer.data().nextCursor().partitionIndex());
            }),
        Outcome.<DescribeTopicPartitionsResponse>of("the last page", ApiKeys.DESCRIBE_TOPIC_PARTITIONS,
            partitions(2, "t").setCursor(new Cursor().setTopicName("t").setPartitionIndex(2)), (answer, version) -> {
              assertEquals(List.of(2), indexes(answer.data()));
              assertNull(answer.data().nextCursor());
            }),
        Outcome.<DescribeTopicPartitionsResponse>of("an unknown name", ApiKeys.DESCRIBE_TOPIC_PARTITIONS, partitions(2, "absent"),
            (answer, version) -> error(Errors.UNKNOWN_TOPIC_OR_PARTITION, answer.data().topics().iterator().next().errorCode())),
        Outcome.<DescribeTopicPartitionsResponse>of("no room", ApiKeys.DESCRIBE_TOPIC_PARTITIONS, partitions(0, "t"),
            (answer, version) -> error(Errors.INVALID_REQUEST, answer.data().topics().iterator().next().errorCode())),
        Outcome.<DescribeConfigsResponse>of("a topic", ApiKeys.DESCRIBE_CONFIGS, configs(ConfigResource.Type.TOPIC, "t"),
            (answer, version) -> {
              DescribeConfigsResult topic = answer.data().results().get(0);
              error(Errors.NONE, topic.errorCode());
              assertEquals("-1", value(topic, "retention.bytes"));
              assertEquals("delete", value(topic, "cleanup.policy"));
              assertEquals("uncompressed", value(topic, "compression.type"), "Kafka does not know none");
              assertNull(value(topic, "partitions"));
              topic.configs().forEach(config -> {
                boolean isOfKafka = LogConfig.configNames().contains(config.name());
                assertEquals(!isOfKafka, config.readOnly(), config.name());
                assertNotEquals(ConfigSource.TOPIC_CONFIG.id(), config.configSource(), config.name() + ", which nobody set");
                if (isOfKafka) {
                  LogConfig.validate(Map.of(config.name(), config.value())); // As a broker does that gets a copy.
                }
              });
            }),
        Outcome.<DescribeConfigsResponse>of("an unknown topic", ApiKeys.DESCRIBE_CONFIGS, configs(ConfigResource.Type.TOPIC, "absent"),
            (answer, version) -> error(Errors.UNKNOWN_TOPIC_OR_PARTITION, answer.data().results().get(0).errorCode())),
        Outcome.<DescribeConfigsResponse>of("this server", ApiKeys.DESCRIBE_CONFIGS, configs(ConfigResource.Type.BROKER, ""),
            (answer, version) -> assertTrue(value(answer.data().results().get(0), "advertised.listeners").startsWith("PLAINTEXT://127."))),
        Outcome.<DescribeConfigsResponse>of("another server", ApiKeys.DESCRIBE_CONFIGS, configs(ConfigResource.Type.BROKER, "1"),
            (answer, version) -> error(Errors.INVALID_REQUEST, answer.data().results().get(0).errorCode())),
        Outcome.<DescribeConfigsResponse>of("loggers", ApiKeys.DESCRIBE_CONFIGS, configs(ConfigResource.Type.BROKER_LOGGER, "1"),
            (answer, version) -> error(Errors.INVALID_REQUEST, answer.data().results().get(0).errorCode())),
        Outcome.<ListConfigResourcesResponse>of("the names", ApiKeys.LIST_CONFIG_RESOURCES, new ListConfigResourcesRequestData(),
            (answer, version) -> assertEquals(version == 0 ? List.of() : List.of("t"),
                answer.data()
                    .configResources()
                    .stream()
                    .filter(each -> each.resourceType() == ConfigResource.Type.TOPIC.id())
                    .map(each -> each.resourceName())
                    .filter("t"::equals)
                    .toList())),
        Outcome.<DescribeAclsResponse>of("all ACLs", ApiKeys.DESCRIBE_ACLS,
            new DescribeAclsRequestData().setResourceTypeFilter((byte) 1)
                .setPatternTypeFilter((byte) 1)
                .setOperation((byte) 1)
                .setPermissionType((byte) 1),
            (answer, version) -> error(Errors.SECURITY_DISABLED, answer.data().errorCode())),
        Outcome.<CreateAclsResponse>of("an ACL", ApiKeys.CREATE_ACLS,
            new CreateAclsRequestData().setCreations(List.of(new AclCreation().setResourceType((byte) 2)
                .setResourceName("t")
                .setPrincipal("User:a")
                .setHost("*")
                .setOperation((byte) 2)
                .setPermissionType((byte) 3))),
            (answer, version) -> error(Errors.SECURITY_DISABLED, answer.results().get(0).errorCode())),
        Outcome.<DeleteAclsResponse>of("an ACL", ApiKeys.DELETE_ACLS,
            new DeleteAclsRequestData().setFilters(List.of(new DeleteAclsFilter().setResourceTypeFilter((byte) 2)
                .setPatternTypeFilter((byte) 3)
                .setOperation((byte) 2)
                .setPermissionType((byte) 3))),
            (answer, version) -> error(Errors.SECURITY_DISABLED, answer.filterResults().get(0).errorCode())),
        Outcome.<DescribeLogDirsResponse>of("all partitions", ApiKeys.DESCRIBE_LOG_DIRS, new DescribeLogDirsRequestData().setTopics(null),
            (answer, version) -> {
              var partitions = answer.data().results().get(0).topics().stream().filter(each -> each.name().equals("t")).findAny().get();
              assertEquals(3, partitions.partitions().size());
              assertTrue(partitions.partitions().get(0).partitionSize() > 0);
            }));
  }

  private static void error(Errors expected, short code) {
    assertEquals(expected, Errors.forCode(code));
  }

  private static MetadataRequestData metadata(MetadataRequestTopic topic) {
    return new MetadataRequestData().setTopics(List.of(topic)).setAllowAutoTopicCreation(true);
  }

  private static DescribeTopicPartitionsRequestData partitions(int limit, String name) {
    return new DescribeTopicPartitionsRequestData().setTopics(List.of(new TopicRequest().setName(name))).setResponsePartitionLimit(limit);
  }

  private static List<Integer> indexes(DescribeTopicPartitionsResponseData answer) {
    return answer.topics().iterator().next().partitions().stream().map(partition -> partition.partitionIndex()).toList();
  }

  private static DescribeConfigsRequestData configs(ConfigResource.Type type, String name) {
    DescribeConfigsResource resource = new DescribeConfigsResource().setResourceType(type.id())
        .setResourceName(name)
        .setConfigurationKeys(null);
    return new DescribeConfigsRequestData().setResources(List.of(resource));
  }

  private static String value(DescribeConfigsResult result, String key) {
    return result.configs().stream().filter(config -> config.name().equals(key)).map(config -> config.value()).findAny().orElse(null);
  }
}
