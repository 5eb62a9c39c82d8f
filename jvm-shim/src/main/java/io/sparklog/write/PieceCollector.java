package io.sparklog.write;

import io.sparklog.log.Step;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentBuilder;
import io.sparklog.spec.Invariant;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Makes segments of the tasks' reports, ordered by (partition, task, sequence). Batches that travelled go into one data file. Batches of a
 * partition that follow one another become one segment. FORMAT.md section 7, driver, step 1.
 */
final class PieceCollector {
  private final TopicPlan plan;
  private final String file;
  private final List<Segment> segments = new ArrayList<>();
  private final List<TopicReport.Piece.Batch> travelled = new ArrayList<>();
  private long position;
  private SegmentBuilder open;

  private PieceCollector(TopicPlan plan, String file) {
    this.plan = plan;
    this.file = file;
  }

  /**
   * The segments of a write, each with offsets that count from 0. Writes and syncs {@code pool.log} if anything travelled.
   *
   * @param tasks the report of each task, by task
   */
  static List<Segment> segments(LogStore store, TopicPlan plan, String txn, List<TopicReport> tasks) throws IOException {
    PieceCollector collector = new PieceCollector(plan, pool(plan, txn));
    List<List<TopicReport.Piece>> partitions = new ArrayList<>();
    for (int p = 0; p < plan.config().partitions(); p++) {
      partitions.add(new ArrayList<>());
    }
    tasks.forEach(task -> task.pieces().forEach(piece -> {
      Invariant.require(piece.partition() >= 0 && piece.partition() < partitions.size(), () -> "a task reports records for partition "
          + piece.partition() + " of topic " + plan.topic() + ", which has " + partitions.size());
      partitions.get(piece.partition()).add(piece);
    }));
    for (List<TopicReport.Piece> partition : partitions) {
      partition.forEach(collector::add);
      collector.close();
    }
    long reported = tasks.stream().mapToLong(TopicReport::records).sum();
    long collected = collector.segments.stream().mapToLong(Segment::records).sum();
    Invariant.require(collected == reported,
        () -> "tasks report " + reported + " records for topic " + plan.topic() + ", and their segments have " + collected);
    collector.write(store, plan.folder(txn));
    return collector.segments;
  }

  /** The data file of what travelled, relative to the topic's folder. */
  static String pool(TopicPlan plan, String txn) {
    return plan.folder(txn) + "/" + Names.poolFile();
  }

  private void add(TopicReport.Piece piece) {
    if (piece instanceof TopicReport.Piece.InFile inFile) {
      close();
      Segment segment = inFile.segment();
      Invariant.require(segment.base() == 0 && segment.end() == segment.records(),
          () -> "a task reports a segment of topic " + plan.topic() + " that does not count from offset 0: " + segment);
      segments.add(segment);
    } else {
      ((TopicReport.Piece.Travelling) piece).batches().forEach(batch -> add(piece.partition(), batch));
    }
  }

  private void add(int partition, TopicReport.Piece.Batch batch) {
    if (open != null && !open.fits(batch.bytes(), 0, plan.config().segmentBytes())) {
      close();
    }
    if (open == null) {
      open = new SegmentBuilder(partition, file, position);
    }
    open.add(batch.bytes(), 0, batch.minTimestamp(), batch.routed(), batch.ordered());
    position += batch.bytes().length;
    travelled.add(batch);
  }

  private void close() {
    if (open != null) {
      segments.add(open.segment());
      open = null;
    }
  }

  private void write(LogStore store, String folder) throws IOException {
    if (travelled.isEmpty()) {
      return;
    }
    Step.COMMIT_POOL.reached();
    String name = Names.topicFile(plan.topic(), file);
    try (FileAppender writer = store.create(name)) {
      for (TopicReport.Piece.Batch batch : travelled) {
        writer.write(batch.bytes(), 0, batch.bytes().length);
      }
      Invariant.require(writer.position() == position, () -> name + " has " + writer.position() + " bytes, and its segments " + position);
      writer.sync();
    } catch (IOException e) {
      // No version can name it yet, and where the disk is full, each attempt would leave one.
      try {
        store.delete(name);
      } catch (IOException stays) {
        e.addSuppressed(stays);
      }
      throw e;
    }
    store.flush(Names.topicFile(plan.topic(), folder));
  }
}
