package io.sparklog.upkeep;

import io.sparklog.spec.PartlogException;
import java.io.IOException;

/**
 * An operator's work, which an interrupt does not end half-way. A query that is stopped interrupts the thread of its {@code foreachBatch},
 * and an interrupt closes the file of a running read. The work goes on, and the thread is interrupted again when it is done.
 */
public final class Uninterrupted {
  private Uninterrupted() {}

  /** Work that may be run again: it finds its own commits. */
  @FunctionalInterface
  public interface RepeatableWork<T> {
    T run() throws IOException;
  }

  /** Runs {@code work}, and again where an interrupt ended it. */
  public static <T> T run(RepeatableWork<T> work) throws IOException {
    boolean interrupted = false;
    try {
      while (true) {
        interrupted |= Thread.interrupted();
        try {
          return work.run();
        } catch (PartlogException e) {
          if (e.id().equals("COMMIT_UNKNOWN") || !PartlogException.isInterrupt(e.getCause())) {
            throw e;
          }
        } catch (IOException e) {
          if (!PartlogException.isInterrupt(e)) {
            throw e;
          }
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
