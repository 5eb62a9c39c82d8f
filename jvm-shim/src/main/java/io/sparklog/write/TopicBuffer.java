package io.sparklog.write;

import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchEncoder;
import io.sparklog.log.Step;
import io.sparklog.log.TopicConfig;
import io.sparklog.routing.Bindings;
import io.sparklog.routing.NullKeyRouter;
import io.sparklog.routing.Router;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.Requests;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * The records of one topic that a task holds: chooses the partition of each record, and has a {@link PartitionBuffer} for each partition in
 * use.
 */
public final class TopicBuffer {
  /** Encoded headers of a record that has none: their count alone. */
  public static final int NO_HEADERS_BYTES = 1;

  private final TaskTotals totals;
  private final TaskFiles files;
  private final TopicPlan plan;
  private final int batchBytesTarget;
  private final int batchBytesMax;
  private final Router router;
  private final Bindings bindings;
  private final PartitionBuffer[] partitions;
  private final NullKeyRouter nullKeys;

  TopicBuffer(TaskTotals totals, TaskFiles files, TopicPlan plan, int tasks, int task, int batchBytes) {
    this.totals = totals;
    this.files = files;
    this.plan = plan;
    this.batchBytesMax = plan.config().batchBytesMax();
    this.batchBytesTarget = Math.min(batchBytes, batchBytesMax);
    this.router = plan.router();
    this.bindings = new Bindings(router);
    this.partitions = new PartitionBuffer[router.partitions()];
    this.nullKeys = new NullKeyRouter(plan.loads(), router.weights(), plan.batchLoad(), plan.byBytes(), tasks, task);
  }

  public TopicPlan plan() {
    return plan;
  }

  /**
   * Appends a record to the partition that its key chooses; without a key, to the partition that {@link NullKeyRouter} chooses. Key and
   * value are both in {@code row}, which is copied.
   *
   * @param timestamp ms since 1970
   * @param keyLength −1 for null, as {@code valueLength}
   * @param headers encoded, from index 0
   * @param headersBytes {@link #NO_HEADERS_BYTES} without headers: {@code headers} is not read then
   * @throws PartlogException TIMESTAMP_NEGATIVE, RECORD_TOO_LARGE
   */
  public void append(long timestamp, byte[] row, int keyAt, int keyLength, int valueAt, int valueLength, byte[] headers, int headersBytes)
      throws IOException {
    boolean routed = keyLength >= 0;
    int partition = routed ? bindings.ofKey(row, keyAt, keyLength) : nullKeyPartition(timestamp, valueLength, headersBytes);
    append(partition, routed, timestamp, row, keyAt, keyLength, valueAt, valueLength, headers, 0, headersBytes);
  }

  /**
   * Appends a record of another topic as it is, with its time and headers, to the partition of its key in this one.
   *
   * @param i its index in {@code records}
   * @return the partition
   * @throws PartlogException TIMESTAMP_NEGATIVE, RECORD_TOO_LARGE
   */
  public int append(BatchDecoder records, int i) throws IOException {
    long timestamp = records.timestamps()[i];
    int keyLength = records.keyLengths()[i];
    int valueLength = records.valueLengths()[i];
    int headersBytes = records.headersEnd()[i] - records.headersAt()[i];
    boolean routed = keyLength >= 0;
    int partition = routed
        ? bindings.ofKey(records.data(), records.keyAt()[i], keyLength)
        : nullKeyPartition(timestamp, valueLength, headersBytes);
    buffer(partition).prepare(records.isLogAppendTime(), timestamp);
    append(partition, routed, timestamp, records.data(), records.keyAt()[i], keyLength, records.valueAt()[i], valueLength, records.data(),
        records.headersAt()[i], headersBytes);
    return partition;
  }

  /** As {@link #append}, to a partition that the caller chose. @throws PartlogException also PARTITION_OUT_OF_RANGE, PARTITION_CLOSED */
  public void appendTo(int partition, long timestamp, byte[] row, int keyAt, int keyLength, int valueAt, int valueLength, byte[] headers,
      int headersBytes) throws IOException {
    if (partition < 0 || partition >= partitions.length) {
      throw PartlogException.of("PARTITION_OUT_OF_RANGE", "partition", partition, "topic", plan.topic(), "root", files.root(), "last",
          partitions.length - 1);
    }
    if (!router.isOpen(partition)) {
      throw PartlogException.of("PARTITION_CLOSED", "partition", partition, "topic", plan.topic(), "root", files.root());
    }
    append(partition, false, timestamp, row, keyAt, keyLength, valueAt, valueLength, headers, 0, headersBytes);
  }

