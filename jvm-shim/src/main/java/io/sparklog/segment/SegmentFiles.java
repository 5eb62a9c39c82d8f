package io.sparklog.segment;

import io.sparklog.storage.PlannedReads;
import io.sparklog.storage.ReadStore;
import java.io.Closeable;
import java.io.IOException;
import java.util.List;

/** Opens the data files of extents that a caller reads one after another. */
@FunctionalInterface
public interface SegmentFiles extends Closeable {
  /** Opens the data file of an extent. @throws SegmentGone if it is gone; this may come when it is read, and not before */
  SegmentFile open(Extent extent) throws IOException;

  /** Asks for bytes of the extents that are left: see {@link PlannedReads#want(long, long)}. */
  default void want(long bytes, long aheadMax) {}

  /** Gives up the requests for extents that are not open yet. */
  @Override
  default void close() {}

  /** Data files of a store. Over a network, the bytes of the next extents are asked for while the caller reads an extent. */
  static SegmentFiles ahead(ReadStore store, String topic, List<Extent> extents) {
    if (!store.isRemote()) {
      return extent -> SegmentFile.open(store, topic, extent.segment());
    }
    PlannedReads reads = new PlannedReads(store::open, store.requests(),
        extents.stream()
            .map(extent -> new PlannedReads.Range(Names.dataFile(topic, extent.segment().file()), extent.from(), extent.expectedEnd()))
            .toList());
    return new SegmentFiles() {
      @Override
      public SegmentFile open(Extent extent) throws IOException {
        return SegmentFile.open(store, reads::open, topic, extent.segment());
      }

      @Override
      public void want(long bytes, long aheadMax) {
        reads.want(bytes, aheadMax);
      }

      @Override
      public void close() {
        reads.close();
      }
    };
  }
}
