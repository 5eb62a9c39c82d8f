package io.sparklog.upkeep;

import io.sparklog.log.Change;
import io.sparklog.log.Step;

/** An administrative change: to make it twice changes nothing more. FORMAT.md section 7. */
public interface Repeatable extends Change {
  @Override
  default Step.Put steps() {
    return Step.Put.ADMIN;
  }

  @Override
  default boolean isIdempotent() {
    return true;
  }
}
