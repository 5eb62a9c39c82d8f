package io.sparklog.serve.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
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

  /** A producer, whose commit fails again and again, must know what to mend. The rest of the path is the server's. */
  @Test
  void aFailedCommitIsToldWithItsFileUnderTheRoot() {
    IOException full = new FileSystemException("/logs/secret/_partlog/t/data/1-a/p0.log", null, "No space left on device");
    Throwable failed = PartlogException.caused(full, "COMMIT_FAILED", "txn", "a", "topic", "t", "root", "/logs/secret", "cause", "secret");
    assertEquals("No space left on device, file _partlog/t/data/1-a/p0.log", KafkaErrors.why(failed));
    assertEquals("AccessDeniedException", KafkaErrors.why(new AccessDeniedException("/logs/secret")));
    assertEquals("the log of the server has the cause", KafkaErrors.why(new IOException("https://key:secret@store: 403")));
  }

  @Test
  void aMessageTellsHowToFixTheRequest() {
    PartlogException wrong = PartlogException.of("OPTION_VALUE", "option", "retention.ms", "value", "x", "reason", "Give a whole number");
    ApiException answer = KafkaErrors.exception(wrong);
    assertEquals(Errors.INVALID_CONFIG, Errors.forException(answer));
    assertTrue(answer.getMessage().contains("Give a whole number"), answer.getMessage());
  }
}
