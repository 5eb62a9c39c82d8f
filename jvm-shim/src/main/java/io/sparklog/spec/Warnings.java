package io.sparklog.spec;

import org.slf4j.LoggerFactory;

/** Warnings for an operator in the log of the process: faults that are not errors, and surprises. */
public final class Warnings {
  private static final Seldom SELDOM = new Seldom(System::nanoTime);

  private Warnings() {}

  /** As {@link #warn}, at most once a minute about one thing: for a fault that meets every request while it lasts. */
  public static void seldom(Class<?> source, String about, String text, Object... arguments) {
    if (SELDOM.isDue(source.getName() + " " + about)) {
      warn(source, text, arguments);
    }
  }

  /**
   * Logs as {@code source}. The logger is made only now, since starting one takes a fifth of a second, which most processes never need. A
   * logger that throws, or cannot be made, must not change the outcome: a commit that is done must not look as if it had failed.
   */
  public static void warn(Class<?> source, String text, Object... arguments) {
    try {
      LoggerFactory.getLogger(source).warn(text, arguments);
    } catch (Throwable e) {
      // This could not be reported anywhere.
    }
  }

  /** Logs at level INFO, like {@link #warn}. */
  public static void inform(Class<?> source, String text, Object... arguments) {
    try {
      LoggerFactory.getLogger(source).info(text, arguments);
    } catch (Throwable e) {
      // This could not be reported anywhere.
    }
  }
}
