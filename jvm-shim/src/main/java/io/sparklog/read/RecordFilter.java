package io.sparklog.read;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Predicate;

/**
 * A condition on the offset, the time and the key of a record, in one partition: {@link Filter#at}. Times are in microseconds since 1970.
 */
public sealed interface RecordFilter extends Serializable
    permits RecordFilter.Constant, RecordFilter.Offsets, RecordFilter.RecordTimes, RecordFilter.All, RecordFilter.Any, KeyFilter {
  RecordFilter ALL_RECORDS = new Constant(true);
  RecordFilter NO_RECORDS = new Constant(false);

  /** The offsets of records that may meet it; no others do. All of these meet it if {@link #isAboutOffsetsOnly}. */
  Intervals offsets();

  boolean isAboutTime();

  boolean isAboutKey();

  default boolean isAboutOffsetsOnly() {
    return !isAboutTime() && !isAboutKey();
  }

  /** The same for the records of a routed segment: each has a key, of which {@code mayHold} tells whether the segment may have it. */
  RecordFilter whereRouted(Predicate<byte[]> mayHold);

  /** Whether a record with such an offset and time may meet it: false only if none can. All bounds are inclusive. */
  boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros);

  /** Whether each record with such an offset and time meets it: true only if all do. All bounds are inclusive. */
  boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros);

  /** Whether a record meets it. Its key is the {@code keyLength} bytes of {@code data} from {@code keyAt} on; with −1 it has none. */
  boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength);

  static RecordFilter all(List<RecordFilter> filters) {
    List<RecordFilter> left = without(ALL_RECORDS, filters);
    if (left.contains(NO_RECORDS)) {
      return NO_RECORDS;
    }
    return left.isEmpty() ? ALL_RECORDS : left.size() == 1 ? left.get(0) : new All(left.toArray(RecordFilter[]::new));
  }

  static RecordFilter any(List<RecordFilter> filters) {
    List<RecordFilter> left = without(NO_RECORDS, filters);
    if (left.contains(ALL_RECORDS)) {
      return ALL_RECORDS;
    }
    return left.isEmpty() ? NO_RECORDS : left.size() == 1 ? left.get(0) : new Any(left.toArray(RecordFilter[]::new));
  }

  private static List<RecordFilter> without(RecordFilter neutral, List<RecordFilter> filters) {
    List<RecordFilter> left = new ArrayList<>(filters);
    left.removeIf(neutral::equals);
    return left;
  }

  /** Met by all records, or by none. */
  record Constant(boolean met) implements RecordFilter {
    @Override
    public Intervals offsets() {
      return met ? Intervals.ALL : Intervals.NONE;
    }

    @Override
    public boolean isAboutTime() {
      return false;
    }

    @Override
    public boolean isAboutKey() {
      return false;
    }

    @Override
    public RecordFilter whereRouted(Predicate<byte[]> mayHold) {
      return this;
    }

    @Override
    public boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return met;
    }

    @Override
    public boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return met;
    }

    @Override
    public boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength) {
      return met;
    }
  }

  /** Met by the records with these offsets. */
  record Offsets(Intervals offsets) implements RecordFilter {
    @Override
    public boolean isAboutTime() {
      return false;
    }

    @Override
    public boolean isAboutKey() {
      return false;
    }

    @Override
    public RecordFilter whereRouted(Predicate<byte[]> mayHold) {
      return this;
    }

    @Override
    public boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return offsets.meets(firstOffset, lastOffset);
    }

    @Override
    public boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return offsets.covers(firstOffset, lastOffset);
    }

    @Override
    public boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength) {
      return offsets.contains(offset);
    }
  }

  /** Met by the records with these times. */
  record RecordTimes(Intervals micros) implements RecordFilter {
    @Override
    public Intervals offsets() {
      return Intervals.ALL;
    }

    @Override
    public boolean isAboutTime() {
      return true;
    }

    @Override
    public boolean isAboutKey() {
      return false;
    }

    @Override
    public RecordFilter whereRouted(Predicate<byte[]> mayHold) {
      return this;
    }

    @Override
    public boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return micros.meets(firstMicros, lastMicros);
    }

    @Override
    public boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return micros.covers(firstMicros, lastMicros);
    }

    @Override
    public boolean isMet(long offset, long time, byte[] data, int keyAt, int keyLength) {
      return micros.contains(time);
    }
  }

  /** Met by the records that meet all of some filters. An array, so that a test of a record allocates nothing. */
  record All(RecordFilter[] filters) implements RecordFilter {
    @Override
    public Intervals offsets() {
      Intervals offsets = Intervals.ALL;
      for (RecordFilter filter : filters) {
        offsets = offsets.and(filter.offsets());
      }
      return offsets;
    }

    @Override
    public boolean isAboutTime() {
      return Arrays.stream(filters).anyMatch(RecordFilter::isAboutTime);
    }

    @Override
    public boolean isAboutKey() {
      return Arrays.stream(filters).anyMatch(RecordFilter::isAboutKey);
    }

    @Override
    public RecordFilter whereRouted(Predicate<byte[]> mayHold) {
      return RecordFilter.all(Arrays.stream(filters).map(filter -> filter.whereRouted(mayHold)).toList());
    }

    @Override
    public boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      for (RecordFilter filter : filters) {
        if (!filter.canMeet(firstOffset, lastOffset, firstMicros, lastMicros)) {
          return false;
        }
      }
      return true;
    }

    @Override
    public boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      for (RecordFilter filter : filters) {
        if (!filter.mustMeet(firstOffset, lastOffset, firstMicros, lastMicros)) {
          return false;
        }
      }
      return true;
    }

    @Override
    public boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength) {
      for (RecordFilter filter : filters) {
        if (!filter.isMet(offset, micros, data, keyAt, keyLength)) {
          return false;
        }
      }
      return true;
    }
  }

  /** Met by the records that meet one of some filters. */
  record Any(RecordFilter[] filters) implements RecordFilter {
    @Override
    public Intervals offsets() {
      Intervals offsets = Intervals.NONE;
      for (RecordFilter filter : filters) {
        offsets = offsets.or(filter.offsets());
      }
      return offsets;
    }

    @Override
    public boolean isAboutTime() {
      return Arrays.stream(filters).anyMatch(RecordFilter::isAboutTime);
    }

    @Override
    public boolean isAboutKey() {
      return Arrays.stream(filters).anyMatch(RecordFilter::isAboutKey);
    }

    @Override
    public RecordFilter whereRouted(Predicate<byte[]> mayHold) {
      return RecordFilter.any(Arrays.stream(filters).map(filter -> filter.whereRouted(mayHold)).toList());
    }

    @Override
    public boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      for (RecordFilter filter : filters) {
        if (filter.canMeet(firstOffset, lastOffset, firstMicros, lastMicros)) {
          return true;
        }
      }
      return false;
    }

    @Override
    public boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      for (RecordFilter filter : filters) {
        if (filter.mustMeet(firstOffset, lastOffset, firstMicros, lastMicros)) {
          return true;
        }
      }
      return false;
    }

    @Override
    public boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength) {
      for (RecordFilter filter : filters) {
        if (filter.isMet(offset, micros, data, keyAt, keyLength)) {
          return true;
        }
      }
      return false;
    }
  }
}
