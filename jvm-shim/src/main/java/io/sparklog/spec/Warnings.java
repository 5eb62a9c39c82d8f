package io.sparklog.spec;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
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

  /** Tells once a minute that one thing is due, so that a fault that lasts does not fill a log. For several threads at once. */
  static final class Seldom {
    static final long PAUSE_NANOS = TimeUnit.MINUTES.toNanos(1);

    /** Some things are told again too early if there are more than this: a client may name any number of topics. */
    static final int THINGS_MAX = 10_000;

    private final LongSupplier nanos;
    private final Map<String, Long> told = new HashMap<>();

    /** @param nanos the time, as {@link System#nanoTime} has it */
    Seldom(LongSupplier nanos) {
      this.nanos = nanos;
    }

    synchronized boolean isDue(String about) {
      long now = nanos.getAsLong();
      Long last = told.get(about);
      if (last != null && now - last < PAUSE_NANOS) {
        return false;
      }
      if (told.size() >= THINGS_MAX) {
        told.clear();
      }
      told.put(about, now);
      return true;
    }
  }
}
