package io.sparklog.read;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.segment.BatchPosition;
import io.sparklog.segment.BatchWalk;
import io.sparklog.segment.Extent;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.Invariant;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Shares offsets out to tasks. Small segments of a partition go together, large ones are cut where a batch begins; a split holds one
 * partition only. Nothing is listed. Only the files of segments that are cut or entered in the middle are opened.
 */
public final class SplitPlanner {
  private static final int REQUEST_BYTES = 1 << 20;

  private final ReadableTopics topics;
  private final SplitSize size;
  private final LaterState later;
  private final WalkedSegments walked;
  private final ExtentFinder finder;
  private boolean withEpochs;

  /** @param failOnDataLoss whether it is an error if offsets or the topic go while the splits are planned; otherwise they are left out */
  public SplitPlanner(ReadableTopics topics, SplitSize size, boolean failOnDataLoss) {
    this(topics, size, failOnDataLoss, new WalkedSegments());
  }

  /** As the other. @param walked the batches of the segments that earlier walks met */
  public SplitPlanner(ReadableTopics topics, SplitSize size, boolean failOnDataLoss, WalkedSegments walked) {
    this.topics = topics;
    this.size = size;
    this.later = new LaterState(topics, new LaterState.DataLoss(failOnDataLoss));
    this.walked = walked;
    this.finder = new ExtentFinder(topics, walked);
  }

  /** If asked, the splits carry the routing epochs of their offsets. */
  public SplitPlanner withEpochs(boolean asked) {
    withEpochs = asked;
    return this;
  }

  /** The wanted part of a partition, and where that is. */
  private record PlannedPartition(Selection selection, List<Extent> extents) {
    private long bytes() {
      return bytesToRead(extents);
    }
  }

  /**
   * The splits for {@code selections}, by topic, partition and offset.
   *
   * @throws PartlogException TOPIC_NOT_FOUND, TOPIC_REPLACED, SEGMENT_MISSING, OFFSETS_EXPIRED; of segments that are cut,
   *     BATCH_CORRUPT, SEGMENT_CORRUPT; of routing epochs, FORMAT_TOO_NEW
   */
  public List<Split> plan(List<Selection> selections) throws IOException {
    List<PlannedPartition> partitions = new ArrayList<>();
    for (Selection selection : selections) {
      partitions.add(find(selection));
    }
    long splitBytes = size.bytes(partitions.stream().mapToLong(PlannedPartition::bytes).sum());
    List<Split> splits = new ArrayList<>();
    for (PlannedPartition partition : partitions) {
      splits.addAll(pack(partition, splitBytes));
    }
    return splits;
  }

  private PlannedPartition find(Selection selection) throws IOException {
    while (true) {
      try {
        return new PlannedPartition(selection, finder.find(selection));
      } catch (SegmentGone gone) {
        Optional<Selection> again = again(selection, gone);
        if (again.isEmpty()) {
          return new PlannedPartition(selection, List.of());
        }
        selection = again.get();
      }
    }
  }

  private List<Split> pack(PlannedPartition found, long splitBytes) throws IOException {
    while (true) {
      try {
        return new Packing(found.selection, splitBytes).pack(found.extents);
      } catch (SegmentGone gone) {
        Optional<Selection> again = again(found.selection, gone);
        if (again.isEmpty()) {
          return List.of();
        }
        found = find(again.get());
      }
    }
  }

  /** The same in a later state; empty if the topic is gone, and that is not an error. */
  private Optional<Selection> again(Selection selection, SegmentGone gone) {
    return later.after(gone, selection.state(), selection.offsets().first(0)).map(selection::in);
  }

  private static long bytesToRead(List<Extent> extents) {
    return extents.stream().mapToLong(Extent::bytesToRead).sum();
  }

  /** Fills splits with the extents of one partition. */
  private final class Packing {
    private final Selection selection;
    private final long splitBytes;
    private final List<Split> splits = new ArrayList<>();
    private List<Extent> current = new ArrayList<>();
    /** Bytes of the extents after the extent that is being shared out. */
    private long bytesAfter;

    private Packing(Selection selection, long splitBytes) {
      this.selection = selection;
      this.splitBytes = splitBytes;
    }

