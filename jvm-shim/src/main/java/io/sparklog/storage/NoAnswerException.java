package io.sparklog.storage;

import java.io.IOException;

/**
 * A put has no answer: it has taken effect, takes effect at any later time, or never does. Nothing follows from the name being absent.
 * FORMAT.md section 7.
 */
public final class NoAnswerException extends IOException {
  /** @param location of the file that was put, as {@link ReadStore#location} gives it */
  public NoAnswerException(String location, Throwable cause) {
    super("no answer came to the put of " + location + ", which may still take effect" + (cause == null ? "" : ": " + cause), cause);
  }
}
