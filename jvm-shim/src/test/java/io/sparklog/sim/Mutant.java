package io.sparklog.sim;

import io.sparklog.kit.MutatedClasses;
import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.LongFunction;

/**
 * A rule that is broken in a production class.
 *
 * @param seed the first at which the simulation finds it
 * @param source as {@code log/Committer}
 * @param from what the source has exactly once, so that a mutant cannot be forgotten when the source changes
 */
record Mutant(long seed, String rule, String source, String from, String to) {
  /** The failure that a seed finds; null if none. */
  LongFunction<String> finder() throws IOException, ReflectiveOperationException {
    Class<?> simulation = MutatedClasses.of(source, from, to).like(Simulation.class);
    MethodHandle failure = MethodHandles.privateLookupIn(simulation, MethodHandles.lookup())
        .findStatic(simulation, "failure", MethodType.methodType(String.class, long.class));
    return seed -> {
      try {
        String what = (String) failure.invoke(seed);
        if (what != null && !what.matches("(?s).*\\b(I[0-9]+|view|invariant): .*")) {
          throw new IllegalStateException(rule + " breaks the simulation itself: " + what);
        }
        return what;
      } catch (Throwable e) {
        throw new IllegalStateException(e);
      }
    };
  }

  @Override
  public String toString() {
    return rule;
  }
}
