package io.sparklog.kit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.spec.Invariant;
import org.junit.jupiter.api.function.Executable;

/** Rules of the code's own that a test breaks on purpose. */
public final class Faults {
  private Faults() {}

  /** Requires that {@code broken} is found to break a rule. @param fault what the error says of it, among other things */
  public static void assertFound(String fault, Executable broken) {
    Invariant.Broken found = assertThrows(Invariant.Broken.class, broken);
    assertEquals("INTERNAL", found.error().id());
    assertTrue(found.getMessage().contains(fault), found.getMessage());
    assertTrue(found.getMessage().contains("fault is in sparklog"), found.getMessage());
  }
}