    private List<Split> pack(List<Extent> extents) throws IOException {
      bytesAfter = bytesToRead(extents);
      long room = share(bytesAfter);
      for (Extent extent : extents) {
        bytesAfter -= extent.bytesToRead();
        Extent rest = extent;
        try (BatchLocator locator = locator(extent)) {
          while (rest.bytesToRead() > room + share(rest) / 8) {
            boolean isSmall = rest.bytesToRead() <= share(rest) / 4;
            Extent head = isSmall || !mayCut(locator, rest, room) ? null : cut(locator, rest, room);
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
          room = share(bytesAfter);
        }
      }
      close();
      long wanted = extents.stream().mapToLong(Extent::offsets).sum();
      long planned = splits.stream().mapToLong(Split::offsets).sum();
      Invariant.require(planned == wanted, () -> "of partition " + selection.partition() + " of " + selection.state() + ", " + wanted
          + " offsets are to be read, and splits of " + planned + " are planned");
      return splits;
    }

    /**
     * Whether the headers that lead to a cut are worth reading. Over a network each header takes a request, in whose time about a MiB can
     * be read. So if no index leads to the cut, only larger batches are walked. If more splits are asked for, batches whose headers are far
     * apart are walked too.
     */
    private boolean mayCut(BatchLocator locator, Extent extent, long room) throws IOException {
      Segment segment = extent.segment();
      if (!topics.isRemote() || segment.indexBytes() > 0 && locator.isIndexed(extent.from() + room)) {
        return true;
      }
      boolean isAskedFor = size.splitsMin() > 1 && BatchWalk.skipsRecords(segment);
      return segment.batches() > 1 && (isAskedFor || BatchWalk.meanBytes(segment) >= REQUEST_BYTES);
    }

    private long share(Extent rest) {
      return share(bytesAfter + rest.bytesToRead());
    }

    /**
     * Even shares of the bytes that are left, rather than full splits and a small last one. The rest is estimated again for each split,
     * since an estimate is wrong if record sizes change within a segment.
     */
    private long share(long bytesLeft) {
      return bytesLeft / size.count(bytesLeft, splitBytes) + 1;
    }

    /** The first {@code room} bytes of an extent up to where a batch begins, at least one batch; null if nothing would be left. */
    private Extent cut(BatchLocator locator, Extent extent, long room) throws IOException {
      BatchPosition place = locator.atPosition(extent.from() + room);
      if (place.position() <= extent.from()) {
        place = locator.next(new BatchPosition(extent.from(), extent.fromOffset()));
      }
      return place.offset() > extent.startOffset() && place.offset() < extent.endOffset() ? extent.before(place) : null;
    }

    private BatchLocator locator(Extent extent) {
      return new BatchLocator(topics, selection.state().topic(), extent.segment(), walked);
    }

    private void close() throws IOException {
      if (!current.isEmpty()) {
        limitRecords(current);
        current = new ArrayList<>();
      }
    }

    /**
     * Makes splits of {@code extents}, none with more than the most records; if a batch holds too many, several splits read the same batch.
     */
    private void limitRecords(List<Extent> extents) throws IOException {
      long offsets = extents.stream().mapToLong(Extent::offsets).sum();
      long count = offsets / size.recordsMax() + (offsets % size.recordsMax() == 0 ? 0 : 1);
      long share = offsets / count + (offsets % count == 0 ? 0 : 1);
      List<Extent> next = new ArrayList<>();
      long room = share;
      for (Extent extent : extents) {
        Extent rest = extent;
        try (BatchLocator locator = locator(extent)) {
          while (rest.offsets() > room) {
            long offset = rest.startOffset() + room;
            next.add(rest.before(offset));
            rest = rest.after(
                ExtentFinder.place(locator, rest.segment().bytes(), new BatchPosition(rest.from(), rest.fromOffset()), offset), offset);
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
      long offsets = extents.stream().mapToLong(Extent::offsets).sum();
      Invariant.require(offsets <= size.recordsMax(), () -> "a split of partition " + selection.partition() + " of " + state + " has "
          + offsets + " offsets, more than " + size.recordsMax());
      splits.add(Split.of(state, selection.partition(), selection.filter(), finder.routedKeys(state), extents, withEpochs));
    }
  }

  /**
   * How large splits should be: by bytes, like for Spark's file sources, and smaller if options ask for more splits.
   *
   * @param bytesMax the most bytes of a split ({@code spark.sql.files.maxPartitionBytes})
   * @param openBytes the cost of starting a split, as the bytes that could be read in that time ({@code spark.sql.files.openCostInBytes})
   * @param parallelism how many tasks run at once
   * @param splitsMin the least number of splits, if there are enough batches; at least 1
   * @param recordsMax the most records of a split; at least 1
   */
  public record SplitSize(long bytesMax, long openBytes, int parallelism, int splitsMin, long recordsMax) {
    /** Each partition in one split. */
    public static final SplitSize WHOLE = new SplitSize(Long.MAX_VALUE, 1, 1, 1, Long.MAX_VALUE);

    /** The bytes that a split should have when {@code totalBytes} are to be read. */
    long bytes(long totalBytes) {
      long shared = Math.min(bytesMax, Math.max(openBytes, totalBytes / Math.max(1, parallelism)));
      return Math.max(1, Math.min(shared, totalBytes / splitsMin));
    }

    /**
     * The number of splits of about {@code splitBytes} for a partition of {@code bytes}. It is the nearest number, since one more task
     * costs more than a task that is up to half as large again. If options ask for a number of splits, it is rounded up.
     */
    long count(long bytes, long splitBytes) {
      return Math.max(1, (bytes + (splitsMin > 1 ? splitBytes - 1 : splitBytes / 2)) / splitBytes);
    }
  }
}
