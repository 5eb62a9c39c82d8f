package io.sparklog.serve.topics;

import io.sparklog.admin.Administration;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.serve.members.Servers;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handlers;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.spec.Option;
import java.time.Clock;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.random.RandomGenerator;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsTopic;
import org.apache.kafka.common.message.CreatePartitionsResponseData.CreatePartitionsTopicResult;
import org.apache.kafka.common.message.CreatePartitionsResponseData;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.CreateTopicsResponseData.CreatableTopicConfigs;
import org.apache.kafka.common.message.CreateTopicsResponseData.CreatableTopicResult;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.message.DeleteRecordsRequestData.DeleteRecordsPartition;
import org.apache.kafka.common.message.DeleteRecordsRequestData.DeleteRecordsTopic;
import org.apache.kafka.common.message.DeleteRecordsResponseData.DeleteRecordsPartitionResult;
import org.apache.kafka.common.message.DeleteRecordsResponseData.DeleteRecordsTopicResult;
import org.apache.kafka.common.message.DeleteRecordsResponseData;
import org.apache.kafka.common.message.DeleteTopicsResponseData.DeletableTopicResult;
import org.apache.kafka.common.message.DeleteTopicsResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.CreatePartitionsRequest;
import org.apache.kafka.common.requests.CreatePartitionsResponse;
import org.apache.kafka.common.requests.CreateTopicsRequest;
import org.apache.kafka.common.requests.CreateTopicsResponse;
import org.apache.kafka.common.requests.DeleteRecordsRequest;
import org.apache.kafka.common.requests.DeleteRecordsResponse;
import org.apache.kafka.common.requests.DeleteTopicsRequest;
import org.apache.kafka.common.requests.DeleteTopicsResponse;

/** The requests that create, grow and delete topics, and delete records. An error of one topic leaves the others as they are. */
public final class TopicHandlers {
  private final TopicChanges operators;

  /** Whether clients may write keyed records to a topic with slots. */
  private final boolean keysAnywhere;

  private TopicHandlers(TopicChanges operators, boolean keysAnywhere) {
    this.operators = operators;
    this.keysAnywhere = keysAnywhere;
  }

  /**
   * Adds the handlers of all requests about topics, their settings and the cluster.
   *
   * @param settings of the server, as clients see them
   * @param mayWrite whether the clients of the listener may change topics
   * @param random is safe for many threads
   */
  public static void addAll(Handlers handlers, ServedTopics topics, Servers servers, SortedMap<String, String> settings, boolean mayWrite,
      RandomGenerator random) {
    TopicChanges operators = new TopicChanges(topics, Integer.parseInt(settings.get("num.partitions")), Clock.systemUTC(), random);
    new MetadataHandlers(operators, servers, Boolean.parseBoolean(settings.get("auto.create.topics.enable"))).addTo(handlers);
    new ConfigHandlers(operators, servers, settings).addTo(handlers, mayWrite);
    if (mayWrite) {
      TopicHandlers changes = new TopicHandlers(operators, Boolean.parseBoolean(settings.get("keys.in.any.partition")));
      handlers.addBlocking(ApiKeys.CREATE_TOPICS, changes::create)
          .addBlocking(ApiKeys.CREATE_PARTITIONS, changes::grow)
          .addBlocking(ApiKeys.DELETE_TOPICS, changes::delete)
          .addBlocking(ApiKeys.DELETE_RECORDS, changes::deleteRecords);
    }
  }

  /** A number of replicas is taken, and has no effect. */
  private CreateTopicsResponse create(ClientRequest asked, CreateTopicsRequest request) {
    CreateTopicsResponseData data = new CreateTopicsResponseData();
    Set<String> seen = new HashSet<>();
    Set<String> twice = new HashSet<>();
    request.data().topics().forEach(topic -> {
      if (!seen.add(topic.name())) {
        twice.add(topic.name());
      }
    });
    for (CreatableTopic topic : request.data().topics()) {
      if (seen.remove(topic.name())) {
        data.topics().add(created(asked, topic, twice.contains(topic.name()), request.data().validateOnly()));
      }
    }
    return new CreateTopicsResponse(data);
  }

  private CreatableTopicResult created(ClientRequest asked, CreatableTopic topic, boolean isTwice, boolean validateOnly) {
    CreatableTopicResult result = new CreatableTopicResult().setName(topic.name());
    ApiError error = KafkaErrors.attempt(() -> {
      if (isTwice) {
        throw Errors.INVALID_REQUEST.exception("The request names topic " + topic.name() + " twice.");
      }
      ReadableTopics.requireLegal(topic.name());
      TopicChanges.requireRight(asked, topic.name());
      int count = partitions(topic);
      Map<String, String> given = new HashMap<>();
      topic.configs().forEach(config -> given.put(config.name(), config.value()));
      TopicConfig config = TopicSettings.created(count, given);
      if (operators.topics().newest(topic.name()).isPresent()) {
        throw Errors.TOPIC_ALREADY_EXISTS.exception("Topic " + topic.name() + " exists.");
      }
      operators.requireDistinct(topic.name());
      Uuid id = validateOnly ? Uuid.ZERO_UUID : Uuid.fromString(operators.create(topic.name(), config));
      result.setTopicId(id).setNumPartitions(count).setReplicationFactor((short) 1);
      TopicSettings.told(topic.name(), config)
          .forEach(each -> result.configs()
              .add(new CreatableTopicConfigs().setName(each.name())
                  .setValue(each.value())
                  .setConfigSource(each.source().id())
                  .setReadOnly(each.readOnly())));
    });
    return result.setErrorCode(error.error().code()).setErrorMessage(error.message());
  }

