package io.sparklog.format;

/** Bytes that are not a valid record batch. The message says why; whoever catches it knows the topic, partition, file and byte. */
public final class BadBatch extends Exception {
  public BadBatch(String reason) {
    super(reason);
  }

  BadBatch(String reason, Throwable cause) {
    super(reason, cause);
  }
}
