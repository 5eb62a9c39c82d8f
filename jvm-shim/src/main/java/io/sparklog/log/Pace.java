package io.sparklog.log;

import java.time.Clock;

/**
 * How often there is something to tidy, and how a process waits. A test has another, so that much happens in few commits and in no time.
 *
 * @param checkpointVersions a checkpoint is due when this many versions have passed since the newest one. FORMAT.md section 6
 * @param mergedSegments how many small segments become one
 * @param clock decides whether a version was seen just now
 */
public record Pace(int checkpointVersions, int mergedSegments, Pause pause, Clock clock) {
  public static final Pace PRODUCTION = new Pace(100, 8, Thread::sleep);

  /** By the clock of the system. */
  public Pace(int checkpointVersions, int mergedSegments, Pause pause) {
    this(checkpointVersions, mergedSegments, pause, Clock.systemUTC());
  }

  /** Waits. */
  public interface Pause {
    void of(long ms) throws InterruptedException;
  }
}