  private int partitions(CreatableTopic topic) {
    int count = topic.assignments().isEmpty() ? topic.numPartitions() : topic.assignments().size();
    if (count == CreateTopicsRequest.NO_NUM_PARTITIONS) {
      return operators.partitions();
    }
    Option option = Option.ofTopic(TopicConfig.PARTITIONS);
    if (!option.isCanonical(Integer.toString(count))) {
      throw Errors.INVALID_PARTITIONS.exception("The number of partitions is " + count + ", and must be " + option.expected() + ".");
    }
    return count;
  }

  /**
   * Adds partitions. The topic has slots afterwards, by which readers keep the order of keys, and takes no keyed records of clients:
   * FORMAT.md annex A. So a topic that takes such records gets no more partitions here.
   */
  private CreatePartitionsResponse grow(ClientRequest asked, CreatePartitionsRequest request) {
    CreatePartitionsResponseData data = new CreatePartitionsResponseData();
    for (CreatePartitionsTopic topic : request.data().topics()) {
      ApiError error = KafkaErrors.attempt(() -> {
        State state = operators.changeable(asked, topic.name());
        if (topic.count() <= state.partitions()) {
          throw Errors.INVALID_PARTITIONS.exception("Topic " + topic.name() + " has " + state.partitions() + " partitions already.");
        }
        if (!state.hasSlots() && !keysAnywhere) {
          throw Errors.POLICY_VIOLATION
              .exception("With more partitions, topic " + topic.name() + " takes no keyed records of Kafka's clients,"
                  + " since they send the keys to other partitions then. Choose one: copy the topic into one with more partitions by"
                  + " CALL partlog.rebuild, which keeps the order of each key; or, if no client sends keys, add partitions by"
                  + " CALL partlog.add_partitions; or start the server with keys.in.any.partition=true, which ends the order by key.");
        }
        operators.of(topic.name()).addPartitions(topic.count(), Administration.RerouteTime.NOW, request.data().validateOnly());
      });
      data.results()
          .add(new CreatePartitionsTopicResult().setName(topic.name()).setErrorCode(error.error().code()).setErrorMessage(error.message()));
    }
    return new CreatePartitionsResponse(data);
  }

  private DeleteTopicsResponse delete(ClientRequest asked, DeleteTopicsRequest request) {
    DeleteTopicsResponseData data = new DeleteTopicsResponseData();
    request.topics().forEach(topic -> {
      DeletableTopicResult result = new DeletableTopicResult().setName(topic.name()).setTopicId(topic.topicId());
      ApiError error = KafkaErrors.attempt(() -> {
        boolean isById = !topic.topicId().equals(Uuid.ZERO_UUID);
        String name = isById
            ? operators.topics().newestById(topic.topicId().toString()).orElseThrow(Errors.UNKNOWN_TOPIC_ID::exception).topic()
            : topic.name();
        String id = operators.changeable(asked, name).topicId();
        operators.of(name).deleteOf(id);
        result.setName(name).setTopicId(Uuid.fromString(id));
      });
      data.responses().add(result.setErrorCode(error.error().code()).setErrorMessage(error.message()));
    });
    return new DeleteTopicsResponse(data);
  }

  /** Raises log start offsets, of all partitions of a topic in one commit. */
  private DeleteRecordsResponse deleteRecords(ClientRequest asked, DeleteRecordsRequest request) {
    DeleteRecordsResponseData data = new DeleteRecordsResponseData();
    for (DeleteRecordsTopic topic : request.data().topics()) {
      DeleteRecordsTopicResult result = new DeleteRecordsTopicResult().setName(topic.name());
      data.topics().add(result);
      ApiError failed = KafkaErrors.attempt(() -> {
        State state = operators.changeable(asked, topic.name());
        TreeMap<Integer, Long> offsets = new TreeMap<>();
        topic.partitions()
            .stream()
            .filter(partition -> error(state, partition) == Errors.NONE)
            .forEach(partition -> offsets.put(partition.partitionIndex(), partition.offset()));
        State after = operators.of(topic.name()).deleteRecordsOf(state.topicId(), offsets).is();
        topic.partitions().forEach(partition -> result.partitions().add(deleted(partition, error(after, partition), after)));
      });
      if (failed.isFailure()) {
        topic.partitions().forEach(partition -> result.partitions().add(deleted(partition, failed.error(), null)));
      }
    }
    return new DeleteRecordsResponse(data);
  }

  private static DeleteRecordsPartitionResult deleted(DeleteRecordsPartition partition, Errors error, State after) {
    int number = partition.partitionIndex();
    return new DeleteRecordsPartitionResult().setPartitionIndex(number)
        .setErrorCode(error.code())
        .setLowWatermark(error == Errors.NONE ? after.start(number) : DeleteRecordsResponse.INVALID_LOW_WATERMARK);
  }

  private static Errors error(State state, DeleteRecordsPartition partition) {
    int number = partition.partitionIndex();
    if (!state.hasPartition(number)) {
      return Errors.UNKNOWN_TOPIC_OR_PARTITION;
    }
    return partition.offset() < -1 || partition.offset() > state.end(number) ? Errors.OFFSET_OUT_OF_RANGE : Errors.NONE;
  }
}
