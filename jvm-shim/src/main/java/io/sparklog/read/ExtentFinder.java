package io.sparklog.read;

import io.sparklog.format.BatchHeader;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.segment.BatchPosition;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Extent;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/**
 * Finds what to read of each segment. The state is enough for whole segments. Large segments with only a part in the range are opened and
 * searched.
 */
final class ExtentFinder {
  /** Segments of up to this many bytes are not looked into: they are read from their start. */
  static final long LOCATE_BYTES = 256 << 10;

  /** If more bytes are read, an index says where they end. An estimate could be wrong by more than a request costs. */
  private static final long ESTIMATED_BYTES = 4 << 20;

  /** At most this many headers are read to find batches by time, which takes about a second; the rest is left to the tasks. */
  private static final int HEADERS_MAX = 200_000;

  /** The same where each takes a request. */
  private static final int HEADERS_MAX_REMOTE = 1_000;

  private final ReadableTopics topics;
  private final WalkedSegments walked;
  private final Map<State, RoutedKeys> routedKeys = new IdentityHashMap<>();
  private int headersLeft;

  ExtentFinder(ReadableTopics topics, WalkedSegments walked) {
    this.topics = topics;
    this.walked = walked;
    this.headersLeft = topics.isRemote() ? HEADERS_MAX_REMOTE : HEADERS_MAX;
  }

  /** @throws SegmentGone if a data file that it looks into is gone */
  List<Extent> find(Selection selection) throws IOException {
    List<Extent> extents = new ArrayList<>();
    for (int run = 0; run < selection.offsets().count(); run++) {
      long first = selection.offsets().first(run);
      extents.addAll(find(selection.state(), selection.partition(), first, selection.offsets().last(run) + 1, selection.filter()));
    }
    return extents;
  }

  /**
   * The extents for the offsets [{@code start}, {@code end}) of a partition whose records may meet {@code filter}.
   *
   * @throws SegmentGone if a data file that it looks into is gone
   */
  List<Extent> find(State state, int partition, long start, long end, RecordFilter filter) throws IOException {
    List<Extent> extents = new ArrayList<>();
    RoutedKeys routed = routedKeys(state);
    for (Segment segment : state.segments(partition, start, end)) {
      RecordFilter ofSegment = routed.in(List.of(segment), filter);
      long first = Math.max(start, segment.base());
      long after = Math.min(end, segment.end());
      long earliest = earliest(segment);
      long latest = Times.micros(segment.maxTimestamp());
      if (!ofSegment.canMeet(first, after - 1, earliest, latest)) {
        continue;
      }
      boolean filtered = !ofSegment.mustMeet(first, after - 1, earliest, latest);
      if (filtered && ofSegment.isAboutTime() && segment.bytes() > LOCATE_BYTES && segment.batches() <= headersLeft
          && isCheapToWalk(segment)) {
        headersLeft -= segment.batches();
        extents.addAll(byHeaders(state.topic(), segment, first, after, earliest, ofSegment));
      } else {
        extents.add(extent(state.topic(), segment, first, after, filtered));
      }
    }
    return extents;
  }

  /** The places of keys in a state, as far as they were asked for. */
  RoutedKeys routedKeys(State state) {
    return routedKeys.computeIfAbsent(state, RoutedKeys::of);
  }

  /** Whether the headers of a segment can be read without reading about all of it over a network, which the tasks would do once more. */
  private boolean isCheapToWalk(Segment segment) {
    return !topics.isRemote() || BatchWalk.skipsRecords(segment);
  }

  /** No record has a lower time, in microseconds. A version cannot hold times below -1 ms, and a record without a time has -1 ms too. */
  private static long earliest(Segment segment) {
    return segment.dense() && segment.minTimestamp() >= 0 ? Times.micros(segment.minTimestamp()) : Long.MIN_VALUE;
  }

  private Extent extent(String topic, Segment segment, long first, long after, boolean filtered) throws IOException {
    Extent extent = Extent.of(segment, BatchPosition.startOf(segment), first, after, filtered);
    try (BatchLocator locator = new BatchLocator(topics, topic, segment, walked)) {
      if (first > segment.base()) {
        extent = extent.after(place(locator, segment.bytes(), BatchPosition.startOf(segment), first), first);
      }
      boolean isEstimated = after < segment.end() && segment.indexBytes() > 0 && extent.bytesToRead() > ESTIMATED_BYTES;
      return isEstimated ? extent.endingNear(locator.near(after)) : extent;
    }
  }

  /** Where to begin to read for {@code offset}: at {@code before}, or later if it is worthwhile to look for it. */
  static BatchPosition place(BatchLocator locator, long segmentBytes, BatchPosition before, long offset) throws IOException {
    return segmentBytes <= LOCATE_BYTES ? before : locator.atOffset(offset);
  }

  /** The runs of batches of a segment that may hold such records, by the times in their headers. */
  private List<Extent> byHeaders(String topic, Segment segment, long first, long after, long earliest, RecordFilter filter)
      throws IOException {
    Extent whole = Extent.of(segment, BatchPosition.startOf(segment), first, after, true);
    List<Extent> runs = new ArrayList<>();
    try (SegmentFile file = topics.open(topic, segment)) {
      Extent run = null;
      BatchWalk walk = new BatchWalk(file);
      while (walk.next()) {
        long latest = Times.micros(BatchHeader.maxTimestamp(walk.buffer(), walk.at()));
        boolean sameTime = BatchHeader.isLogAppendTime(walk.buffer(), walk.at());
        long from = segment.ordered() ? Times.micros(BatchHeader.baseTimestamp(walk.buffer(), walk.at())) : earliest;
        boolean wanted = walk.last() >= first && walk.base() < after
            && filter.canMeet(walk.base(), walk.last(), sameTime ? latest : Math.min(from, latest), latest);
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
    } catch (PartlogException e) {
      // The headers are damaged and prove nothing: the tasks read the whole segment, and report the damage if it is in the range.
      return List.of(whole);
    }
  }
}
