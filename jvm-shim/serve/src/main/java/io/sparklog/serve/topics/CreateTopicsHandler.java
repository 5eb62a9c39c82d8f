package io.sparklog.serve.topics;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.TopicConfig;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.spec.Option;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.CreateTopicsResponseData.CreatableTopicConfigs;
import org.apache.kafka.common.message.CreateTopicsResponseData.CreatableTopicResult;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.CreateTopicsRequest;
import org.apache.kafka.common.requests.CreateTopicsResponse;

/**
 * Creates topics. A number of replicas is taken, and has no effect.
 *
 * @param partitions of a topic for which the client leaves the number to the server
 */
public record CreateTopicsHandler(Operators operators, int partitions, Workers work) implements Handler<CreateTopicsRequest> {
  @Override
  public CompletableFuture<CreateTopicsResponse> answer(ClientRequest asked, CreateTopicsRequest request) {
    return work.run(() -> {
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
    });
  }

  private CreatableTopicResult created(ClientRequest asked, CreatableTopic topic, boolean isTwice, boolean validateOnly) {
    CreatableTopicResult result = new CreatableTopicResult().setName(topic.name());
    try {
      if (isTwice) {
        throw Errors.INVALID_REQUEST.exception("The request names topic " + topic.name() + " twice.");
      }
      ReadableTopics.requireLegal(topic.name());
      Operators.requireRight(asked, topic.name());
      int count = partitions(topic);
      Map<String, String> given = new HashMap<>();
      topic.configs().forEach(config -> given.put(config.name(), config.value()));
      TopicConfig config = TopicSettings.created(count, given);
      if (operators.topics().newest(topic.name()).isPresent()) {
        throw Errors.TOPIC_ALREADY_EXISTS.exception("Topic " + topic.name() + " exists.");
      }
      operators.requireDistinct(topic.name());
      Uuid id = validateOnly ? Uuid.ZERO_UUID : Uuid.fromString(operators.create(topic.name(), config));
      List<CreatableTopicConfigs> told = new ArrayList<>();
      TopicSettings.told(topic.name(), config)
          .forEach(each -> told.add(new CreatableTopicConfigs().setName(each.name())
              .setValue(each.value())
              .setConfigSource(each.source().id())
              .setReadOnly(each.readOnly())));
      return result.setTopicId(id).setNumPartitions(count).setReplicationFactor((short) 1).setConfigs(told);
    } catch (RuntimeException e) {
      return result.setErrorCode(KafkaErrors.of(e).code()).setErrorMessage(KafkaErrors.exception(e).getMessage());
    }
  }

  private int partitions(CreatableTopic topic) {
    int count = topic.assignments().isEmpty() ? topic.numPartitions() : topic.assignments().size();
    if (count == CreateTopicsRequest.NO_NUM_PARTITIONS) {
      return partitions;
    }
    Option option = Option.ofTopic(TopicConfig.PARTITIONS);
    if (!option.isCanonical(Integer.toString(count))) {
      throw Errors.INVALID_PARTITIONS.exception("The number of partitions is " + count + ", and must be " + option.expected() + ".");
    }
    return count;
  }
}
