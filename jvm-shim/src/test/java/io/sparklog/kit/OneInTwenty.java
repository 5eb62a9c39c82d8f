package io.sparklog.kit;

import java.util.Random;

/** Chance in servers that are broken on purpose, by the seed of the tests. */
public final class OneInTwenty {
  private static final Random RANDOM = new Random(Seed.draw());

  private OneInTwenty() {}

  /** True in one of twenty calls. */
  public static boolean isNow() {
    return RANDOM.nextInt(20) == 0;
  }
}
