package io.sparklog.commits;

import java.util.EnumSet;
import java.util.Set;

/** Batches are not added. The message says why. */
public final class AppendRefused extends Exception {
  private static final long serialVersionUID = 1;

  /** The reasons why batches are not added. */
  public enum Reason {
    /** The bytes are no batch, or were damaged on their way. */
    CORRUPT,
    /** The batch is of an older or a newer form than readers know. */
    UNSUPPORTED_MAGIC, UNSUPPORTED_CODEC,
    /** The batch breaks a rule that its client must keep. */
    INVALID_RECORD, INVALID_TIMESTAMP,
    /** The batch has more bytes than {@code max.message.bytes}, or than readers may hold. */
    TOO_LARGE,
    /** The batch has more bytes than {@code segment.bytes}. */
    TOO_LARGE_FOR_SEGMENT,
    /** A record has a key, and the topic has slots, by which readers order keys; or the partition is closed. */
    POLICY,
    /** Batches of the producer before this batch are missing. */
    OUT_OF_ORDER,
    /** The topic has a higher epoch of the producer. */
    OLD_EPOCH, UNKNOWN_TOPIC,
    /** Another topic has the name now. */
    TOPIC_RECREATED, UNKNOWN_PARTITION,
    /** The partition has another end offset than the expected one: another process added records. */
    FENCED,
    /** Too many bytes wait for their commit. */
    BUSY,
    /** The commit failed, and no reader will see its records. */
    STORAGE,
    /** The commit may be done or not. */
    UNKNOWN_OUTCOME;

    private static final Set<Reason> FINAL = EnumSet.of(UNSUPPORTED_MAGIC, UNSUPPORTED_CODEC, INVALID_RECORD, INVALID_TIMESTAMP,
        TOO_LARGE_FOR_SEGMENT, POLICY, OUT_OF_ORDER, OLD_EPOCH);

    /** Whether a client sends the records again with the same sequences, perhaps in smaller batches. */
    boolean isPassing() {
      return !FINAL.contains(this);
    }
  }

  private final Reason refusal;

  AppendRefused(Reason refusal, String message) {
    this(refusal, message, null);
  }

  AppendRefused(Reason refusal, String message, Throwable cause) {
    super(message, cause);
    this.refusal = refusal;
  }

  static AppendRefused unknownPartition(String topic, int partition) {
    return new AppendRefused(Reason.UNKNOWN_PARTITION, "Topic " + topic + " does not have partition " + partition + ".");
  }

  public Reason refusal() {
    return refusal;
  }
}
