package io.sparklog.serve;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.AlterConfigsRequestData;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsTopic;
import org.apache.kafka.common.message.CreatePartitionsRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopicConfig;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.DeleteRecordsRequestData.DeleteRecordsPartition;
import org.apache.kafka.common.message.DeleteRecordsRequestData.DeleteRecordsTopic;
import org.apache.kafka.common.message.DeleteRecordsRequestData;
import org.apache.kafka.common.message.DeleteTopicsRequestData.DeleteTopicState;
import org.apache.kafka.common.message.DeleteTopicsRequestData;
import org.apache.kafka.common.message.IncrementalAlterConfigsRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AlterConfigsResponse;
import org.apache.kafka.common.requests.CreatePartitionsResponse;
import org.apache.kafka.common.requests.CreateTopicsResponse;
import org.apache.kafka.common.requests.DeleteRecordsResponse;
import org.apache.kafka.common.requests.DeleteTopicsResponse;
import org.apache.kafka.common.requests.IncrementalAlterConfigsResponse;

/** Outcomes of the requests that change topics. They leave the topic {@code t} as it is. */
final class TopicOutcomes {
  private TopicOutcomes() {}

  static List<Outcome> all() {
    return List.of(created("a new topic", "new", 3, Map.of("cleanup.policy", "compact", "retention.ms", "1000"), Errors.NONE),
        created("the server's number of partitions", "new", -1, Map.of(), Errors.NONE).from(4),
        created("an existing topic", "t", 3, Map.of(), Errors.TOPIC_ALREADY_EXISTS),
        created("an illegal name", "a/b", 3, Map.of(), Errors.INVALID_TOPIC_EXCEPTION),
        created("the topic of groups", "__consumer_offsets", 3, Map.of(), Errors.TOPIC_AUTHORIZATION_FAILED),
        created("no partition", "new", 0, Map.of(), Errors.INVALID_PARTITIONS),
        created("an unknown setting", "new", 1, Map.of("retention", "1"), Errors.INVALID_CONFIG),
        created("a wrong value", "new", 1, Map.of("retention.ms", "x"), Errors.INVALID_CONFIG),
        created("a wrong value of Kafka's", "new", 1, Map.of("cleanup.policy", "x"), Errors.INVALID_CONFIG),
        Outcome
            .<DeleteTopicsResponse>of("an unknown name", ApiKeys.DELETE_TOPICS,
                new DeleteTopicsRequestData().setTopicNames(List.of("absent")).setTimeoutMs(1000),
                (answer, version) -> error(Errors.UNKNOWN_TOPIC_OR_PARTITION, answer.data().responses().iterator().next().errorCode()))
            .to(5),
        Outcome
            .<DeleteTopicsResponse>of("an unknown id", ApiKeys.DELETE_TOPICS,
                new DeleteTopicsRequestData().setTopics(List.of(new DeleteTopicState().setName(null).setTopicId(new Uuid(1, 2)))),
                (answer, version) -> error(Errors.UNKNOWN_TOPIC_ID, answer.data().responses().iterator().next().errorCode()))
            .from(6),
        records("no records", "t", 0, 0, Errors.NONE), records("beyond the end", "t", 0, 1000, Errors.OFFSET_OUT_OF_RANGE),
        records("an unknown partition", "t", 9, 0, Errors.UNKNOWN_TOPIC_OR_PARTITION),
        records("an unknown topic", "absent", 0, 0, Errors.UNKNOWN_TOPIC_OR_PARTITION),
        grown("more partitions", "t", 5, Errors.POLICY_VIOLATION), grown("fewer partitions", "t", 2, Errors.INVALID_PARTITIONS),
        grown("an unknown topic", "absent", 5, Errors.UNKNOWN_TOPIC_OR_PARTITION),
        altered("a setting", "t", "retention.ms", "1000", Errors.NONE), altered("an unknown setting", "t", "x", "1", Errors.INVALID_CONFIG),
        altered("an unknown topic", "absent", "retention.ms", "1000", Errors.UNKNOWN_TOPIC_OR_PARTITION),
        replaced("a setting", "t", "retention.ms", "1000", Errors.NONE),
        replaced("a wrong value", "t", "retention.ms", "-2", Errors.INVALID_CONFIG));
  }

