package io.sparklog.read;

import io.sparklog.log.Segment;
import java.io.Serializable;

/**
 * A part of a segment to read: the offsets count, the positions only say where the planner saw them.
 *
 * @param position of the segment in its file, as all of {@code file} to {@code headerCrc} are the segment's
 * @param from position of the first batch to read
 * @param fromOffset the offset that batch begins with, or in a segment with gaps one before it
 * @param to position after the last batch to read; −1 where only {@code endOffset} says where to stop
 * @param startOffset the first offset to hand out
 * @param endOffset the offset after the last one to hand out
 * @param tested whether of the records between only those are handed out that meet the split's condition
 */
public record Extent(String file, long position, long bytes, long base, long end, long records, int batches, boolean dense, int headerCrc,
    long from, long fromOffset, long to, long startOffset, long endOffset, boolean tested) implements Serializable {

  /** The offsets [{@code startOffset}, {@code endOffset}) of a segment, read from {@code first} on. */
  static Extent of(Segment segment, BatchPosition first, long startOffset, long endOffset, boolean tested) {
    return new Extent(segment.file(), segment.position(), segment.bytes(), segment.base(), segment.end(), segment.records(),
        segment.batches(), segment.dense(), segment.headerCrc(), first.position(), first.offset(),
        endOffset == segment.end() ? segment.endPosition() : -1, startOffset, endOffset, tested);
  }

  /** What comes before the batch that begins at {@code cut}. */
  Extent before(BatchPosition cut) {
    return with(from, fromOffset, cut.position(), startOffset, cut.offset());
  }

  /** What comes before {@code offset}, which may lie within a batch. */
  Extent before(long offset) {
    return with(from, fromOffset, -1, startOffset, offset);
  }

  /** The offsets from {@code offset} on; {@code first} is the batch that holds it. */
  public Extent after(BatchPosition first, long offset) {
    return with(first.position(), first.offset(), to, offset, endOffset);
  }

  private Extent with(long from, long fromOffset, long to, long startOffset, long endOffset) {
    return new Extent(file, position, bytes, base, end, records, batches, dense, headerCrc, from, fromOffset, to, startOffset, endOffset,
        tested);
  }

  /** The segment as far as readers need it: its times, their order and its routing did not travel. */
  Segment segment(int partition) {
    return new Segment(partition, file, position, bytes, base, end, records, batches, -1, -1, dense, false, false, headerCrc);
  }

  /** Whether all batches of the segment are read, so that their headers can be checked together. */
  boolean isWhole() {
    return from == position && to == position + bytes;
  }

  long offsets() {
    return endOffset - startOffset;
  }

  /** About how many bytes there are to read. */
  long bytesToRead() {
    if (to >= 0) {
      return to - from;
    }
    // Records are taken to be of one size from here to the segment's end.
    double share = (double) (endOffset - fromOffset) / Math.max(1, end - fromOffset);
    return Math.max(1, (long) (share * (position + bytes - from)));
  }
}
