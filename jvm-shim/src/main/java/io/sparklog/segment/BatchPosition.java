package io.sparklog.segment;

/**
 * Where a record batch begins.
 *
 * @param position in the data file, in bytes
 * @param offset of its first record
 */
public record BatchPosition(long position, long offset) {
  public static BatchPosition startOf(Segment segment) {
    return new BatchPosition(segment.position(), segment.base());
  }
}
