package io.sparklog.kit;

import java.time.Clock;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.function.LongSupplier;

/** A clock that shows the milliseconds that a test says. */
public final class MillisClock extends Clock {
  private final LongSupplier nowMs;

  public MillisClock(LongSupplier nowMs) {
    this.nowMs = nowMs;
  }

  @Override
  public ZoneId getZone() {
    return ZoneOffset.UTC;
  }

  @Override
  public Clock withZone(ZoneId zone) {
    return this;
  }

  @Override
  public Instant instant() {
    return Instant.ofEpochMilli(nowMs.getAsLong());
  }
}
