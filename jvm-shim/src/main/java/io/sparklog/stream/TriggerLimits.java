package io.sparklog.stream;

import io.sparklog.spec.Option;
import io.sparklog.spec.Options;

/**
 * How much a micro-batch takes of what waits.
 *
 * @param offsetsMax the most offsets
 * @param bytesMax the most bytes of record batches, rounded up to a whole batch
 * @param offsetsMin how many must wait before it takes any
 * @param delayMs for how long it may wait for them, in ms
 */
public record TriggerLimits(long offsetsMax, long bytesMax, long offsetsMin, long delayMs) {
  /** It takes all. */
  public static final TriggerLimits NONE = new TriggerLimits(Long.MAX_VALUE, Long.MAX_VALUE, 0, 0);

  /**
   * The limits that the options of a stream give.
   *
   * @throws io.sparklog.spec.PartlogException OPTION_VALUE
   */
  public static TriggerLimits of(Options options) {
    TriggerLimits limits = new TriggerLimits(given(options, "maxOffsetsPerTrigger", Long.MAX_VALUE),
        given(options, "maxBytesPerTrigger", Long.MAX_VALUE), given(options, "minOffsetsPerTrigger", 0),
        options.milliseconds("maxTriggerDelay"));
    if (limits.offsetsMin > limits.offsetsMax) {
      throw Option.invalidValue("minOffsetsPerTrigger", Long.toString(limits.offsetsMin),
          "it must not be greater than `maxOffsetsPerTrigger`, which is " + limits.offsetsMax);
    }
    return limits;
  }

  private static long given(Options options, String key, long otherwise) {
    return options.given(key) ? options.number(key) : otherwise;
  }

  /** As this one, with the most offsets. */
  public TriggerLimits offsetsMax(long most) {
    return new TriggerLimits(Math.min(offsetsMax, most), bytesMax, offsetsMin, delayMs);
  }

  /** As this one, with the most bytes. */
  public TriggerLimits bytesMax(long most) {
    return new TriggerLimits(offsetsMax, Math.min(bytesMax, most), offsetsMin, delayMs);
  }

  /** As this one, waiting for {@code least} offsets, at most for {@code forMs}. */
  public TriggerLimits offsetsMin(long least, long forMs) {
    return new TriggerLimits(offsetsMax, bytesMax, least, forMs);
  }
}
