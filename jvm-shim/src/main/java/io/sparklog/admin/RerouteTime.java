package io.sparklog.admin;

/** When a topic is re-routed. FORMAT.md section A.6. */
public enum RerouteTime {
  /** At once. It takes the place of a re-route that waits. */
  NOW,
  /** By the driver of the next write, before that write begins. It takes the place of a re-route that waits. */
  NEXT_WRITE,
  /** Not at all: a re-route that waits is taken back. */
  NEVER
}
