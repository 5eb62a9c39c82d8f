package io.sparklog.format;

/** Bytes that are no right record batch. The message says why, in words; who catches it knows the topic, partition, file and byte. */
public final class BadBatch extends Exception {
  public BadBatch(String reason) {
    super(reason);
  }

  BadBatch(String reason, Throwable cause) {
    super(reason, cause);
  }
}
