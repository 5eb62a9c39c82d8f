package io.sparklog.read;

import io.sparklog.format.BatchHeader;
import io.sparklog.log.BatchWalk;
import io.sparklog.log.Segment;
import io.sparklog.log.SegmentFile;
import io.sparklog.log.SegmentGone;
import io.sparklog.log.State;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Finds what to read of each segment: whole segments go by what the state says of them, and large ones that are wanted in part are looked
 * into.
 */
final class ExtentFinder {
  /** Segments up to this size are read from their start rather than looked into. */
  static final long LOCATE_BYTES = 256 << 10;

  /** So many headers are read to find batches by time, about a second's worth; what is left then is left to the tasks. */
  private static final int HEADERS_MAX = 200_000;

  private final LogStore store;
  private int headersLeft = HEADERS_MAX;

  ExtentFinder(LogStore store) {
    this.store = store;
  }

  List<Extent> find(Selection selection) throws IOException {
    List<Extent> extents = new ArrayList<>();
    for (int run = 0; run < selection.offsets().count(); run++) {
      long first = selection.offsets().first(run);
      extents.addAll(find(selection.state(), selection.partition(), first, selection.offsets().last(run) + 1, selection.condition()));
    }
    return extents;
  }

  /** The extents for the offsets [{@code start}, {@code end}) of a partition whose records may meet {@code condition}. */
  List<Extent> find(State state, int partition, long start, long end, Condition condition) throws IOException {
    List<Extent> extents = new ArrayList<>();
    for (Segment segment : state.segments(partition, start, end)) {
      long first = Math.max(start, segment.base());
      long after = Math.min(end, segment.end());
      // Records without a time count as one of -1 ms.
      long earliest = Times.micros(segment.dense() ? segment.minTimestamp() : Math.min(-1, segment.minTimestamp()));
      long latest = Times.micros(segment.maxTimestamp());
      if (!condition.canMeet(first, after - 1, earliest, latest)) {
        continue;
      }
      boolean tested = !condition.mustMeet(first, after - 1, earliest, latest);
      if (tested && condition.isAboutTime() && segment.bytes() > LOCATE_BYTES && segment.batches() <= headersLeft) {
        headersLeft -= segment.batches();
        extents.addAll(byHeaders(state.topic(), segment, first, after, earliest, condition));
      } else {
        extents.add(Extent.of(segment, place(state.topic(), segment, first), first, after, tested));
      }
    }
    return extents;
  }

  private BatchPosition place(String topic, Segment segment, long offset) throws IOException {
    BatchPosition start = BatchPosition.startOf(segment);
    if (offset == segment.base()) {
      return start;
    }
    try (BatchLocator finder = new BatchLocator(store, topic, segment)) {
      return place(finder, segment.bytes(), start, offset);
    }
  }

  /** Where to begin to read for {@code offset}: at {@code before}, or later if looking for it is worth while. */
  static BatchPosition place(BatchLocator finder, long segmentBytes, BatchPosition before, long offset) throws IOException {
    if (segmentBytes <= LOCATE_BYTES) {
      return before;
    }
    try {
      return finder.atOffset(offset);
    } catch (SegmentGone gone) {
      // The task that comes to it will look for the offsets elsewhere.
      return before;
    }
  }

  /** The runs of batches of a segment that may hold such records, by the times in their headers. */
  private List<Extent> byHeaders(String topic, Segment segment, long first, long after, long earliest, Condition condition)
      throws IOException {
    Extent whole = Extent.of(segment, BatchPosition.startOf(segment), first, after, true);
    List<Extent> runs = new ArrayList<>();
    try (SegmentFile file = SegmentFile.open(store, topic, segment)) {
      BatchWalk walk = new BatchWalk(file);
      Extent run = null;
      while (walk.next()) {
        long latest = Times.micros(BatchHeader.maxTimestamp(walk.buffer(), walk.at()));
        boolean sameTime = BatchHeader.isLogAppendTime(walk.buffer(), walk.at());
        long from = segment.ordered() ? Times.micros(BatchHeader.baseTimestamp(walk.buffer(), walk.at())) : earliest;
        boolean wanted = walk.last() >= first && walk.base() < after
            && condition.canMeet(walk.base(), walk.last(), sameTime ? latest : Math.min(from, latest), latest);
        BatchPosition place = new BatchPosition(walk.position(), walk.base());
        if (wanted && run == null) {
          run = whole.after(place, Math.max(first, walk.base()));
        } else if (!wanted && run != null) {
          runs.add(walk.base() < after ? run.before(place) : run);
          run = null;
        }
      }
      if (run != null) {
        runs.add(run);
      }
      walk.requireHeaderCrc();
      return runs;
    } catch (SegmentGone | PartlogException e) {
      // What the headers say cannot be trusted: the tasks read all of it, and find out what is wrong if it is among what is asked for.
      return List.of(whole);
    }
  }
}
