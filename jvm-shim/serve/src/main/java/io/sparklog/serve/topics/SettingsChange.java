package io.sparklog.serve.topics;

import io.sparklog.log.State;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.KafkaErrors;
import java.util.Map;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;

/** The changes of a topic's settings that a client asks for. */
interface SettingsChange {
  /** The settings that change, with their values. @param state the newest of the topic */
  Map<String, String> of(State state);

  /** Makes the change. */
  static ApiError make(Operators operators, ClientRequest asked, byte type, String name, boolean validateOnly, SettingsChange change) {
    try {
      if (type != ConfigResource.Type.TOPIC.id()) {
        throw Errors.INVALID_REQUEST.exception("Settings of topics alone can be changed. Give a server its settings when it starts.");
      }
      Map<String, String> changes = change.of(operators.changeable(asked, name));
      if (!validateOnly && !changes.isEmpty()) {
        operators.of(name).configure(changes);
      }
      return ApiError.NONE;
    } catch (RuntimeException e) {
      return new ApiError(KafkaErrors.of(e), KafkaErrors.exception(e).getMessage());
    }
  }
}