  private void append(int partition, boolean routed, long timestamp, byte[] row, int keyAt, int keyLength, int valueAt, int valueLength,
      byte[] headers, int headersAt, int headersBytes) throws IOException {
    if (timestamp < 0) {
      throw PartlogException.of("TIMESTAMP_NEGATIVE", "topic", plan.topic(), "root", files.root(), "timestamp", timestamp);
    }
    PartitionBuffer to = buffer(partition);
    BatchEncoder encoder = to.encoder();
    int bytes = encoder.bytesWith(timestamp, keyLength, valueLength, headersBytes);
    if (bytes > batchBytesTarget) {
      if (!encoder.isEmpty()) {
        to.closeBatch();
        bytes = encoder.bytesWith(timestamp, keyLength, valueLength, headersBytes);
      }
      if (bytes > batchBytesMax) {
        throw tooLarge(partition, bytes, keyLength, valueLength);
      }
    }
    int capacity = encoder.capacityBytes();
    encoder.begin(timestamp, keyLength, valueLength, headersBytes);
    byte[] batch = encoder.buffer();
    // Not Unsafe.copyMemory, as Spark would: for so few bytes it takes several times as long.
    if (keyLength > 0) {
      System.arraycopy(row, keyAt, batch, encoder.keyAt(), keyLength);
    }
    if (valueLength > 0) {
      System.arraycopy(row, valueAt, batch, encoder.valueAt(), valueLength);
    }
    if (headersBytes > NO_HEADERS_BYTES) {
      System.arraycopy(headers, headersAt, batch, encoder.headersAt(), headersBytes);
    }
    to.added(routed);
    totals.countRecord();
    int growth = encoder.capacityBytes() - capacity;
    if (growth != 0) {
      totals.hold(growth);
    }
  }

  private PartitionBuffer buffer(int partition) {
    PartitionBuffer buffer = partitions[partition];
    return buffer != null ? buffer : (partitions[partition] = new PartitionBuffer(totals, files, plan, nullKeys, partition));
  }

  private int nullKeyPartition(long timestamp, int valueLength, int headersBytes) throws IOException {
    PartitionBuffer current = partitions[nullKeys.partition()];
    if (current != null && !current.encoder().isEmpty()
        && current.encoder().bytesWith(timestamp, -1, valueLength, headersBytes) > batchBytesTarget) {
      current.closeBatch();
    }
    int partition = nullKeys.partition();
    nullKeys.count();
    return partition;
  }

  private PartlogException tooLarge(int partition, int bytes, int keyLength, int valueLength) {
    TopicConfig config = plan.config();
    return PartlogException.of("RECORD_TOO_LARGE", "topic", plan.topic(), "partition", partition, "root", files.root(), "record",
        "record " + (totals.records() + 1), "found", bytes, "option",
        config.maxMessageBytes() <= config.segmentBytes() ? TopicConfig.MAX_MESSAGE_BYTES : TopicConfig.SEGMENT_BYTES, "limit",
        batchBytesMax, "key", Math.max(0, keyLength), "value", Math.max(0, valueLength));
  }

  void closeBatches() throws IOException {
    for (PartitionBuffer partition : partitions) {
      if (partition != null && !partition.encoder().isEmpty()) {
        partition.closeBatch();
      }
    }
  }

  /** Writes the batches of partitions that have a file of their own. @return the bytes that are left */
  long finishOwnFiles() throws IOException {
    long left = 0;
    for (PartitionBuffer partition : partitions) {
      if (partition != null) {
        left += partition.finishOwnFile(files.ownFileBytes(plan));
      }
    }
    return left;
  }

  /**
   * Lets the rest travel, or writes it to the file that partitions share; syncs all files of the topic.
   *
   * @return the report of the task about the topic
   */
  TopicReport finish(boolean travel) throws IOException {
    List<TopicReport.Piece> pieces = new ArrayList<>();
    FileAppender shared = null;
    try {
      for (PartitionBuffer partition : partitions) {
        if (partition == null) {
          continue;
        }
        partition.release();
        if (partition.hasBatches()) {
          if (travel) {
            partition.travel();
          } else {
            shared = shared == null ? files.createShared(plan) : shared;
            partition.writeTo(shared, files.sharedName(plan));
          }
        }
        pieces.addAll(partition.pieces());
      }
      if (pieces.stream().anyMatch(TopicReport.Piece.InFile.class::isInstance)) {
        Step.TASK_SYNC.reached();
        try (Requests.Pending<Void> sharedSync = shared == null ? null : files.beginSync(shared)) {
          for (PartitionBuffer partition : partitions) {
            if (partition != null) {
              partition.syncFiles();
            }
          }
          if (sharedSync != null) {
            sharedSync.answer();
          }
        }
        files.syncNames(plan);
      }
    } finally {
      if (shared != null) {
        shared.close();
      }
    }
    return new TopicReport(pieces, bindings.used());
  }
}
