package io.sparklog.serve.topics;

import io.sparklog.admin.RerouteTime;
import io.sparklog.log.State;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.protocol.Workers;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsTopic;
import org.apache.kafka.common.message.CreatePartitionsResponseData.CreatePartitionsTopicResult;
import org.apache.kafka.common.message.CreatePartitionsResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.CreatePartitionsRequest;
import org.apache.kafka.common.requests.CreatePartitionsResponse;

/**
 * Adds partitions. The topic has slots afterwards, by which readers keep the order of keys, and takes no keyed records of clients:
 * FORMAT.md annex A. So a topic that takes such records gets no more partitions here.
 *
 * @param keysAnywhere whether clients may write keyed records to a topic with slots
 */
public record CreatePartitionsHandler(Operators operators, boolean keysAnywhere, Workers work) implements Handler<CreatePartitionsRequest> {
  @Override
  public CompletableFuture<CreatePartitionsResponse> answer(ClientRequest asked, CreatePartitionsRequest request) {
    return work.run(() -> {
      CreatePartitionsResponseData data = new CreatePartitionsResponseData();
      request.data().topics().forEach(topic -> data.results().add(grown(asked, topic, request.data().validateOnly())));
      return new CreatePartitionsResponse(data);
    });
  }

  private CreatePartitionsTopicResult grown(ClientRequest asked, CreatePartitionsTopic topic, boolean validateOnly) {
    CreatePartitionsTopicResult result = new CreatePartitionsTopicResult().setName(topic.name());
    try {
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
      operators.of(topic.name()).addPartitions(topic.count(), RerouteTime.NOW, validateOnly);
      return result;
    } catch (RuntimeException e) {
      return result.setErrorCode(KafkaErrors.of(e).code()).setErrorMessage(KafkaErrors.exception(e).getMessage());
    }
  }
}
