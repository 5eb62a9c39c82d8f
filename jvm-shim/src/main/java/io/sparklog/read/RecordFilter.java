package io.sparklog.read;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * A condition on the offset, the time and the key of a record, in one partition: {@link Filter#at}. Times are in microseconds since 1970.
 */
public sealed interface RecordFilter extends Serializable
    permits RecordFilter.Constant, RecordFilter.Offsets, RecordFilter.RecordTimes, RecordFilter.All, RecordFilter.Any, Hint, KeyFilter {
  RecordFilter ALL_RECORDS = new Constant(true);
  RecordFilter NO_RECORDS = new Constant(false);

  /** The most bytes of a filter that a task gets: there may be thousands of tasks, and all go through the driver. */
  long BYTES_MAX = 64 << 10;

  /** About how many bytes a filter takes besides what it holds. */
  long OBJECT_BYTES = 48;

  /** The offsets of records that may meet it; no others do. All of these meet it if {@link #isAboutOffsetsOnly}. */
  Intervals offsets();

  boolean isAboutTime();

  boolean isAboutKey();

  default boolean isAboutOffsetsOnly() {
    return !isAboutTime() && !isAboutKey();
  }

  /** The same for the records of routed segments: each has a key, and {@code held} leaves those of some keys that the segments may have. */
  RecordFilter whereRouted(UnaryOperator<Keys> held);

  /** Whether a record with such an offset and time may meet it: false only if none can. All bounds are inclusive. */
  boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros);

  /** Whether each record with such an offset and time meets it: true only if all do. All bounds are inclusive. */
  boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros);

  /** Whether a record meets it. Its key is the {@code keyLength} bytes of {@code data} from {@code keyAt} on; with −1 it has none. */
  boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength);

  /** About how many bytes it takes to send it to a task. */
  default long bytes() {
    return OBJECT_BYTES;
  }

  /** This, or if it takes more than {@code most} bytes, one that takes no more, and that is met by all records that meet this one. */
  default RecordFilter within(long most) {
    return bytes() <= most ? this : ALL_RECORDS;
  }

  /** This as a task gets it: its hints take no more of {@link #BYTES_MAX} than what is not a hint leaves of it. */
  default RecordFilter ofTask() {
    return this;
  }

  /** Whether it is tested elsewhere too. */
  default boolean isHint() {
    return false;
  }

  /** This without its hints. */
  default RecordFilter withoutHints() {
    return this;
  }

  static RecordFilter all(List<RecordFilter> filters) {
    List<RecordFilter> left = new ArrayList<>();
    for (RecordFilter filter : filters) {
      left.addAll(filter instanceof All several ? List.of(several.filters) : List.of(filter));
    }
    left.removeIf(ALL_RECORDS::equals);
    if (left.contains(NO_RECORDS)) {
      return NO_RECORDS;
    }
    return left.isEmpty() ? ALL_RECORDS : left.size() == 1 ? left.get(0) : new All(left.toArray(RecordFilter[]::new));
  }

  static RecordFilter any(List<RecordFilter> filters) {
    List<RecordFilter> left = new ArrayList<>();
    for (RecordFilter filter : filters) {
      left.addAll(filter instanceof Any several ? List.of(several.filters) : List.of(filter));
    }
    left.removeIf(NO_RECORDS::equals);
    if (left.contains(ALL_RECORDS)) {
      return ALL_RECORDS;
    }
    return left.isEmpty() ? NO_RECORDS : left.size() == 1 ? left.get(0) : new Any(left.toArray(RecordFilter[]::new));
  }

  /** All of them, within {@code most} bytes together. A small one leaves the rest of its share to the others. */
  private static List<RecordFilter> shared(List<RecordFilter> filters, long most) {
    List<RecordFilter> shared = new ArrayList<>();
    long left = most;
    for (RecordFilter filter : filters.stream().sorted(Comparator.comparingLong(RecordFilter::bytes)).toList()) {
      RecordFilter its = filter.within(left / (filters.size() - shared.size()));
      left -= its.bytes();
      shared.add(its);
    }
    return shared;
  }

  /** Met by all records, or by none. */
  record Constant(boolean met) implements RecordFilter {
    @Override
    public long bytes() {
      return 0;
    }

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
    public RecordFilter whereRouted(UnaryOperator<Keys> held) {
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
    public long bytes() {
      return OBJECT_BYTES + offsets.bytes();
    }

    @Override
    public RecordFilter within(long most) {
      return bytes() <= most ? this : offsets.within(most - OBJECT_BYTES).<RecordFilter>map(Offsets::new).orElse(ALL_RECORDS);
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
    public RecordFilter whereRouted(UnaryOperator<Keys> held) {
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
    public long bytes() {
      return OBJECT_BYTES + micros.bytes();
    }

    @Override
    public RecordFilter within(long most) {
      return bytes() <= most ? this : micros.within(most - OBJECT_BYTES).<RecordFilter>map(RecordTimes::new).orElse(ALL_RECORDS);
    }

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
    public RecordFilter whereRouted(UnaryOperator<Keys> held) {
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
    public long bytes() {
      return OBJECT_BYTES + Arrays.stream(filters).mapToLong(RecordFilter::bytes).sum();
    }

    @Override
    public RecordFilter within(long most) {
      return bytes() <= most ? this : RecordFilter.all(shared(List.of(filters), most - OBJECT_BYTES));
    }

    @Override
    public RecordFilter ofTask() {
      List<RecordFilter> left = new ArrayList<>(List.of(filters));
      List<RecordFilter> hints = left.stream().filter(RecordFilter::isHint).toList();
      left.removeAll(hints);
      left.addAll(shared(hints, BYTES_MAX - OBJECT_BYTES - left.stream().mapToLong(RecordFilter::bytes).sum()));
      return RecordFilter.all(left);
    }

    @Override
    public RecordFilter withoutHints() {
      return RecordFilter.all(Arrays.stream(filters).map(RecordFilter::withoutHints).toList());
    }

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
    public RecordFilter whereRouted(UnaryOperator<Keys> held) {
      return RecordFilter.all(Arrays.stream(filters).map(filter -> filter.whereRouted(held)).toList());
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
    public long bytes() {
      return OBJECT_BYTES + Arrays.stream(filters).mapToLong(RecordFilter::bytes).sum();
    }

    @Override
    public RecordFilter within(long most) {
      return bytes() <= most ? this : RecordFilter.any(shared(List.of(filters), most - OBJECT_BYTES));
    }

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
    public RecordFilter whereRouted(UnaryOperator<Keys> held) {
      return RecordFilter.any(Arrays.stream(filters).map(filter -> filter.whereRouted(held)).toList());
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
