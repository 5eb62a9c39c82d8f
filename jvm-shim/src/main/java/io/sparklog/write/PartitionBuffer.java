package io.sparklog.write;

import io.sparklog.format.BatchEncoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.routing.NullKeyRouter;
import io.sparklog.segment.SegmentBuilder;
import io.sparklog.spec.Invariant;
import io.sparklog.storage.FileAppender;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** The records of one partition that a task holds: an open batch, closed ones in memory, and the pieces that are written. */
final class PartitionBuffer implements TaskTotals.Holder {
  private final TaskTotals totals;
  private final TaskFiles files;
  private final TopicPlan plan;
  private final NullKeyRouter nullKeys;
  private final int number;
  private final BatchEncoder encoder;
  private final List<TopicReport.Piece.Batch> closed = new ArrayList<>();
  private final List<TopicReport.Piece> pieces = new ArrayList<>();
  private final List<TaskFiles.OwnFile> ownFiles = new ArrayList<>();
  private long closedBytes;

  /** Whether the partitioner chose this partition for each record of the open batch. */
  private boolean routed = true;

  /** The segment of the newest own file, or of the part of the shared file that is being written; null before it has a batch. */
  private SegmentBuilder segment;

  PartitionBuffer(TaskTotals totals, TaskFiles files, TopicPlan plan, NullKeyRouter nullKeys, int number) {
    this.totals = totals;
    this.files = files;
    this.plan = plan;
    this.nullKeys = nullKeys;
    this.number = number;
    this.encoder = new BatchEncoder(plan.config().codec(), plan.config().logAppendTime());
    totals.add(this);
  }

  /** The open batch. A caller that begins a record in it must call {@link #added}. */
  BatchEncoder encoder() {
    return encoder;
  }

  /** Closes the open batch if a record with such a time may not join it. */
  void prepare(boolean logAppendTime, long timestamp) throws IOException {
    if (!encoder.takes(logAppendTime, timestamp)) {
      if (!encoder.isEmpty()) {
        closeBatch();
      }
      encoder.begin(logAppendTime);
    }
  }

  /** A record was added to the open batch. @param byKey whether the partitioner chose this partition for it */
  void added(boolean byKey) {
    routed &= byKey;
  }

  @Override
  public long heldBytes() {
    return closedBytes + encoder.capacityBytes();
  }

  /** Closes the open batch, which must have a record. It may be written at once, if memory is full. */
  void closeBatch() throws IOException {
    totals.hold(encode());
  }

  /** Closes the open batch. @return its bytes, which the task does not count as held yet */
  private int encode() {
    long minTimestamp = encoder.minTimestamp();
    boolean ordered = encoder.isOrdered();
    int records = encoder.records();
    byte[] batch = encoder.close(0);
    Invariant.require(BatchHeader.totalBytes(batch, 0) == batch.length && BatchHeader.count(batch, 0) == records,
        () -> "a batch of " + records + " records and " + batch.length + " bytes of " + this + " says that it has "
            + BatchHeader.count(batch, 0) + " records and " + BatchHeader.totalBytes(batch, 0) + " bytes");
    closed.add(new TopicReport.Piece.Batch(batch, minTimestamp, routed, ordered));
    closedBytes += batch.length;
    totals.countBatch(batch.length);
    routed = true;
    if (nullKeys.partition() == number) {
      nullKeys.next(batch.length);
    }
    return batch.length;
  }

  /** Writes the closed batches, or else the open batch, to a file of the partition's own. */
  @Override
  public void spill() throws IOException {
    if (closed.isEmpty()) {
      int capacity = encoder.capacityBytes();
      if (!encoder.isEmpty()) {
        totals.note(encode());
      }
      encoder.release();
      totals.note(-capacity);
    }
    if (!closed.isEmpty()) {
      writeOwn();
    }
  }

  /**
   * Writes the closed batches to the partition's own file if that file exists, or if the partition holds at least {@code ownFileBytes}.
   * Then ends the open file.
   *
   * @return the bytes that are still held in closed batches
   */
  long finishOwnFile(int ownFileBytes) throws IOException {
    if (!ownFiles.isEmpty() || closedBytes >= ownFileBytes) {
      writeOwn();
      closeSegment();
    }
    return closedBytes;
  }

  private void writeOwn() throws IOException {
    for (TopicReport.Piece.Batch batch : closed) {
      if (ownFiles.isEmpty() || !fits(batch)) {
        closeSegment();
        TaskFiles.OwnFile file = files.ownFile(plan, number, ownFiles.size());
        ownFiles.add(file);
        segment = new SegmentBuilder(number, file.topicName(), 0);
      }
      add(batch);
      ownFiles.get(ownFiles.size() - 1).write(batch.bytes());
    }
    drop();
  }

  /** Gives back the memory of the open batch, which must be empty. */
  void release() {
    totals.note(-encoder.capacityBytes());
    encoder.release();
  }

  /** Whether closed batches are left. */
  boolean hasBatches() {
    return !closed.isEmpty();
  }

  /** Writes the closed batches to the end of a file that partitions share. @param name relative to the topic's folder */
  void writeTo(FileAppender shared, String name) throws IOException {
    for (TopicReport.Piece.Batch batch : closed) {
      if (segment != null && !fits(batch)) {
        closeSegment();
      }
      if (segment == null) {
        segment = new SegmentBuilder(number, name, shared.position());
      }
      add(batch);
      shared.write(batch.bytes(), 0, batch.bytes().length);
    }
    long end = segment.endPosition();
    Invariant.require(end == shared.position(),
        () -> "a segment of " + this + " ends at byte " + end + " of " + name + ", which has " + shared.position() + " bytes");
    closeSegment();
    drop();
  }

  /** Reports the closed batches themselves. */
  void travel() {
    pieces.add(new TopicReport.Piece.Travelling(number, List.copyOf(closed)));
    drop();
  }

  private boolean fits(TopicReport.Piece.Batch batch) {
    return segment.fits(batch.bytes(), 0, plan.config().segmentBytes());
  }

  private void add(TopicReport.Piece.Batch batch) {
    segment.add(batch.bytes(), 0, batch.minTimestamp(), batch.routed(), batch.ordered());
  }

  private void closeSegment() throws IOException {
    if (segment != null) {
      pieces.add(new TopicReport.Piece.InFile(ownFiles.isEmpty() ? segment.segment() : ownFiles.get(ownFiles.size() - 1).end(segment)));
      segment = null;
    }
  }

  private void drop() {
    Invariant.require(closed.stream().mapToLong(batch -> batch.bytes().length).sum() == closedBytes,
        () -> this + " holds other bytes than the " + closedBytes + " that it counts");
    closed.clear();
    totals.note(-closedBytes);
    closedBytes = 0;
  }

  /** The pieces that are written or travel, in the order of the records. */
  List<TopicReport.Piece> pieces() {
    return pieces;
  }

  void syncFiles() throws IOException {
    for (TaskFiles.OwnFile file : ownFiles) {
      file.syncAndClose();
    }
  }

  @Override
  public String toString() {
    return "partition " + number + " of topic " + plan.topic();
  }
}
