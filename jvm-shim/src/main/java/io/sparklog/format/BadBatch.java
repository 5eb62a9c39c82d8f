package io.sparklog.format;

import java.util.OptionalLong;

/**
 * Bytes that are not a valid record batch, or a batch that this process may not hold. The message says why; the caller that catches it
 * knows the topic, partition, file and byte.
 */
public final class BadBatch extends Exception {
  private final long limit;

  public BadBatch(String reason) {
    this(reason, null);
  }

  BadBatch(String reason, Throwable cause) {
    super(reason, cause);
    limit = -1;
  }

  private BadBatch(long limit) {
    super("its records take more than " + limit + " bytes when decompressed, the limit of this process");
    this.limit = limit;
  }

  static BadBatch tooLarge(long limit) {
    return new BadBatch(limit);
  }

  /** The limit of this process, in bytes, which the records of a batch exceed that may be right; empty if the batch is not valid. */
  public OptionalLong limit() {
    return limit < 0 ? OptionalLong.empty() : OptionalLong.of(limit);
  }
}
