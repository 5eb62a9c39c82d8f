package io.sparklog.merge;

import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.Extent;
import io.sparklog.segment.ExtentReader;
import io.sparklog.segment.Names;
import io.sparklog.segment.ReadAhead;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentBuilder;
import io.sparklog.segment.SegmentFiles;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiConsumer;

/**
 * Writes the records of neighbouring segments into new data files: their batches as they are, with absolute offsets, or new batches of the
 * same records. All that it reads is checked, so that damage never gets a checksum that is right. FORMAT.md section 4.
 */
final class MergeWriter implements Closeable {
  private final LogStore store;
  private final State state;
  private final int batchBytes;
  private final ReadAhead ahead = new ReadAhead();
  private final BatchDecoder decoder;
  private final MergedFiles files;
  private final BiConsumer<Segment, PartlogException> damaged;

  /** The data files of the runs that are being written. */
  private SegmentFiles sources;

  /** The segment that is being read. */
  private Segment source;

  /**
   * @param txn the random identity of the merge
   * @param batchBytes 0 to keep the batches; otherwise the most bytes of a new one, before compression
   * @param damaged gets each segment that cannot be read, and the reason
   */
  MergeWriter(LogStore store, State state, String txn, int batchBytes, BiConsumer<Segment, PartlogException> damaged) {
    TopicConfig config = state.config();
    this.store = store;
    this.state = state;
    this.batchBytes = Math.min(batchBytes, config.batchBytesMax());
    this.decoder = new BatchDecoder(config.decompressedBytesMax());
    this.files = new MergedFiles(store, state, Names.dataFolder(Merge.plannedVersion(state), txn));
    this.damaged = damaged;
  }

  /**
   * Writes each run. A damaged segment is left alone: it ends its run, and those after it are another.
   *
   * @return the merged segments that are worth a commit; all are durable
   * @throws io.sparklog.segment.SegmentGone if a data file is gone
   */
  List<MergePlan.Merged> write(List<MergePlan.Run> runs) throws IOException {
    List<Extent> read = runs.stream().flatMap(run -> run.segments().stream()).map(Extent::of).toList();
    try (SegmentFiles opened = SegmentFiles.ahead(store, state.topic(), read)) {
      sources = opened;
      List<MergePlan.Merged> merged = merged(runs);
      if (!merged.isEmpty()) {
        files.sync();
      }
      return merged;
    }
  }

  private List<MergePlan.Merged> merged(List<MergePlan.Run> runs) throws IOException {
    List<MergePlan.Merged> merged = new ArrayList<>();
    for (MergePlan.Run run : runs) {
      Deque<List<Segment>> left = new ArrayDeque<>(List.of(run.segments()));
      while (!left.isEmpty()) {
        List<Segment> sources = left.pop();
        try {
          one(sources).ifPresent(merged::add);
        } catch (PartlogException e) {
          files.discard();
          damaged.accept(source, e);
          int at = sources.indexOf(source);
          left.push(sources.subList(at + 1, sources.size()));
          left.push(sources.subList(0, at));
        }
      }
    }
    return merged;
  }

  private Optional<MergePlan.Merged> one(List<Segment> sources) throws IOException {
    if (batchBytes > 0) {
      return sources.isEmpty()
          ? Optional.empty()
          : Optional.of(new MergePlan.Merged(sources, rebatched(sources))).filter(MergeWriter::isWorth);
    }
    return sources.size() < 2 ? Optional.empty() : Optional.of(new MergePlan.Merged(sources, List.of(joined(sources))));
  }

  /** Whether there are half as many batches at most. Otherwise they were not tiny, or may not be joined. */
  private static boolean isWorth(MergePlan.Merged rebatched) {
    return 2 * batches(rebatched.added()) <= batches(rebatched.removed());
  }

  private static long batches(List<Segment> segments) {
    return segments.stream().mapToLong(Segment::batches).sum();
  }

  private Segment joined(List<Segment> sources) throws IOException {
    int partition = sources.get(0).partition();
    SegmentBuilder joined = new SegmentBuilder(partition, null, 0);
    for (Segment segment : sources) {
      try (ExtentReader reader = read(segment, ExtentReader.Need.BYTES)) {
        while (reader.next()) {
          byte[] buffer = reader.buffer();
          int at = reader.at();
          joined.add(buffer, at, Rebatch.leastTime(segment, buffer, at), segment.routed(), segment.ordered());
          BatchHeader.setBaseOffset(buffer, at, reader.base());
          files.write(partition, buffer, at, reader.bytes());
        }
      }
    }
    return files.end(joined, sources.get(0).base());
  }

  private ExtentReader read(Segment segment, ExtentReader.Need need) throws IOException {
    source = segment;
    return ExtentReader.open(sources.open(Extent.of(segment)), Extent.of(segment), need, ahead, decoder);
  }

  private List<Segment> rebatched(List<Segment> sources) throws IOException {
    Rebatch rebatch = new Rebatch(state.config(), batchBytes, files, sources);
    for (Segment segment : sources) {
      try (ExtentReader reader = read(segment, ExtentReader.Need.RECORDS)) {
        while (reader.next()) {
          rebatch.add(segment, reader, decoder);
        }
      }
    }
    return rebatch.end();
  }

  /** Deletes all that was written, but for the data files {@code kept}. */
  void deleteAllBut(Set<String> kept) {
    files.deleteAllBut(kept);
  }

  @Override
  public void close() throws IOException {
    files.close();
  }
}
