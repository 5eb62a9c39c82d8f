package io.sparklog.spec;

import java.util.function.Supplier;

/**
 * The rules that sparklog's own code keeps, checked where other code relies on them. No call and no file can break one: data from outside
 * is checked by its reader, with an error of its own. A check runs once for a batch, a file or a commit, not for each record.
 */
public final class Invariant {
  private Invariant() {}

  /** A fault in sparklog. Not a {@link PartlogException}, which callers may take for damaged data, and go on without it. */
  public static final class Broken extends IllegalStateException {
    private final PartlogException error;

    private Broken(String fault) {
      this(PartlogException.of("INTERNAL", "fault", fault));
    }

    private Broken(PartlogException error) {
      super(error.getMessage());
      this.error = error;
    }

    /** INTERNAL, for users. */
    public PartlogException error() {
      return error;
    }
  }

  /**
   * Requires that a rule holds.
   *
   * @param fault names the place where it does not hold, and the value there
   * @throws Broken if it does not
   */
  public static void require(boolean holds, Supplier<String> fault) {
    if (!holds) {
      throw new Broken(fault.get());
    }
  }
}
