package io.sparklog.stream;

import io.sparklog.log.ReadableTopics;
import io.sparklog.read.BatchLocator;
import io.sparklog.read.Selection;
import io.sparklog.read.WalkedSegments;
import io.sparklog.segment.BatchPosition;
import io.sparklog.segment.Segment;
import java.io.Closeable;
import java.io.IOException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;

/**
 * Shares a number of bytes among partitions in whole record batches, by the waiting bytes of each partition. First as many batches as fit,
 * then one batch at a time until the number is reached. So it is exceeded by less than one batch, and there is always one.
 */
final class ByteShares implements Closeable {
  private final List<Cursor> cursors = new ArrayList<>();
  private int nextTurn;

  /**
   * Shares out {@code most} bytes, at least 1.
   *
   * @param waiting what waits, by partition
   * @param turn the partition that comes first where not all can have a batch
   * @param walked the batches of the segments that earlier walks met
   * @throws io.sparklog.segment.SegmentGone if a data file that is looked into is gone
   */
  ByteShares(ReadableTopics topics, List<Selection.OffsetRange> waiting, long most, int turn, WalkedSegments walked) throws IOException {
    this.nextTurn = turn;
    waiting.forEach(range -> cursors.add(new Cursor(topics, range, walked)));
    long left = most;
    for (long before = -1; left != before;) {
      before = left;
      left = whatFits(left);
    }
    for (int idle = 0; left > 0 && idle < cursors.size(); nextTurn = (nextTurn + 1) % cursors.size()) {
      long taken = cursors.get(nextTurn).takeOne();
      left -= taken;
      idle = taken > 0 ? 0 : idle + 1;
    }
  }

  /** The ranges, each up to the end of its share. */
  List<Selection.OffsetRange> ranges() {
    return cursors.stream().map(Cursor::taken).toList();
  }

  /** The partition that comes first the next time. */
  int nextTurn() {
    return nextTurn;
  }

  /** Gives each partition the batches that fit into its share of {@code most} bytes; returns the bytes that are left. */
  private long whatFits(long most) throws IOException {
    long[] waiting = cursors.stream().mapToLong(Cursor::waitingBytes).toArray();
    BigInteger all = OffsetShares.sum(waiting);
    long left = most;
    for (int i = 0; i < waiting.length && all.signum() > 0; i++) {
      BigInteger share = BigInteger.valueOf(most).multiply(BigInteger.valueOf(waiting[i])).divide(all);
      left -= cursors.get(i).takeUpTo(share.min(BigInteger.valueOf(most)).longValueExact());
    }
    return left;
  }

  @Override
  public void close() throws IOException {
    for (Cursor cursor : cursors) {
      cursor.close();
    }
  }

  /** How far the batches of one partition are given away. */
  private static final class Cursor implements Closeable {
    private final ReadableTopics topics;
    private final Selection.OffsetRange range;
    private final WalkedSegments walked;
    private final List<Segment> segments;
    private long taken;
    private int current;

    /** About how many bytes of the range are in the segments after the current one. */
    private long bytesAfter;

    /** The first batch of the current segment that is not given away; null if that is not known yet. */
    private BatchPosition next;

    /** The locator of the current segment; null if it need not be looked into. */
    private BatchLocator locator;

    private Cursor(ReadableTopics topics, Selection.OffsetRange range, WalkedSegments walked) {
      this.topics = topics;
      this.range = range;
      this.walked = walked;
      this.segments = range.state().segments(range.partition(), range.start(), range.end());
      this.taken = range.start();
      this.bytesAfter = segments.stream().skip(1).mapToLong(this::bytesLeft).sum();
    }

    private Selection.OffsetRange taken() {
      // Offsets that have expired, and gaps at the end, have no bytes.
      return new Selection.OffsetRange(range.state(), range.partition(), range.start(), current == segments.size() ? range.end() : taken);
    }

    /** About how many bytes are left. */
    private long waitingBytes() {
      return current == segments.size() ? 0 : bytesLeft(segments.get(current)) + bytesAfter;
    }

    /** As if records were of one size within a segment. */
    private long bytesLeft(Segment segment) {
      double share = Math.min(range.end(), segment.end()) - (double) Math.max(taken, segment.base());
      return (long) Math.ceil(share / (segment.end() - segment.base()) * segment.bytes());
    }

    /** Takes the batches that fit into {@code most} bytes; returns their bytes. */
    private long takeUpTo(long most) throws IOException {
      long left = most;
      while (current < segments.size()) {
        Segment segment = segments.get(current);
        BatchPosition from = next(segment);
        long rest = segment.endPosition() - from.position();
        if (rest <= left && segment.end() <= range.end()) {
          left -= rest;
          endSegment(segment.end());
        } else {
          BatchPosition to = left == 0 ? from : locator(segment).lastUpTo(from, from.position() + Math.min(left, rest));
          left -= to.position() - from.position();
          advance(segment, to);
          break;
        }
      }
      return most - left;
    }

    /** Takes one batch; returns its bytes, 0 without a batch. */
    private long takeOne() throws IOException {
      if (current == segments.size()) {
        return 0;
      }
      Segment segment = segments.get(current);
      BatchPosition from = next(segment);
      BatchPosition to = locator(segment).next(from);
      advance(segment, to);
      return to.position() - from.position();
    }

    private BatchPosition next(Segment segment) throws IOException {
      if (next == null) {
        next = BatchPosition.startOf(segment);
        if (taken > segment.base()) {
          next = locator(segment).atOffset(taken);
          for (BatchPosition after = next; after.offset() <= taken && after.position() < segment.endPosition();) {
            next = after;
            after = locator.next(after);
          }
        }
      }
      return next;
    }

    private void advance(Segment segment, BatchPosition to) throws IOException {
      next = to;
      if (to.position() >= segment.endPosition() || to.offset() >= range.end()) {
        endSegment(Math.min(segment.end(), range.end()));
      } else {
        taken = Math.max(taken, to.offset());
      }
    }

    private void endSegment(long end) throws IOException {
      close();
      taken = end;
      next = null;
      current++;
      bytesAfter -= current == segments.size() ? 0 : bytesLeft(segments.get(current));
    }

    private BatchLocator locator(Segment segment) {
      if (locator == null) {
        locator = new BatchLocator(topics, range.state().topic(), segment, walked);
      }
      return locator;
    }

    @Override
    public void close() throws IOException {
      if (locator != null) {
        locator.close();
        locator = null;
      }
    }
  }
}
