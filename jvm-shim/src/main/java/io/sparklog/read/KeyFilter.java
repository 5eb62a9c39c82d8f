package io.sparklog.read;

import java.util.function.UnaryOperator;

/** A condition on the key of a record, byte by byte. Only the key itself decides whether it is met, but for records of routed segments. */
sealed interface KeyFilter extends RecordFilter {
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

  /** Met by the records without a key, or with {@code present} by the records with a key. */
  record Presence(boolean present) implements KeyFilter {
    @Override
    public RecordFilter whereRouted(UnaryOperator<Keys> held) {
      return present ? ALL_RECORDS : NO_RECORDS;
    }

    @Override
    public boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength) {
      return keyLength >= 0 == present;
    }
  }

  /** Met by the records whose key is in a set of keys. */
  record Among(Keys keys) implements KeyFilter {
    static RecordFilter of(Keys keys) {
      return keys.isEmpty() ? NO_RECORDS : new Among(keys);
    }

    @Override
    public RecordFilter whereRouted(UnaryOperator<Keys> held) {
      return of(held.apply(keys));
    }

    @Override
    public long bytes() {
      return OBJECT_BYTES + keys.size();
    }

    @Override
    public boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength) {
      return keyLength >= 0 && keys.contains(data, keyAt, keyLength);
    }
  }
}
