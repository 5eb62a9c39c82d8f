package io.sparklog.stream;

import io.sparklog.log.Pace;
import java.time.Clock;

/**
 * The waits of an idle query before it looks for commits again. Spark would have it look up to a hundred times a second, and each look
 * costs money where it is a request. The query waits a tenth of the time since it last found something, up to a limit. So each look has a
 * fresh answer, and a commit is seen late by at most a tenth of the silence before it.
 *
 * <p>For the thread of one query.
 */
public final class IdlePolls {
  private static final int SHARE = 10;

  private final Clock clock;
  private final Pace.Pause pause;
  private long mostMs;
  private long busyMs;
  private long lookedMs;

  /** @param mostMs of one wait, in ms; 0 for no waits */
  public IdlePolls(long mostMs, Clock clock, Pace.Pause pause) {
    this.mostMs = mostMs;
    this.clock = clock;
    this.pause = pause;
    busy();
    lookedMs = busyMs;
  }

  /** Waits until the query looks again. An interrupt ends the wait, and stays. */
  public void await() {
    long wait = Math.min((lookedMs - busyMs) / SHARE, mostMs) - (clock.millis() - lookedMs);
    // A clock that was set back must not add to it.
    long ms = Math.min(wait, mostMs);
    if (ms > 0) {
      try {
        pause.of(ms);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** The query has looked. @param isNew whether it found something to read */
  public void looked(boolean isNew) {
    lookedMs = clock.millis();
    if (isNew) {
      busyMs = lookedMs;
    }
  }

  /**
   * The query has run a micro-batch, maybe with records of another source alone. A wait of this source would delay the next micro-batch of
   * that other source.
   */
  public void busy() {
    busyMs = clock.millis();
  }

  /** From now on, the query does not wait. */
  public void end() {
    mostMs = 0;
  }
}
