package io.sparklog.kit;

/** A random history did not go as its model says. */
public final class Wrong extends RuntimeException {
  private static final long serialVersionUID = 1;

  private Wrong(String message) {
    super(message);
  }

  /** @throws Wrong with {@code otherwise}, if it is not right */
  public static void require(boolean right, String otherwise) {
    if (!right) {
      throw new Wrong(otherwise);
    }
  }
}
