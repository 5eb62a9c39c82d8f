package io.sparklog.serve.coordinator.groups;

import io.sparklog.log.Change;
import io.sparklog.log.NextVersion;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentBuilder;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import io.sparklog.storage.FileAppender;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.errors.NotCoordinatorException;

/** Adds records to partitions of a topic, each only if the partition still ends where its caller expects. */
final class FencedAppend implements Change {
  /** @param minTimestamp the least time of its records, ms since 1970 */
  record Batch(byte[] bytes, int records, long minTimestamp) {}

  /**
   * Records for one partition.
   *
   * @param topicId of the topic that the records are for
   * @param end the end offset that the partition must have
   * @param replaces whether the records take the place of all records of the partition: the log start offset rises to {@code end}
   * @param done the end offset after them; or the error, with which nothing of them is committed: {@link Fenced}, or the error of a commit
   */
  record Part(String topicId, int partition, long end, boolean replaces, List<Batch> batches, CompletableFuture<Long> done) {
    long newEnd() {
      return end + batches.stream().mapToLong(Batch::records).sum();
    }
  }

  /** The partition has another end than the expected one, or the topic was created again or deleted. */
  static final class Fenced extends NotCoordinatorException {
    private static final long serialVersionUID = 1;

    Fenced(String message) {
      super(message);
    }
  }

  private final TopicLog log;
  private final List<Part> parts;
  private final String file;
  private final long planned;
  private final int segmentBytes;

  /** The segments of each part, with offsets that count from 0. */
  private final List<List<Segment>> segments = new ArrayList<>();

  /** The parts of the version that was asked for last. */
  private final List<Part> added = new ArrayList<>();

  /**
   * @param known the state for which the parts were made
   * @param txn the random identity of the attempt
   */
  FencedAppend(TopicLog log, State known, List<Part> parts, String txn) {
    this.log = log;
    this.parts = parts;
    this.planned = known.version() + 1;
    this.file = Names.dataFolder(planned, txn) + "/" + Names.poolFile();
    this.segmentBytes = known.config().segmentBytes();
  }

  @Override
  public void prepare() throws IOException {
    String name = Names.topicFile(log.topic(), file);
    long position = 0;
    try (FileAppender out = log.store().create(name)) {
      for (Part part : parts) {
        List<Segment> made = new ArrayList<>();
        SegmentBuilder open = null;
        for (Batch batch : part.batches) {
          if (open != null && !open.fits(batch.bytes, 0, segmentBytes)) {
            made.add(open.segment());
            open = null;
          }
          open = open == null ? new SegmentBuilder(part.partition, file, position) : open;
          open.add(batch.bytes, 0, batch.minTimestamp, false, false);
          out.write(batch.bytes, 0, batch.bytes.length);
          position += batch.bytes.length;
        }
        if (open != null) {
          made.add(open.segment());
        }
        segments.add(made);
      }
      out.sync();
    }
    log.store().flush(Names.topicFile(log.topic(), folder()));
    log.store().flush(Names.topicFile(log.topic(), Names.DATA));
  }

  @Override
  public Optional<NextVersion> next(Optional<State> newest) {
    added.clear();
    State state = newest.filter(found -> !found.isDeleted()).orElse(null);
    if (state == null) {
      return Optional.empty();
    }
    if (state.horizon() > planned) { // Others may have deleted the data file.
      throw PartlogException.of("WRITE_EXPIRED", "topic", log.topic(), "root", log.store().root(), "planned", planned, "horizon",
          state.horizon());
    }
    NextVersion next = new NextVersion(state, "write");
    long[] ends = state.ends();
    for (int i = 0; i < parts.size(); i++) {
      Part part = parts.get(i);
      boolean isThere = part.topicId.equals(state.topicId()) && part.partition < ends.length;
      if (isThere && ends[part.partition] == part.end) {
        ends[part.partition] = part.newEnd();
        segments.get(i).forEach(next::append);
        if (part.replaces) {
          next.raiseStart(part.partition, part.end);
        }
        added.add(part);
      }
    }
    return added.isEmpty() ? Optional.empty() : Optional.of(next);
  }

  @Override
  public void settled() {
    for (Part part : parts) {
      if (added.contains(part)) {
        part.done.complete(part.newEnd());
      } else {
        part.done.completeExceptionally(new Fenced("Partition " + part.partition + " of topic " + log.topic() + " under "
            + log.store().root() + " does not end at offset " + part.end + " any more: another process added records"));
      }
    }
    if (added.isEmpty()) {
      refused();
    }
  }

  /** Deletes the data file, which no version names. */
  @Override
  public void refused() {
    try {
      log.store().delete(Names.topicFile(log.topic(), file));
      log.store().deleteFolderIfEmpty(Names.topicFile(log.topic(), folder()));
    } catch (IOException e) {
      Warnings.warn(FencedAppend.class, "left {} of topic {}", file, log.topic(), e);
    }
  }

  private String folder() {
    return file.substring(0, file.lastIndexOf('/'));
  }
}
