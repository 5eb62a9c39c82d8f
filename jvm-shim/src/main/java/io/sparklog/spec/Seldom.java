package io.sparklog.spec;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/** Tells once a minute that one thing is due, so that a fault that lasts does not fill a log. For several threads at once. */
final class Seldom {
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
