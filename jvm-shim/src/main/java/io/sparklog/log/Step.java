package io.sparklog.log;

import io.sparklog.storage.PutObserver;
import java.io.File;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The named steps of a write. {@code -Dpartlog.stop=<step>:halt|throw|pause[:<n>]} stops a process at a step, so that tests can break a
 * commit anywhere. FORMAT.md section L.2.
 */
public enum Step {
  TASK_WRITE, TASK_SYNC, TASK_DONE, COMMIT_POOL, COMMIT_READ, COMMIT_PUT, COMMIT_LINK, COMMIT_LINKED, COMMIT_SYNCED, COMMIT_LOOK,
  COMMIT_DONE, MERGE_WRITE, MERGE_PUT, MERGE_LINKED, ADMIN_PUT, ADMIN_LINKED, PUBLISH_STAMP, PUBLISH_INDEX, PUBLISH_LOG, PUBLISH_DONE,
  DELETE_FILE, CHECKPOINT_PUT, CHECKPOINT_DONE, CLEAN_CHECKPOINT, CLEAN_VERSION, SOURCES_PUT;

  /** The steps of the put of a version file, by the kind of the version. */
  public enum Put implements PutObserver {
    /** The version file of a write: the steps from {@link #COMMIT_PUT} to {@link #COMMIT_SYNCED}. */
    COMMIT,
    /** That of a merge: {@link #MERGE_PUT} and {@link #MERGE_LINKED} only. */
    MERGE,
    /** That of an operator's change: {@link #ADMIN_PUT} and {@link #ADMIN_LINKED} only. */
    ADMIN;

    @Override
    public void reached(Stage stage) {
      switch (stage) {
        case WRITTEN -> (this == COMMIT ? COMMIT_LINK : this == MERGE ? MERGE_PUT : ADMIN_PUT).reached();
        case NAMED -> (this == COMMIT ? COMMIT_LINKED : this == MERGE ? MERGE_LINKED : ADMIN_LINKED).reached();
        default -> {
          if (this == COMMIT) {
            (stage == Stage.BEGUN ? COMMIT_PUT : COMMIT_SYNCED).reached();
          }
        }
      }
    }
  }

  /** Thrown at a step by {@code throw}. */
  public static final class Stopped extends RuntimeException {
    private Stopped(Step step) {
      super("stopped at " + step.label());
    }
  }

  private record Stop(Step step, String action, int count) {}

  // Static and final: if no stop is set, the compiler removes the check in reached().
  private static final Stop STOP = parse(System.getProperty("partlog.stop"));
  private static final AtomicInteger TIMES = new AtomicInteger();

  /** The name in FORMAT.md: {@code commit.link}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT).replace('_', '.');
  }

  /** Reports that the step is reached; stops here if the process was told to. */
  public void reached() {
    if (STOP != null && STOP.step == this && TIMES.incrementAndGet() == STOP.count) {
      stop();
    }
  }

  private void stop() {
    System.err.println("partlog: " + STOP.action + " at " + label());
    System.err.flush();
    switch (STOP.action) {
      case "halt" -> Runtime.getRuntime().halt(42);
      case "throw" -> throw new Stopped(this);
      default -> pause();
    }
  }

  private static void pause() {
    String release = System.getProperty("partlog.stop.release");
    while (release == null || !new File(release).exists()) {
      try {
        Thread.sleep(5);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted while paused", e);
      }
    }
  }

  private static Stop parse(String text) {
    if (text == null || text.isEmpty()) {
      return null;
    }
    String[] parts = text.split(":");
    for (Step step : values()) {
      if (parts.length >= 2 && parts.length <= 3 && step.label().equals(parts[0]) && parts[1].matches("halt|throw|pause")) {
        return new Stop(step, parts[1], parts.length == 3 ? Integer.parseInt(parts[2]) : 1);
      }
    }
    throw new IllegalArgumentException(
        "-Dpartlog.stop=" + text + " is not <step>:halt|throw|pause[:<n>] with a step of FORMAT.md section L.2");
  }
}
