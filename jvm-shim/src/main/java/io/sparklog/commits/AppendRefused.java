package io.sparklog.commits;

/** Batches are not added. The message says why. */
public final class AppendRefused extends Exception {
  private static final long serialVersionUID = 1;

  private final RefusalReason refusal;

  AppendRefused(RefusalReason refusal, String message) {
    this(refusal, message, null);
  }

  AppendRefused(RefusalReason refusal, String message, Throwable cause) {
    super(message, cause);
    this.refusal = refusal;
  }

  static AppendRefused unknownPartition(String topic, int partition) {
    return new AppendRefused(RefusalReason.UNKNOWN_PARTITION, "Topic " + topic + " does not have partition " + partition + ".");
  }

  public RefusalReason refusal() {
    return refusal;
  }
}
