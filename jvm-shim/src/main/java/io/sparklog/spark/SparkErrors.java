package io.sparklog.spark;

import io.sparklog.spec.Invariant;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.ReadOnlyFileSystemException;

/** Every call from Spark into the layers below goes through here, so that their errors reach Spark with their condition. */
public final class SparkErrors {
  private SparkErrors() {}

  /** A call that may fail. */
  @FunctionalInterface
  public interface Computation<T> {
    T run() throws IOException;
  }

  /** A call that may fail and returns nothing. */
  @FunctionalInterface
  public interface Action {
    void run() throws IOException;
  }

  /**
   * Returns what {@code body} returns. Throws its PartlogException or IOException as {@link PartlogSparkException}. But if an interrupt
   * ended it, and its outcome is known, a streaming query gets an error that Spark takes for an interrupt. A stopped query has not failed.
   */
  public static <T> T run(Computation<T> body) {
    try {
      return body.run();
    } catch (PartlogSparkException e) {
      throw e;
    } catch (PartlogException e) {
      throw shown(e);
    } catch (Invariant.Broken e) {
      throw broken(e);
    } catch (IOException | ReadOnlyFileSystemException e) {
      throw shown(PartlogException.io(e, "a data file"));
    }
  }

  /** With the stack trace of where it was found. */
  private static PartlogSparkException broken(Invariant.Broken found) {
    PartlogSparkException shown = new PartlogSparkException(found.error());
    shown.addSuppressed(found);
    return shown;
  }

  private static RuntimeException shown(PartlogException error) {
    return error.getCause() instanceof IOException cause && PartlogException.isInterrupt(cause) && !error.id().equals("COMMIT_UNKNOWN")
        && StreamingQueries.isThreadOfQuery() ? new UncheckedIOException(cause) : new PartlogSparkException(error);
  }

  /** As {@link #run(Computation)}. */
  public static void act(Action action) {
    run(() -> {
      action.run();
      return null;
    });
  }
}