  private static Outcome created(String name, String topic, int partitions, Map<String, String> settings, Errors error) {
    CreatableTopic creatable = new CreatableTopic().setName(topic).setNumPartitions(partitions).setReplicationFactor((short) 1);
    settings.forEach((key, value) -> creatable.configs().add(new CreatableTopicConfig().setName(key).setValue(value)));
    CreateTopicsRequestData request = new CreateTopicsRequestData().setTimeoutMs(1000).setValidateOnly(true);
    request.topics().add(creatable);
    return Outcome.<CreateTopicsResponse>of(name, ApiKeys.CREATE_TOPICS, request, (answer, version) -> {
      var result = answer.data().topics().iterator().next();
      error(error, result.errorCode());
      if (error == Errors.NONE && version >= 5) {
        assertEquals(partitions < 0 ? 8 : partitions, result.numPartitions());
        settings.forEach((key, value) -> assertEquals(value,
            result.configs().stream().filter(config -> config.name().equals(key)).findAny().orElseThrow().value()));
      }
    });
  }

  private static Outcome records(String name, String topic, int partition, long offset, Errors error) {
    DeleteRecordsTopic records = new DeleteRecordsTopic().setName(topic)
        .setPartitions(List.of(new DeleteRecordsPartition().setPartitionIndex(partition).setOffset(offset)));
    return Outcome.<DeleteRecordsResponse>of(name, ApiKeys.DELETE_RECORDS, new DeleteRecordsRequestData().setTopics(List.of(records)),
        (answer, version) -> {
          var result = answer.data().topics().iterator().next().partitions().iterator().next();
          error(error, result.errorCode());
          assertEquals(error == Errors.NONE ? 0 : -1, result.lowWatermark());
        });
  }

  private static Outcome grown(String name, String topic, int partitions, Errors error) {
    CreatePartitionsRequestData request = new CreatePartitionsRequestData().setValidateOnly(true);
    request.topics().add(new CreatePartitionsTopic().setName(topic).setCount(partitions).setAssignments(null));
    return Outcome.<CreatePartitionsResponse>of(name, ApiKeys.CREATE_PARTITIONS, request,
        (answer, version) -> error(error, answer.data().results().get(0).errorCode()));
  }

  private static Outcome altered(String name, String topic, String key, String value, Errors error) {
    var resource = new IncrementalAlterConfigsRequestData.AlterConfigsResource().setResourceType(ConfigResource.Type.TOPIC.id())
        .setResourceName(topic);
    resource.configs().add(new IncrementalAlterConfigsRequestData.AlterableConfig().setName(key).setValue(value));
    IncrementalAlterConfigsRequestData request = new IncrementalAlterConfigsRequestData().setValidateOnly(true);
    request.resources().add(resource);
    return Outcome.<IncrementalAlterConfigsResponse>of(name, ApiKeys.INCREMENTAL_ALTER_CONFIGS, request,
        (answer, version) -> error(error, answer.data().responses().get(0).errorCode()));
  }

  private static Outcome replaced(String name, String topic, String key, String value, Errors error) {
    var resource = new AlterConfigsRequestData.AlterConfigsResource().setResourceType(ConfigResource.Type.TOPIC.id())
        .setResourceName(topic);
    resource.configs().add(new AlterConfigsRequestData.AlterableConfig().setName(key).setValue(value));
    AlterConfigsRequestData request = new AlterConfigsRequestData().setValidateOnly(true);
    request.resources().add(resource);
    return Outcome.<AlterConfigsResponse>of(name, ApiKeys.ALTER_CONFIGS, request,
        (answer, version) -> error(error, answer.data().responses().get(0).errorCode()));
  }

  private static void error(Errors expected, short code) {
    assertEquals(expected, Errors.forCode(code));
  }
}
