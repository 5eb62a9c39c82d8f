package io.sparklog.read;

import io.sparklog.format.BatchDecoder;
import io.sparklog.segment.Extent;
import io.sparklog.segment.ExtentReader;
import io.sparklog.spec.Invariant;
import java.util.Arrays;

/**
 * The records of the current batch that a reader returns: they are in the offsets of the extent, and meet the filter. They are records
 * {@link #first} to {@link #first} + {@link #rows} − 1 of the {@link #decoder}.
 */
public final class VisibleRecords {
  /** After so many records, a hint that left out less than a quarter of them is no longer tested: it costs more time than it saves. */
  private static final int TRIAL = 512;

  private final BatchDecoder decoder;
  private RecordFilter filter;
  /** How many records the filter was asked of, and how many met it; until it was tried. */
  private int tried;
  private int met;
  private long base;
  private boolean headerOnly;
  private int first;
  private int rows;

  VisibleRecords(BatchDecoder decoder, RecordFilter filter) {
    this.decoder = decoder;
    this.filter = filter;
  }

  /** Selects records of the batch that {@code reader} has read, at most {@code rowsMax}. */
  void select(ExtentReader reader, long rowsMax) {
    Extent extent = reader.extent();
    base = reader.base();
    headerOnly = !reader.isDecoded();
    int count = decoder.count();
    first = base >= extent.startOffset() ? 0 : firstFrom(extent.startOffset() - base, count);
    int end = reader.nextOffset() <= extent.endOffset() ? count : firstFrom(extent.endOffset() - base, count);
    if (extent.filtered() && !filter.equals(RecordFilter.ALL_RECORDS)) {
      int tested = Math.max(0, end - first);
      end = filter(first, end);
      watch(tested, end - first);
    }
    rows = (int) Math.min(rowsMax, Math.max(0, end - first));
    Invariant.require(first >= 0 && (rows == 0 || first + rows <= count),
        () -> rows + " records from " + first + " on are shown of " + count + " of the batch at offset " + base + " of " + extent);
  }

  private int firstFrom(long delta, int count) {
    if (delta <= 0) {
      return 0;
    }
    if (headerOnly || delta > Integer.MAX_VALUE) {
      return (int) Math.min(count, delta);
    }
    int found = Arrays.binarySearch(decoder.offsetDeltas(), 0, count, (int) delta);
    return found >= 0 ? found : -found - 1;
  }

  private void watch(int tested, int kept) {
    if (tried < TRIAL) {
      tried += tested;
      met += kept;
      if (tried >= TRIAL && met > tried * 3L / 4) {
        filter = filter.withoutHints();
      }
    }
  }

  /** Moves the records that meet the filter together, over the other records, and returns their end. */
  private int filter(int from, int end) {
    int[] offsetDeltas = decoder.offsetDeltas();
    long[] timestamps = decoder.timestamps();
    byte[] data = decoder.data();
    int[] keyAt = decoder.keyAt();
    int[] keyLengths = decoder.keyLengths();
    int to = from;
    for (int i = from; i < end; i++) {
      if (filter.isMet(base + offsetDeltas[i], Times.micros(timestamps[i]), data, keyAt[i], keyLengths[i])) {
        if (to < i) {
          decoder.keep(i, to);
        }
        to++;
      }
    }
    return to;
  }

  /** Holds the records, unless {@link #isHeaderOnly}. */
  public BatchDecoder decoder() {
    return decoder;
  }

  /** The offset that the offset deltas of the records count from. */
  public long base() {
    return base;
  }

  /** Whether the records have offset deltas 0, 1, 2, … and were not decoded. */
  public boolean isHeaderOnly() {
    return headerOnly;
  }

  /** The index of the first record. */
  public int first() {
    return first;
  }

  /** How many records there are. */
  public int rows() {
    return rows;
  }
}
