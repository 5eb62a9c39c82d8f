package io.sparklog.commits;

/** Batches are not added. The message says why. */
public final class Refused extends Exception {
  private static final long serialVersionUID = 1;

  private final Refusal refusal;

  Refused(Refusal refusal, String message) {
    this(refusal, message, null);
  }

  Refused(Refusal refusal, String message, Throwable cause) {
    super(message, cause);
    this.refusal = refusal;
  }

  public Refusal refusal() {
    return refusal;
  }
}
