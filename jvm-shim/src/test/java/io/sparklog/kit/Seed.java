package io.sparklog.kit;

/**
 * Where the random numbers of tests begin, and how many they take. {@code make test} begins at the same place each time: a failure is then
 * due to what was changed. {@code make soak} sets {@code SPARKLOG_SEED=new}. The number that a failed test printed, in that variable,
 * repeats it.
 */
public final class Seed {
  private static final String GIVEN = System.getenv("SPARKLOG_SEED");
  private static final long FIXED = 27;

  private Seed() {}

  /** The seed of a test, which prints it. */
  public static long draw() {
    if (GIVEN == null) {
      return FIXED;
    }
    return GIVEN.equals("new") ? System.nanoTime() : Long.parseLong(GIVEN);
  }

  /** The first number in {@code make test}, the second in {@code make soak}: of rounds, or of what else makes a test long. */
  public static int either(int inTest, int inSoak) {
    return GIVEN == null ? inTest : inSoak;
  }
}
