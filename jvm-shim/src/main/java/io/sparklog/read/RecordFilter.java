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
    permits RecordFilter.Constant, RecordFilter.Within, RecordFilter.Several, Hint, KeyFilter {
  RecordFilter ALL_RECORDS = new Constant(true);
  RecordFilter NO_RECORDS = new Constant(false);

  /** The most bytes of a filter that a task gets: there may be thousands of tasks, and all go through the driver. */
  long BYTES_MAX = 64 << 10;

  /** About how many bytes a filter takes besides its content. */
  long OBJECT_BYTES = 48;

  /** The offsets of records that may meet it; no others do. All of these meet it if {@link #isAboutOffsetsOnly}. */
  default Intervals offsets() {
    return Intervals.ALL;
  }

  default boolean isAboutTime() {
    return false;
  }

  default boolean isAboutKey() {
    return false;
  }

  default boolean isAboutOffsetsOnly() {
    return !isAboutTime() && !isAboutKey();
  }

  /** The same for the records of routed segments: each record has a key, and {@code held} keeps the keys that the segments may have. */
  default RecordFilter whereRouted(UnaryOperator<Keys> held) {
    return this;
  }

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

  /** This filter; or if it takes more than {@code most} bytes, a smaller filter that is met by all records that meet this filter. */
  default RecordFilter within(long most) {
    return bytes() <= most ? this : ALL_RECORDS;
  }

  /** This filter for a task: its hints take only the rest of {@link #BYTES_MAX} that its other parts leave. */
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
    return several(true, filters);
  }

  static RecordFilter any(List<RecordFilter> filters) {
    return several(false, filters);
  }

  private static RecordFilter several(boolean all, List<RecordFilter> filters) {
    RecordFilter neutral = all ? ALL_RECORDS : NO_RECORDS;
    RecordFilter deciding = all ? NO_RECORDS : ALL_RECORDS;
    List<RecordFilter> left = new ArrayList<>();
    for (RecordFilter filter : filters) {
      left.addAll(filter instanceof Several several && several.all == all ? List.of(several.filters) : List.of(filter));
    }
    left.removeIf(neutral::equals);
    if (left.contains(deciding)) {
      return deciding;
    }
    return left.isEmpty() ? neutral : left.size() == 1 ? left.get(0) : new Several(all, left.toArray(RecordFilter[]::new));
  }

  /** All of them, within {@code most} bytes together. A small one leaves the rest of its share to the others. */
  private static List<RecordFilter> shared(List<RecordFilter> filters, long most) {
    List<RecordFilter> shared = new ArrayList<>();
    long left = most;
    for (RecordFilter filter : filters.stream().sorted(Comparator.comparingLong(RecordFilter::bytes)).toList()) {
      RecordFilter part = filter.within(left / (filters.size() - shared.size()));
      left -= part.bytes();
      shared.add(part);
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

  /** Met by the records with these times, or with these offsets. */
  record Within(boolean isAboutTime, Intervals values) implements RecordFilter {
    @Override
    public long bytes() {
      return OBJECT_BYTES + values.bytes();
    }

    @Override
    public RecordFilter within(long most) {
      return bytes() <= most
          ? this
          : values.within(most - OBJECT_BYTES).<RecordFilter>map(fewer -> new Within(isAboutTime, fewer)).orElse(ALL_RECORDS);
    }

    @Override
    public Intervals offsets() {
      return isAboutTime ? Intervals.ALL : values;
    }

    @Override
    public boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return isAboutTime ? values.meets(firstMicros, lastMicros) : values.meets(firstOffset, lastOffset);
    }

    @Override
    public boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      return isAboutTime ? values.covers(firstMicros, lastMicros) : values.covers(firstOffset, lastOffset);
    }

    @Override
    public boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength) {
      return values.contains(isAboutTime ? micros : offset);
    }
  }

  /**
   * Several filters in one. With {@code all}, a record must meet each filter; otherwise one filter is enough.
   *
   * @param filters an array, so that a test of a record allocates nothing
   */
  record Several(boolean all, RecordFilter[] filters) implements RecordFilter {
    @Override
    public long bytes() {
      return OBJECT_BYTES + Arrays.stream(filters).mapToLong(RecordFilter::bytes).sum();
    }

    @Override
    public RecordFilter within(long most) {
      return bytes() <= most ? this : several(all, shared(List.of(filters), most - OBJECT_BYTES));
    }

    @Override
    public RecordFilter ofTask() {
      if (!all) {
        return this;
      }
      List<RecordFilter> left = new ArrayList<>(List.of(filters));
      List<RecordFilter> hints = left.stream().filter(RecordFilter::isHint).toList();
      left.removeAll(hints);
      left.addAll(shared(hints, BYTES_MAX - OBJECT_BYTES - left.stream().mapToLong(RecordFilter::bytes).sum()));
      return RecordFilter.all(left);
    }

    @Override
    public RecordFilter withoutHints() {
      return all ? each(RecordFilter::withoutHints) : this;
    }

    @Override
    public Intervals offsets() {
      Intervals offsets = all ? Intervals.ALL : Intervals.NONE;
      for (RecordFilter filter : filters) {
        offsets = all ? offsets.and(filter.offsets()) : offsets.or(filter.offsets());
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
      return each(filter -> filter.whereRouted(held));
    }

    private RecordFilter each(UnaryOperator<RecordFilter> change) {
      return several(all, Arrays.stream(filters).map(change).toList());
    }

    @Override
    public boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      for (RecordFilter filter : filters) {
        if (filter.canMeet(firstOffset, lastOffset, firstMicros, lastMicros) != all) {
          return !all;
        }
      }
      return all;
    }

    @Override
    public boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
      for (RecordFilter filter : filters) {
        if (filter.mustMeet(firstOffset, lastOffset, firstMicros, lastMicros) != all) {
          return !all;
        }
      }
      return all;
    }

    @Override
    public boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength) {
      for (RecordFilter filter : filters) {
        if (filter.isMet(offset, micros, data, keyAt, keyLength) != all) {
          return !all;
        }
      }
      return all;
    }
  }
}
