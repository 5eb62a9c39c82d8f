package io.sparklog.serve.topics;

import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handler;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.protocol.Workers;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.DeleteTopicsRequestData.DeleteTopicState;
import org.apache.kafka.common.message.DeleteTopicsResponseData.DeletableTopicResult;
import org.apache.kafka.common.message.DeleteTopicsResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.DeleteTopicsRequest;
import org.apache.kafka.common.requests.DeleteTopicsResponse;

/** Deletes topics, by name or by id. */
public record DeleteTopicsHandler(Operators operators, Workers work) implements Handler<DeleteTopicsRequest> {
  @Override
  public CompletableFuture<DeleteTopicsResponse> answer(ClientRequest asked, DeleteTopicsRequest request) {
    return work.run(() -> {
      DeleteTopicsResponseData data = new DeleteTopicsResponseData();
      request.topics().forEach(topic -> data.responses().add(deleted(asked, topic)));
      return new DeleteTopicsResponse(data);
    });
  }

  private DeletableTopicResult deleted(ClientRequest asked, DeleteTopicState topic) {
    DeletableTopicResult result = new DeletableTopicResult().setName(topic.name()).setTopicId(topic.topicId());
    try {
      boolean isById = !topic.topicId().equals(Uuid.ZERO_UUID);
      String name = isById
          ? operators.topics().newestById(topic.topicId().toString()).orElseThrow(Errors.UNKNOWN_TOPIC_ID::exception).topic()
          : topic.name();
      String id = operators.changeable(asked, name).topicId();
      operators.of(name).deleteOf(id);
      return result.setName(name).setTopicId(Uuid.fromString(id));
    } catch (RuntimeException e) {
      return result.setErrorCode(KafkaErrors.of(e).code()).setErrorMessage(KafkaErrors.exception(e).getMessage());
    }
  }
}
