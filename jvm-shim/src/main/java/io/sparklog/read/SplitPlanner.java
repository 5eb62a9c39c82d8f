package io.sparklog.read;

import io.sparklog.log.SegmentGone;
import io.sparklog.log.State;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Shares offsets out to tasks. Small segments of a partition go together, large ones are cut where a batch begins; a split holds one
 * partition only. Nothing is listed, and no file is opened but those of segments that
 * are cut or entered in the middle.
 */
public final class SplitPlanner {
  private final LogStore store;
  private final SplitSize size;

  public SplitPlanner(LogStore store, SplitSize size) {
    this.store = store;
    this.size = size;
  }

  /** The splits for {@code selections}, by topic, partition and offset. */
  public List<Split> plan(List<Selection> selections) throws IOException {
    ExtentFinder finder = new ExtentFinder(store);
    List<List<Extent>> extents = new ArrayList<>();
    long totalBytes = 0;
    for (Selection selection : selections) {
      List<Extent> found = finder.find(selection);
      extents.add(found);
      totalBytes += bytes(found);
    }
    List<Split> splits = new ArrayList<>();
    for (int i = 0; i < selections.size(); i++) {
      new Packing(selections.get(i), size.bytes(totalBytes), splits).pack(extents.get(i));
    }
    return splits;
  }

  private static long bytes(List<Extent> extents) {
    return extents.stream().mapToLong(Extent::bytesToRead).sum();
  }

  /** Fills splits with the extents of one partition. */
  private final class Packing {
    private final Selection selection;
    private final long splitBytes;
    private final List<Split> splits;
    private List<Extent> current = new ArrayList<>();
    /** Bytes of the extents after the one that is being shared out. */
    private long later;

    private Packing(Selection selection, long splitBytes, List<Split> splits) {
      this.selection = selection;
      this.splitBytes = splitBytes;
      this.splits = splits;
    }

    private void pack(List<Extent> extents) throws IOException {
      later = bytes(extents);
      long room = share(later);
      for (Extent extent : extents) {
        later -= extent.bytesToRead();
        Extent rest = extent;
        try (BatchLocator finder = finder(extent)) {
          while (rest.bytesToRead() > room + share(rest) / 8) {
            Extent head = rest.bytesToRead() <= share(rest) / 4 ? null : cut(finder, rest, room);
            if (head != null) {
              current.add(head);
              rest = rest.after(new BatchPosition(head.to(), head.endOffset()), head.endOffset());
            } else if (current.isEmpty() || rest.bytesToRead() / 2 <= room) {
              break;
            }
            close();
            room = share(rest);
          }
        }
        current.add(rest);
        room -= rest.bytesToRead();
        if (room <= 0) {
          close();
          room = share(later);
        }
      }
      close();
    }

    private long share(Extent rest) {
      return share(later + rest.bytesToRead());
    }

    /**
     * Even shares of the bytes that are left, rather than full splits and a small last one. What is left is estimated again for each split,
     * since an estimate is wrong where record sizes change within a
     * segment.
     */
    private long share(long bytesLeft) {
      return bytesLeft / size.count(bytesLeft, splitBytes) + 1;
    }

    /** The first {@code room} bytes of an extent up to where a batch begins, at least one batch; null if nothing would be left. */
    private Extent cut(BatchLocator finder, Extent extent, long room) throws IOException {
      try {
        BatchPosition place = finder.atPosition(extent.from() + room);
        if (place.position() <= extent.from()) {
          place = finder.next(new BatchPosition(extent.from(), extent.fromOffset()));
        }
        return place.offset() > extent.startOffset() && place.offset() < extent.endOffset() ? extent.before(place) : null;
      } catch (SegmentGone gone) {
        return null;
      }
    }

    private BatchLocator finder(Extent extent) {
      return new BatchLocator(store, selection.state().topic(), extent.segment(selection.partition()));
    }

    private void close() throws IOException {
      if (!current.isEmpty()) {
        limitRecords(current);
        current = new ArrayList<>();
      }
    }

    /**
     * Makes splits of {@code extents}, none with more than the most records; where batches hold too many, several splits read the same
     * batch.
     */
    private void limitRecords(List<Extent> extents) throws IOException {
      long offsets = extents.stream().mapToLong(Extent::offsets).sum();
      long count = offsets / size.recordsMax() + (offsets % size.recordsMax() == 0 ? 0 : 1);
      long share = offsets / count + (offsets % count == 0 ? 0 : 1);
      List<Extent> next = new ArrayList<>();
      long room = share;
      for (Extent extent : extents) {
        Extent rest = extent;
        try (BatchLocator finder = finder(extent)) {
          while (rest.offsets() > room) {
            long offset = rest.startOffset() + room;
            next.add(rest.before(offset));
            rest = rest.after(ExtentFinder.place(finder, rest.bytes(), new BatchPosition(rest.from(), rest.fromOffset()), offset), offset);
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
      State state = selection.state();
      splits.add(new Split(state.topic(), state.topicId(), state.version(), selection.partition(), state.config().decompressedBytesMax(),
          selection.condition(), new ArrayList<>(extents)));
    }
  }
}
