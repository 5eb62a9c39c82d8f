package io.sparklog.log;

import org.slf4j.LoggerFactory;

/** Warnings from inside a commit. */
public final class Warnings {
  private Warnings() {}

  /** Logs as {@code source}. A logger that throws, or cannot be made, must not make a commit that is done look as if it had failed. */
  public static void warn(Class<?> source, String text, Object... arguments) {
    try {
      LoggerFactory.getLogger(source).warn(text, arguments);
    } catch (Throwable e) {
      // Nobody is left to tell.
    }
  }
}
