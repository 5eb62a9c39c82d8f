package io.sparklog.sim;

import io.sparklog.kit.MutatedClasses;
import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.LongFunction;

/**
 * A rule that is broken in a method of a production class.
 *
 * @param seed the first at which the simulation finds it
 * @param method such as {@code log/Committer.commit}
 * @param from Java that the method has exactly once, in any format, which {@code to} replaces
 * @param failure the method of {@link Simulation} that runs a seed
 */
record Mutant(long seed, String rule, String method, String from, String to, String failure) {
  Mutant(long seed, String rule, String method, String from, String to) {
    this(seed, rule, method, from, to, "failure");
  }

  /** One that servers, producers or coordinators meet. */
  static Mutant served(long seed, String rule, String method, String from, String to) {
    return new Mutant(seed, rule, method, from, to, "failureOfServed");
  }

  /** The failure that a seed finds; null if none. */
  LongFunction<String> finder() throws IOException, ReflectiveOperationException {
    Class<?> simulation = MutatedClasses.of(method, from, to).like(Simulation.class);
    MethodHandle found = MethodHandles.privateLookupIn(simulation, MethodHandles.lookup())
        .findStatic(simulation, failure, MethodType.methodType(String.class, long.class));
    return seed -> {
      try {
        String what = (String) found.invoke(seed);
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
