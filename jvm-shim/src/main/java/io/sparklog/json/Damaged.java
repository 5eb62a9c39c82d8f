package io.sparklog.json;

import java.util.function.Supplier;

/**
 * A version file or a checkpoint that breaks a rule of FORMAT.md sections 5, 6 or 10. The message names the rule; the code that catches it
 * knows the file.
 *
 * <p>Checked, so that a bug, ours or the JDK's, is never reported as damage.
 */
public final class Damaged extends Exception {
  private static final long serialVersionUID = 1;

  public Damaged(String reason) {
    super(reason);
  }

  public Damaged(String reason, Throwable cause) {
    super(reason, cause);
  }

  public static void unless(boolean condition, String reason) throws Damaged {
    if (!condition) {
      throw new Damaged(reason);
    }
  }

  /** For a check of each number or segment of a file. The text would take more time than the check, and is made only for a fault. */
  public static void unless(boolean condition, Supplier<String> reason) throws Damaged {
    if (!condition) {
      throw new Damaged(reason.get());
    }
  }
}
