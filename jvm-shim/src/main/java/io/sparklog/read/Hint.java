package io.sparklog.read;

import java.util.function.UnaryOperator;

/** A condition that is tested elsewhere too. It spares work, and may be widened where it takes more than it spares. */
record Hint(RecordFilter filter) implements RecordFilter {
  static RecordFilter of(RecordFilter filter) {
    return filter instanceof RecordFilter.Constant ? filter : new Hint(filter);
  }

  @Override
  public long bytes() {
    return filter.bytes();
  }

  @Override
  public RecordFilter within(long most) {
    return of(filter.within(most));
  }

  @Override
  public RecordFilter ofTask() {
    return within(BYTES_MAX);
  }

  @Override
  public boolean isHint() {
    return true;
  }

  @Override
  public RecordFilter withoutHints() {
    return ALL_RECORDS;
  }

  @Override
  public Intervals offsets() {
    return filter.offsets();
  }

  @Override
  public boolean isAboutTime() {
    return filter.isAboutTime();
  }

  @Override
  public boolean isAboutKey() {
    return filter.isAboutKey();
  }

  @Override
  public RecordFilter whereRouted(UnaryOperator<Keys> held) {
    return of(filter.whereRouted(held));
  }

  @Override
  public boolean canMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
    return filter.canMeet(firstOffset, lastOffset, firstMicros, lastMicros);
  }

  @Override
  public boolean mustMeet(long firstOffset, long lastOffset, long firstMicros, long lastMicros) {
    return filter.mustMeet(firstOffset, lastOffset, firstMicros, lastMicros);
  }

  @Override
  public boolean isMet(long offset, long micros, byte[] data, int keyAt, int keyLength) {
    return filter.isMet(offset, micros, data, keyAt, keyLength);
  }
}
