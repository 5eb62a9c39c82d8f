package io.sparklog.read;

import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;

/**
 * The way of a read with offsets that it was asked for and that do not exist: the option {@code failOnDataLoss}.
 *
 * @param isError whether the read fails; otherwise it goes on with the offsets that exist
 */
public record DataLoss(boolean isError) {
  /** Throws {@code loss}, or warns of it. */
  public void report(PartlogException loss) {
    if (isError) {
      throw loss;
    }
    Warnings.warn(DataLoss.class, "{} Continuing with the offsets that exist, because failOnDataLoss is false.", loss.getMessage());
  }
}
