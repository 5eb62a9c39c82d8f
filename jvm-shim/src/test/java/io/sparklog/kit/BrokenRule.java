package io.sparklog.kit;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Path;

/**
 * A rule that is broken in a method, so that a random history shows the fault.
 *
 * @param seed of a history that shows the fault
 * @param method such as {@code log/Committer.commit}
 * @param from Java of the method, in any format, which {@code to} replaces
 */
public record BrokenRule(long seed, String rule, String method, String from, String to) {
  /**
   * Fails unless the history of the seed goes wrong.
   *
   * @param history a class with {@code static String run(long seed, Path folder)}, whose answer begins with "wrong" at a fault
   */
  public void requireFound(Class<?> history, Path folder) throws Throwable {
    Class<?> mutated = MutatedClasses.of(method, from, to).like(history);
    MethodHandle run = MethodHandles.privateLookupIn(mutated, MethodHandles.lookup())
        .findStatic(mutated, "run", MethodType.methodType(String.class, long.class, Path.class));
    String found = (String) run.invoke(seed, folder);
    assertTrue(found.startsWith("wrong"), "seed " + seed + " does not find it: " + found);
  }

  @Override
  public String toString() {
    return rule;
  }
}
