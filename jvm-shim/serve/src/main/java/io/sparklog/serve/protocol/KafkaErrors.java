package io.sparklog.serve.protocol;

import io.sparklog.segment.Names;
import io.sparklog.commits.AppendRefused;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.nio.file.FileSystemException;
import java.util.Collections;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;

/** The one place where a fault of ours becomes an error of Kafka. */
public final class KafkaErrors {
  /** Faults of the server, which an operator must hear of. */
  private static final Set<Errors> OF_SERVER = EnumSet.of(Errors.UNKNOWN_SERVER_ERROR, Errors.KAFKA_STORAGE_ERROR, Errors.CORRUPT_MESSAGE);

  private static final String ROOT = "root";

  /** The parameters of errors that clients may not see: listeners show a part of the topics, and no files. */
  private static final Set<String> HIDDEN = Set.of("above", "cause", "checkpoint", "endpoint", "file", "folder", "groups", "topics");

  private KafkaErrors() {}

  /** The error that a client gets. Faults of the server are logged. */
  public static Errors of(Throwable failure) {
    return Errors.forException(exception(failure));
  }

  /** As {@link #of}, with a message for the client. */
  public static ApiError error(Throwable failure) {
    return new ApiError(of(failure), exception(failure).getMessage());
  }

  /** Work on a part of a request. */
  @FunctionalInterface
  public interface RequestPart {
    void run() throws Exception;
  }

  /** Does a part of a request, whose error leaves the other parts as they are. @return the error that the client gets, or NONE */
  public static ApiError attempt(RequestPart part) {
    try {
      part.run();
      return ApiError.NONE;
    } catch (Exception e) {
      return error(e);
    }
  }

  /** As {@link #of}, as an exception. */
  public static ApiException exception(Throwable failure) {
    Throwable cause = failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
    if (cause instanceof ApiException known) {
      return known;
    }
    if (cause instanceof CancellationException) {
      return Errors.NETWORK_EXCEPTION.exception();
    }
    if (cause instanceof AppendRefused refused) {
      return refusal(refused.refusal()).exception(switch (refused.refusal()) {
        case STORAGE -> "The commit failed: " + why(refused.getCause()) + ".";
        case UNKNOWN_OUTCOME -> "The commit may be done or not: " + why(refused.getCause()) + ".";
        default -> refused.getMessage();
      });
    }
    Errors error = cause instanceof PartlogException declared
        ? declared(declared)
        : cause instanceof IOException ? Errors.KAFKA_STORAGE_ERROR : Errors.UNKNOWN_SERVER_ERROR;
    if (OF_SERVER.contains(error)) {
      if (cause instanceof PartlogException declared) {
        Warnings.seldom(KafkaErrors.class, declared.getMessage(), "A request failed. {}: {}", declared.condition(), declared.getMessage());
      } else {
        Warnings.seldom(KafkaErrors.class, cause.toString(), "A request failed", cause);
      }
    }
    return cause instanceof PartlogException declared ? error.exception(told(declared)) : error.exception();
  }

  /**
   * Why a commit failed, for the client: the error of the system, and the file of the topic by its path under the root. Other
   * causes may name places of the server.
   */
  static String why(Throwable failure) {
    for (Throwable at = failure; at != null; at = at.getCause()) {
      if (at instanceof FileSystemException system && system.getFile() != null) {
        String file = system.getFile();
        int inRoot = file.lastIndexOf("/" + Names.FOLDER + "/");
        String reason = system.getReason() == null ? system.getClass().getSimpleName() : system.getReason();
        return inRoot < 0 ? reason : reason + ", file " + file.substring(inRoot + 1);
      }
    }
    return "the log of the server has the cause";
  }

  /** The message for a client, without the places of files and the names of other topics; null for a message that has nothing else. */
  private static String told(PartlogException e) {
    if (!Collections.disjoint(e.parameters().keySet(), HIDDEN)) {
      return null;
    }
    String root = e.parameters().get(ROOT);
    return root == null ? e.getMessage() : e.getMessage().replace(root, "(its location is hidden)");
  }

  private static Errors declared(PartlogException e) {
    return switch (e.id()) {
      case "TOPIC_NOT_FOUND", "TOPIC_REPLACED", "PARTITION_NOT_FOUND" -> Errors.UNKNOWN_TOPIC_OR_PARTITION;
      case "TOPIC_RECREATED" -> Errors.UNKNOWN_TOPIC_ID;
      case "OFFSETS_EXPIRED", "OFFSETS_OUT_OF_RANGE" -> Errors.OFFSET_OUT_OF_RANGE;
      case "BATCH_CORRUPT", "BATCH_TOO_LARGE", "SEGMENT_CORRUPT" -> Errors.CORRUPT_MESSAGE;
      case "TOPIC_NAME_ILLEGAL" -> Errors.INVALID_TOPIC_EXCEPTION;
      case "FOREIGN_SEGMENTS", "REROUTED", "REROUTES_TOO_MANY" -> Errors.POLICY_VIOLATION;
      case "TOPIC_EXISTS" -> Errors.TOPIC_ALREADY_EXISTS;
      case "OPTION_VALUE", "OPTION_UNKNOWN", "OPTION_CONFLICT" -> Errors.INVALID_CONFIG;
      case "COMMIT_UNKNOWN" -> Errors.REQUEST_TIMED_OUT;
      case "IO", "SEGMENT_MISSING", "VERSION_CORRUPT", "VERSION_MISSING", "COMMIT_FAILED", "ROOT_NOT_WRITABLE", "STORE_UNAVAILABLE" ->
        Errors.KAFKA_STORAGE_ERROR;
      default -> Errors.UNKNOWN_SERVER_ERROR;
    };
  }

  /** Never UNKNOWN_SERVER_ERROR: a client that gets it for a batch may send the batch again under another epoch. */
  private static Errors refusal(AppendRefused.Reason refusal) {
    return switch (refusal) {
      case CORRUPT -> Errors.CORRUPT_MESSAGE;
      case UNSUPPORTED_MAGIC -> Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT;
      case UNSUPPORTED_CODEC -> Errors.UNSUPPORTED_COMPRESSION_TYPE;
      case INVALID_RECORD -> Errors.INVALID_RECORD;
      case INVALID_TIMESTAMP -> Errors.INVALID_TIMESTAMP;
      case TOO_LARGE -> Errors.MESSAGE_TOO_LARGE;
      case TOO_LARGE_FOR_SEGMENT -> Errors.RECORD_LIST_TOO_LARGE;
      case POLICY -> Errors.POLICY_VIOLATION;
      case OUT_OF_ORDER -> Errors.OUT_OF_ORDER_SEQUENCE_NUMBER;
      case OLD_EPOCH -> Errors.INVALID_PRODUCER_EPOCH;
      case UNKNOWN_TOPIC, UNKNOWN_PARTITION -> Errors.UNKNOWN_TOPIC_OR_PARTITION;
      case TOPIC_RECREATED -> Errors.UNKNOWN_TOPIC_ID;
      case FENCED -> Errors.NOT_COORDINATOR;
      case BUSY -> Errors.NOT_ENOUGH_REPLICAS; // Each client sends the batch again.
      case STORAGE -> Errors.KAFKA_STORAGE_ERROR;
      case UNKNOWN_OUTCOME -> Errors.REQUEST_TIMED_OUT;
    };
  }
}
