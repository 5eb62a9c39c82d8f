package io.sparklog.read;

import java.util.Arrays;
import java.util.Collection;
import java.util.function.Predicate;

/** A condition on the key of a record, byte by byte. Only the key itself tells whether it is met, but for records of routed segments. */
sealed interface KeyFilter extends RecordFilter {
  @Override
  default Intervals offsets() {
    return Intervals.ALL;
  }

  @Override
  default boolean isAboutTime() {
    return false;
  }

  @Override
  default boolean isAboutKey() {
    return true;
  }

  @Override
  default boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
    return true;
  }

  @Override
  default boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
    return false;
  }

  /** Met by the records without a key, or with {@code present} by those with one. */
  record Presence(boolean present) implements KeyFilter {
    @Override
    public RecordFilter whereRouted(Predicate<byte[]> mayHold) {
      return present ? ALL_RECORDS : NO_RECORDS;
    }

    @Override
    public boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength) {
      return keyLength >= 0 == present;
    }
  }

  /**
   * Met by the records with one of some keys.
   *
   * @param keys none is null; in the order of {@link Arrays#compare(byte[], byte[])}, so that a test of a record allocates nothing
   */
  record Among(byte[][] keys) implements KeyFilter {
    static RecordFilter of(Collection<byte[]> keys) {
      return keys.isEmpty() ? NO_RECORDS : new Among(keys.stream().sorted(Arrays::compare).toArray(byte[][]::new));
    }

    @Override
    public RecordFilter whereRouted(Predicate<byte[]> mayHold) {
      return of(Arrays.stream(keys).filter(mayHold).toList());
    }

    @Override
    public boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength) {
      int low = 0;
      int high = keyLength < 0 ? 0 : keys.length;
      while (low < high) {
        int middle = (low + high) >>> 1;
        byte[] key = keys[middle];
        int order = Arrays.compare(key, 0, key.length, data, keyAt, keyAt + keyLength);
        if (order == 0) {
          return true;
        }
        if (order < 0) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return false;
    }
  }
}
