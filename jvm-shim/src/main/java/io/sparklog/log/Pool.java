package io.sparklog.log;

import io.sparklog.format.BatchHeader;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Step;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Turns what tasks report into segments without offsets, ordered by (partition, task, sequence). Pieces that travelled go into one data
 * file; neighbours of a partition become one segment.
 */
final class Pool {
  private final TopicPlan plan;
  private final String file;
  private final List<Segment> segments = new ArrayList<>();
  private final List<byte[]> bytes = new ArrayList<>();
  private long position;
  private BatchRun open;

  private Pool(TopicPlan plan, String file) {
    this.plan = plan;
    this.file = file;
  }

  /**
   * The segments of a write; {@code base} and {@code end} count from 0 in each of them. Writes and syncs the pool file if anything
   * travelled.
   *
   * @param tasks the pieces of each task, by task
   */
  static List<Segment> segments(LogStore store, TopicPlan plan, String txn, List<List<Piece>> tasks) throws IOException {
    Pool pool = new Pool(plan, plan.folder(txn) + "/" + Names.poolFile());
    List<List<Piece>> partitions = new ArrayList<>();
    for (int p = 0; p < plan.config().partitions(); p++) {
      partitions.add(new ArrayList<>());
    }
    tasks.forEach(task -> task.forEach(piece -> partitions.get(piece.partition()).add(piece)));
    for (List<Piece> partition : partitions) {
      for (Piece piece : partition) {
        pool.add(piece);
      }
      pool.close();
    }
    pool.write(store);
    return pool.segments;
  }

  private void add(Piece piece) {
    if (piece.travelling() == null) {
      close();
      segments.add(piece.segment());
      return;
    }
    byte[] batches = piece.travelling();
    bytes.add(batches);
    int batchBytes;
    for (int at = 0; at < batches.length; at += batchBytes) {
      batchBytes = BatchHeader.totalBytes(batches, at);
      if (open != null && !open.fits(batches, at, plan.config().segmentBytes())) {
        close();
      }
      if (open == null) {
        open = new BatchRun(piece.partition(), file, position);
      }
      open.add(batches, at, piece.minTimestamp(), piece.routed(), piece.ordered());
      position += batchBytes;
    }
  }

  private void close() {
    if (open != null) {
      segments.add(open.piece(null).segment());
      open = null;
    }
  }

  private void write(LogStore store) throws IOException {
    if (bytes.isEmpty()) {
      return;
    }
    Step.COMMIT_POOL.reached();
    try (FileAppender writer = store.create(Names.topicFile(plan.topic(), file))) {
      for (byte[] batches : bytes) {
        writer.write(batches, 0, batches.length);
      }
      writer.sync();
    }
    String name = Names.topicFile(plan.topic(), file);
    store.flush(name.substring(0, name.lastIndexOf('/')));
  }
}
