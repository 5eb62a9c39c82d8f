package io.sparklog.spec;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

final class SeldomTest {
  private final AtomicLong now = new AtomicLong(Long.MAX_VALUE - 5); // A nanoTime may be any number.
  private final Warnings.Seldom seldom = new Warnings.Seldom(now::get);

  @Test
  void eachThingIsDueOnceAMinute() {
    assertTrue(seldom.isDue("a"));
    assertFalse(seldom.isDue("a"));
    assertTrue(seldom.isDue("b"));
    now.addAndGet(Warnings.Seldom.PAUSE_NANOS - 1);
    assertFalse(seldom.isDue("a"));
    now.addAndGet(1);
    assertTrue(seldom.isDue("a"));
    assertFalse(seldom.isDue("a"));
  }

  @Test
  void itRemembersABoundedNumberOfThings() {
    for (int i = 0; i < Warnings.Seldom.THINGS_MAX; i++) {
      assertTrue(seldom.isDue("thing " + i));
    }
    assertFalse(seldom.isDue("thing 0"));
    assertTrue(seldom.isDue("one more"));
    assertTrue(seldom.isDue("thing 0"), "it was forgotten with the others");
  }
}
