package io.sparklog.feed;

/**
 * How long to wait between two refreshes of a topic: a tenth of the time since its last commit, within limits. So a commit after a silence
 * is seen late by a tenth of the silence at most. The table of all readers is in the description of the package.
 */
record Rhythm(long leastMs, long mostMs) {
  private static final int SHARE = 10;

  static final Rhythm NO_WAIT = new Rhythm(0, 0);

  /** Requests of clients, which wait in the server. */
  static final Rhythm SERVER = new Rhythm(20, 50);
  static final Rhythm SERVER_WATCHED = new Rhythm(500, 1_000);
  static final Rhythm SERVER_REMOTE = new Rhythm(500, 5_000);

  /** An idle query of a watched topic. Another source of the query waits so long too. */
  static final Rhythm QUERY_WATCHED = new Rhythm(0, 100);

  /** @param silenceMs since the last commit; a clock that was set back gives less than 0 */
  long pauseMs(long silenceMs) {
    return Math.max(leastMs, Math.min(mostMs, silenceMs / SHARE));
  }
}
