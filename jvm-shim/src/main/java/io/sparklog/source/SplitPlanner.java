package io.sparklog.source;

import io.sparklog.log.Segment;
import io.sparklog.log.State;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.List;

/**
 * Shares offsets out to tasks. Small segments of a partition go together, large ones are cut where a batch begins; a split holds one partition only. Nothing is listed, and no file is opened but those of segments that
 * are cut or entered in the middle.
 */
final class SplitPlanner {
  /** Segments up to this size are read from their start rather than looked into. */
  private static final long LOCATE_BYTES = 256 << 10;

  private final LogStore store;
  private final SplitSize size;

  SplitPlanner(LogStore store, SplitSize size) {
    this.store = store;
    this.size = size;
  }

  /** The splits for {@code ranges}, by topic, partition and offset; none for what is empty. */
  List<Split> plan(List<OffsetBounds.Range> ranges) throws IOException {
    List<List<Extent>> extents = new ArrayList<>();
    long totalBytes = 0;
    for (OffsetBounds.Range range : ranges) {
      List<Extent> ofRange = extents(store, range.state(), range.partition(), range.start(), range.end());
      extents.add(ofRange);
      totalBytes += bytes(ofRange);
    }
    List<Split> splits = new ArrayList<>();
    for (int i = 0; i < ranges.size(); i++) {
      Packing packing = new Packing(ranges.get(i), size.bytes(totalBytes), splits);
      packing.pack(extents.get(i));
    }
    return splits;
  }

  /** What of each live segment is to be read for the offsets [{@code start}, {@code end}) of a partition. */
  static List<Extent> extents(LogStore store, State state, int partition, long start, long end) throws IOException {
    List<Extent> extents = new ArrayList<>();
    for (Segment segment : state.segments(partition, start, end)) {
      long first = Math.max(start, segment.base());
      extents.add(Extent.of(segment, place(store, state.topic(), segment, first), first, Math.min(end, segment.end())));
    }
    return extents;
  }

  private static BatchFinder.Place place(LogStore store, String topic, Segment segment, long offset) throws IOException {
    BatchFinder.Place start = BatchFinder.Place.startOf(segment);
    if (offset == segment.base()) {
      return start;
    }
    try (BatchFinder finder = new BatchFinder(store, topic, segment)) {
      return place(finder, segment.bytes(), start, offset);
    }
  }

  /** Where to begin to read for {@code offset}: at {@code before}, or later if looking for it is worth while. */
  private static BatchFinder.Place place(BatchFinder finder, long segmentBytes, BatchFinder.Place before, long offset) throws IOException {
    if (segmentBytes <= LOCATE_BYTES) {
      return before;
    }
    try {
      return finder.atOffset(offset);
    } catch (NoSuchFileException gone) {
      // The task that comes to it will look for the offsets elsewhere.
      return before;
    }
  }

  private static long bytes(List<Extent> extents) {
    return extents.stream().mapToLong(Extent::bytesToRead).sum();
  }

  /** Fills splits with the extents of one range. */
  private final class Packing {
    private final OffsetBounds.Range range;
    private final long splitBytes;
    private final List<Split> splits;
    private List<Extent> current = new ArrayList<>();
    private long left;
    private long splitsLeft;

    private Packing(OffsetBounds.Range range, long splitBytes, List<Split> splits) {
      this.range = range;
      this.splitBytes = splitBytes;
      this.splits = splits;
    }

    private void pack(List<Extent> extents) throws IOException {
      left = bytes(extents);
      splitsLeft = (left + splitBytes - 1) / splitBytes;
      long room = share();
      for (Extent extent : extents) {
        Extent rest = extent;
        try (BatchFinder finder = finder(extent)) {
          while (rest.bytesToRead() > room + share() / 8) {
            Extent head = rest.bytesToRead() <= share() / 4 ? null : cut(finder, rest, room);
            if (head != null) {
              take(head);
              rest = rest.after(new BatchFinder.Place(head.to(), head.endOffset()), head.endOffset());
            } else if (current.isEmpty() || rest.bytesToRead() / 2 <= room) {
              break;
            }
            close();
            room = share();
          }
        }
        take(rest);
        room -= rest.bytesToRead();
        if (room <= 0) {
          close();
          room = share();
        }
      }
      close();
    }

    /** Even shares of what is left, rather than full splits and a small last one. */
    private long share() {
      return left / Math.max(1, splitsLeft) + 1;
    }

    private void take(Extent extent) {
      current.add(extent);
      left -= extent.bytesToRead();
    }

    /** The first {@code room} bytes of an extent up to where a batch begins, at least one batch; null if nothing would be left. */
    private Extent cut(BatchFinder finder, Extent extent, long room) throws IOException {
      try {
        BatchFinder.Place place = finder.atPosition(extent.from() + room);
        if (place.position() <= extent.from()) {
          place = finder.next(new BatchFinder.Place(extent.from(), extent.fromOffset()));
        }
        return place.offset() > extent.startOffset() && place.offset() < extent.endOffset() ? extent.before(place) : null;
      } catch (NoSuchFileException gone) {
        return null;
      }
    }

    private BatchFinder finder(Extent extent) {
      return new BatchFinder(store, range.state().topic(), extent.segment(range.partition()));
    }

    private void close() throws IOException {
      if (!current.isEmpty()) {
        limitRecords(current);
        current = new ArrayList<>();
        splitsLeft--;
      }
    }

    /** Makes splits of {@code extents}, none with more than the most records; where batches hold too many, several splits read the same batch. */
    private void limitRecords(List<Extent> extents) throws IOException {
      long offsets = extents.stream().mapToLong(Extent::offsets).sum();
      long count = offsets / size.recordsMax() + (offsets % size.recordsMax() == 0 ? 0 : 1);
      long share = offsets / count + (offsets % count == 0 ? 0 : 1);
      List<Extent> next = new ArrayList<>();
      long room = share;
      for (Extent extent : extents) {
        Extent rest = extent;
        try (BatchFinder finder = finder(extent)) {
          while (rest.offsets() > room) {
            long offset = rest.startOffset() + room;
            next.add(rest.before(offset));
            rest = rest.after(place(finder, rest.bytes(), new BatchFinder.Place(rest.from(), rest.fromOffset()), offset), offset);
            add(next);
            next = new ArrayList<>();
            room = share;
          }
        }
        next.add(rest);
        room -= rest.offsets();
        if (room == 0) {
          add(next);
          next = new ArrayList<>();
          room = share;
        }
      }
      if (!next.isEmpty()) {
        add(next);
      }
    }

    private void add(List<Extent> extents) {
      State state = range.state();
      splits.add(
          new Split(
              state.topic(), state.topicId(), state.version(), range.partition(), state.config().decompressedBytesMax(), new ArrayList<>(extents)));
    }
  }
}
