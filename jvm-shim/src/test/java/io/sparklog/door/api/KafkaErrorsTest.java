package io.sparklog.door.api;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletionException;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The messages that clients get. */
final class KafkaErrorsTest {
  static List<Throwable> secrets() {
    return List.of(PartlogException.of("IO", "file", "/logs/secret/x.log", "cause", "secret"),
        PartlogException.of("TOPIC_NOT_FOUND", "topic", "t", "root", "/logs/secret", "topics", "secret"),
        PartlogException.of("TOPIC_EXISTS", "topic", "t", "root", "/logs/secret"), new IOException("/logs/secret"),
        new CompletionException(new IllegalStateException("/logs/secret")));
  }

  @ParameterizedTest
  @MethodSource("secrets")
  void aMessageTellsNoFileAndNoOtherTopic(Throwable failure) {
    ApiException answer = KafkaErrors.exception(failure);
    assertFalse(answer.getMessage().contains("secret"), answer.getMessage());
  }

  @Test
  void aMessageTellsHowToFixTheRequest() {
    PartlogException wrong = PartlogException.of("OPTION_VALUE", "option", "retention.ms", "value", "x", "reason", "Give a whole number");
    ApiException answer = KafkaErrors.exception(wrong);
    assertEquals(Errors.INVALID_CONFIG, Errors.forException(answer));
    assertTrue(answer.getMessage().contains("Give a whole number"), answer.getMessage());
  }
}
