package io.sparklog.segment;

import io.sparklog.spec.Invariant;
import java.io.Serializable;

/**
 * Offsets of one segment to read. The offsets are exact; the positions only say where the planner saw the batches.
 *
 * @param from position of the first batch to read, in bytes of the data file
 * @param fromOffset the offset that this batch begins with; in a segment with gaps, an offset from there down to the batch before
 * @param to position after the last batch to read, in bytes of the data file; −1 if only {@code endOffset} says where to stop
 * @param near position that is not far after the last batch to read, as an index says; −1 if that is not known
 * @param startOffset the first offset to return
 * @param endOffset the offset after the last one to return
 * @param filtered whether only records that meet the filter of the split are returned
 */
public record Extent(Segment segment, long from, long fromOffset, long to, long near, long startOffset, long endOffset,
    boolean filtered) implements Serializable {
  /** If only the end offset is known, this many bytes beyond the estimate are read at once, and then batch by batch. */
  private static final int AHEAD_BYTES = 16 << 10;

  public Extent {
    // The positions are hints, which a wrong index may have given.
    Invariant.require(segment.base() <= startOffset && startOffset < endOffset && endOffset <= segment.end(),
        () -> "the offsets " + startOffset + " to " + endOffset + " are to be read of " + segment);
  }

  /** All that a segment has. */
  public static Extent of(Segment segment) {
    return of(segment, BatchPosition.startOf(segment), segment.base(), segment.end(), false);
  }

  /** The offsets [{@code startOffset}, {@code endOffset}) of a segment, read from the batch {@code first} on. */
  public static Extent of(Segment segment, BatchPosition first, long startOffset, long endOffset, boolean filtered) {
    long to = endOffset == segment.end() ? segment.endPosition() : -1;
    return new Extent(segment, first.position(), first.offset(), to, -1, startOffset, endOffset, filtered);
  }

  /** The same, whose last batch ends not far before {@code near}. */
  public Extent endingNear(long near) {
    return new Extent(segment, from, fromOffset, to, near, startOffset, endOffset, filtered);
  }

  /** The part before the batch that begins at {@code cut}. */
  public Extent before(BatchPosition cut) {
    return new Extent(segment, from, fromOffset, cut.position(), -1, startOffset, cut.offset(), filtered);
  }

  /** The part before {@code offset}, which may be within a batch. */
  public Extent before(long offset) {
    return new Extent(segment, from, fromOffset, -1, -1, startOffset, offset, filtered);
  }

  /** The offsets from {@code offset} on; {@code first} is the batch that holds it, or one before. */
  public Extent after(BatchPosition first, long offset) {
    return new Extent(segment, first.position(), first.offset(), to, near, offset, endOffset, filtered);
  }

  /** The same for those records of its offsets that meet the filter of the split. */
  public Extent asFiltered() {
    return new Extent(segment, from, fromOffset, to, near, startOffset, endOffset, true);
  }

  /** The same for all records of its offsets. */
  public Extent unfiltered() {
    return filtered ? new Extent(segment, from, fromOffset, to, near, startOffset, endOffset, false) : this;
  }

  /** Whether all batches of the segment are read, so that their headers can be checked together. */
  boolean isWhole() {
    return from == segment.position() && to == segment.endPosition();
  }

  /** The position of the file up to which it is read front to back, as far as that is known. */
  long expectedEnd() {
    return Math.min(to >= 0 ? to : segment.endPosition(), from + bytesToRead() + AHEAD_BYTES);
  }

  public long offsets() {
    return endOffset - startOffset;
  }

  /** About how many bytes there are to read. */
  public long bytesToRead() {
    if (to >= 0) {
      return to - from;
    }
    if (near > from) {
      return near - from;
    }
    // As if records were of one size from here to the segment's end.
    double share = (double) (endOffset - fromOffset) / Math.max(1, segment.end() - fromOffset);
    return Math.max(1, (long) (share * (segment.endPosition() - from)));
  }
}
