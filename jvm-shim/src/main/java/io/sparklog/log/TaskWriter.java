package io.sparklog.log;

import io.sparklog.format.BatchEncoder;
import io.sparklog.partition.NullKeyRouter;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Step;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import org.slf4j.LoggerFactory;

/**
 * A task's part of a write: batches for each partition, held in bounded memory, then data files that nobody sees until the driver commits
 * them. FORMAT.md section 7.
 *
 * <p>After any exception the task must {@link #abort}. Not for several threads at once.
 */
public final class TaskWriter implements Closeable {
  /** A partition with so many bytes at the end gets a data file of its own. */
  private static final int OWN_FILE_BYTES = 1 << 20;

  private static final int TRAVEL_BYTES_MAX = 256 << 10;
  private static final long TRAVEL_BYTES_OF_ALL = 64L << 20;

  private final LogStore store;
  private final String txn;
  private final int task;
  private final int tasks;
  private final long attempt;
  private final int batchBytes;
  private final long bufferBytes;
  private final Map<String, Lane> lanes = new LinkedHashMap<>();
  private final List<String> created = new ArrayList<>();
  /** Files that are open to be written, the one that was written longest ago first. */
  private final LinkedHashSet<OwnFile> open = new LinkedHashSet<>();

  private long heldBytes;
  private long heldBytesPeak;
  private long writtenBytes;
  private long records;

  /**
   * @param txn the random identity of the write
   * @param task its number, of {@code tasks}
   * @param attempt a number that no other attempt of any task of the write has
   * @param batchBytes the target size of a batch before compression
   * @param bufferBytes the most memory that batches may take
   */
  public TaskWriter(LogStore store, String txn, int task, int tasks, long attempt, int batchBytes, long bufferBytes) {
    this.store = store;
    this.txn = txn;
    this.task = task;
    this.tasks = tasks;
    this.attempt = attempt;
    this.batchBytes = batchBytes;
    this.bufferBytes = bufferBytes;
  }

  /** Where the records of one topic go. The same for the same topic. */
  public Lane lane(TopicPlan plan) {
    return lanes.computeIfAbsent(plan.topic(), topic -> new Lane(plan));
  }

  /** Bytes of batches so far: written, or held to be. */
  public long writtenBytes() {
    return writtenBytes;
  }

  public long records() {
    return records;
  }

  /** The most memory that batches took at any time. */
  public long heldBytesPeak() {
    return heldBytesPeak;
  }

  /** Writes what is left and makes all of it durable. @return the pieces by topic */
  public Map<String, List<Piece>> finish() throws IOException {
    long sharedBytes = 0;
    for (Lane lane : lanes.values()) {
      sharedBytes += lane.finishOwn();
    }
    boolean travel = sharedBytes < Math.min(TRAVEL_BYTES_MAX, TRAVEL_BYTES_OF_ALL / tasks);
    Map<String, List<Piece>> pieces = new LinkedHashMap<>();
    for (Lane lane : lanes.values()) {
      pieces.put(lane.plan.topic(), lane.finish(travel));
    }
    Step.TASK_DONE.reached();
    return pieces;
  }

  /** Deletes what this task wrote. Best effort: what stays is never seen. */
  public void abort() {
    close();
    for (String file : created) {
      try {
        store.delete(file);
      } catch (IOException e) {
        LoggerFactory.getLogger(TaskWriter.class).warn("left " + file, e);
      }
    }
  }

  @Override
  public void close() {
    for (OwnFile file : List.copyOf(open)) {
      try {
        file.close();
      } catch (IOException e) {
        LoggerFactory.getLogger(TaskWriter.class).warn("closing " + file.name + " failed", e);
      }
    }
  }

  private FileAppender create(String file) throws IOException {
    if (created.isEmpty()) {
      Step.TASK_WRITE.reached();
    }
    created.add(file);
    return store.create(file);
  }

  private void hold(long bytes) throws IOException {
    heldBytes += bytes;
    while (heldBytes > bufferBytes) {
      Partition largest = null;
      for (Lane lane : lanes.values()) {
        for (Partition partition : lane.partitions) {
          if (partition != null && (largest == null || partition.heldBytes() > largest.heldBytes())) {
            largest = partition;
          }
        }
      }
      if (largest == null || largest.heldBytes() == 0) {
        break;
      }
      largest.spill();
    }
    // After spilling: for one record's length more is held, and the bound is a bound but for that.
    heldBytesPeak = Math.max(heldBytesPeak, heldBytes);
  }

  /** A data file of one partition; open, or synced and closed until more comes. */
  private final class OwnFile {
    private final String name;
    private FileAppender writer;
    private long bytes;

    private OwnFile(String name) {
      this.name = name;
    }

    private void write(byte[] batch) throws IOException {
      if (writer == null) {
        if (open.size() >= store.openFilesMax()) {
          open.iterator().next().syncAndClose();
        }
        writer = bytes == 0 ? create(name) : store.append(name);
      }
      open.remove(this);
      open.add(this);
      writer.write(batch, 0, batch.length);
      bytes += batch.length;
    }

    private void syncAndClose() throws IOException {
      if (writer != null) {
        writer.sync();
        close();
      }
    }

    private void close() throws IOException {
      open.remove(this);
      FileAppender closing = writer;
      writer = null;
      if (closing != null) {
        closing.close();
      }
    }
  }

  /** The records of one topic. */
  public final class Lane {
    private final TopicPlan plan;
    private final String folder;
    private final int batchBytesTarget;
    private final Partition[] partitions;
    private final NullKeyRouter nullKeys;

    private Lane(TopicPlan plan) {
      this.plan = plan;
      this.folder = plan.folder(txn);
      this.batchBytesTarget = Math.min(batchBytes, plan.config().batchBytesMax());
      this.partitions = new Partition[plan.config().partitions()];
      this.nullKeys = new NullKeyRouter(plan.loads(), plan.batchRecords(), tasks, task);
    }

    public TopicPlan plan() {
      return plan;
    }

    /** The partition for the next record without a key. */
    public int nullKeyPartition(long timestamp, int valueLength, int headersBytes) throws IOException {
      Partition current = partitions[nullKeys.partition()];
      if (current != null && !current.encoder.isEmpty()
          && current.encoder.bytesWith(timestamp, -1, valueLength, headersBytes) > batchBytesTarget) {
        current.closeBatch();
      }
      int partition = nullKeys.partition();
      nullKeys.count();
      return partition;
    }

    /**
     * Makes room for a record; the caller then copies key, value and headers to where the encoder says.
     *
     * @param partition of the topic; checked
     * @param keyLength −1 for null, as {@code valueLength}
     * @param headersBytes of the encoded headers, 1 if there are none
     * @param routed whether the partitioner chose the partition by the key
     * @throws PartlogException PARTITION_OUT_OF_RANGE, TIMESTAMP_NEGATIVE, RECORD_TOO_LARGE
     */
    public BatchEncoder begin(int partition, long timestamp, int keyLength, int valueLength, int headersBytes, boolean routed)
        throws IOException {
      if (partition < 0 || partition >= partitions.length) {
        throw PartlogException.of("PARTITION_OUT_OF_RANGE", "partition", partition, "topic", plan.topic(), "root", store.root(), "last",
            partitions.length - 1);
      }
      if (timestamp < 0) {
        throw PartlogException.of("TIMESTAMP_NEGATIVE", "topic", plan.topic(), "root", store.root(), "timestamp", timestamp);
      }
      Partition to = partitions[partition];
      if (to == null) {
        to = partitions[partition] = new Partition(this, partition);
      }
      BatchEncoder encoder = to.encoder;
      int bytes = encoder.bytesWith(timestamp, keyLength, valueLength, headersBytes);
      if (bytes > batchBytesTarget) {
        if (!encoder.isEmpty()) {
          to.closeBatch();
          bytes = encoder.bytesWith(timestamp, keyLength, valueLength, headersBytes);
        }
        if (bytes > plan.config().batchBytesMax()) {
          throw tooLarge(partition, bytes, keyLength, valueLength);
        }
      }
      int capacity = encoder.capacityBytes();
      encoder.begin(timestamp, keyLength, valueLength, headersBytes);
      to.routed &= routed;
      records++;
      if (encoder.capacityBytes() != capacity) {
        growth += encoder.capacityBytes() - capacity;
      }
      return encoder;
    }

    /** Memory that records took since it was last counted: counted between records, since spilling moves what {@link #begin} handed out. */
    private long growth;

    /** To be called when the record that {@link #begin} made room for is filled in. */
    public void end() throws IOException {
      if (growth != 0) {
        long bytes = growth;
        growth = 0;
        hold(bytes);
      }
    }

    private PartlogException tooLarge(int partition, int bytes, int keyLength, int valueLength) {
      TopicConfig config = plan.config();
      return PartlogException.of("RECORD_TOO_LARGE", "topic", plan.topic(), "partition", partition, "root", store.root(), "record",
          "record " + (records + 1), "found", bytes, "option",
          config.maxMessageBytes() <= config.segmentBytes() ? TopicConfig.MAX_MESSAGE_BYTES : TopicConfig.SEGMENT_BYTES, "limit",
          config.batchBytesMax(), "key", Math.max(0, keyLength), "value", Math.max(0, valueLength));
    }

    /** Closes the open batches, and writes those of partitions that have a file of their own. @return the bytes that are left */
    private long finishOwn() throws IOException {
      long left = 0;
      for (Partition partition : partitions) {
        if (partition != null) {
          if (!partition.encoder.isEmpty()) {
            partition.closeBatch();
          }
          if (partition.file != null || partition.closedBytes >= OWN_FILE_BYTES) {
            partition.writeOwn();
          }
          left += partition.closedBytes;
        }
      }
      return left;
    }

    private List<Piece> finish(boolean travel) throws IOException {
      List<Piece> pieces = new ArrayList<>();
      String sharedName = folder + "/" + Names.sharedFile(task, attempt);
      FileAppender shared = null;
      try {
        for (Partition partition : partitions) {
          if (partition == null) {
            continue;
          }
          partition.finish();
          if (!partition.closed.isEmpty() && travel) {
            pieces.add(partition.travelling());
          } else if (!partition.closed.isEmpty()) {
            shared = shared == null ? create(Names.topicFile(plan.topic(), sharedName)) : shared;
            partition.writeTo(shared, sharedName);
            partition.closeRun();
          }
          pieces.addAll(partition.pieces);
        }
        boolean wrote = shared != null || pieces.stream().anyMatch(piece -> piece.file() != null);
        if (wrote) {
          Step.TASK_SYNC.reached();
          for (Partition partition : partitions) {
            if (partition != null) {
              partition.syncFiles();
            }
          }
          if (shared != null) {
            shared.sync();
          }
          store.flush(Names.topicFile(plan.topic(), folder));
        }
      } finally {
        if (shared != null) {
          shared.close();
        }
      }
      return pieces;
    }

  }

  private record Batch(byte[] bytes, long minTimestamp, boolean routed, boolean ordered) {}

  /** The batches of one partition: an open one, closed ones in memory, and what is written. */
  private final class Partition {
    private final Lane lane;
    private final int number;
    private final BatchEncoder encoder;
    private final List<Batch> closed = new ArrayList<>();
    private final List<Piece> pieces = new ArrayList<>();
    private final List<OwnFile> files = new ArrayList<>();
    private long closedBytes;
    private boolean routed = true;
    private OwnFile file;
    private BatchRun run;

    private Partition(Lane lane, int number) {
      this.lane = lane;
      this.number = number;
      this.encoder = new BatchEncoder(lane.plan.config().codec(), lane.plan.config().logAppendTime());
    }

    private long heldBytes() {
      return closedBytes + encoder.capacityBytes();
    }

    private void closeBatch() throws IOException {
      hold(encode());
    }

    /** Closes the open batch. @return its bytes, which are to be counted as held */
    private int encode() {
      long minTimestamp = encoder.minTimestamp();
      boolean ordered = encoder.isOrdered();
      byte[] batch = encoder.close(0);
      closed.add(new Batch(batch, minTimestamp, routed, ordered));
      closedBytes += batch.length;
      writtenBytes += batch.length;
      routed = true;
      if (lane.nullKeys.partition() == number) {
        lane.nullKeys.next();
      }
      return batch.length;
    }

    /** Moves what is held to a file of the partition's own: the closed batches, or if there are none the open one. */
    private void spill() throws IOException {
      if (closed.isEmpty()) {
        int capacity = encoder.capacityBytes();
        if (!encoder.isEmpty()) {
          heldBytes += encode();
        }
        encoder.release();
        heldBytes -= capacity;
      }
      if (!closed.isEmpty()) {
        writeOwn();
      }
    }

    private void writeOwn() throws IOException {
      int limit = lane.plan.config().segmentBytes();
      for (Batch batch : closed) {
        if (file == null || !run.fits(batch.bytes, 0, limit)) {
          closeRun();
          String name = lane.folder + "/" + Names.ownFile(number, task, attempt, files.size());
          file = new OwnFile(Names.topicFile(lane.plan.topic(), name));
          files.add(file);
          run = new BatchRun(number, name, 0);
        }
        add(batch);
        file.write(batch.bytes);
      }
      drop();
    }

    private void writeTo(FileAppender shared, String name) throws IOException {
      int limit = lane.plan.config().segmentBytes();
      for (Batch batch : closed) {
        if (run != null && !run.fits(batch.bytes, 0, limit)) {
          closeRun();
        }
        if (run == null) {
          run = new BatchRun(number, name, shared.position());
        }
        add(batch);
        shared.write(batch.bytes, 0, batch.bytes.length);
      }
      drop();
    }

    private void add(Batch batch) {
      run.add(batch.bytes, 0, batch.minTimestamp, batch.routed, batch.ordered);
    }

    private Piece travelling() {
      BatchRun whole = new BatchRun(number, null, 0);
      byte[] bytes = new byte[Math.toIntExact(closedBytes)];
      for (Batch batch : closed) {
        int at = (int) whole.bytes();
        whole.add(batch.bytes, 0, batch.minTimestamp, batch.routed, batch.ordered);
        System.arraycopy(batch.bytes, 0, bytes, at, batch.bytes.length);
      }
      drop();
      return whole.piece(bytes);
    }

    private void drop() {
      closed.clear();
      heldBytes -= closedBytes;
      closedBytes = 0;
    }

    private void finish() throws IOException {
      int capacity = encoder.capacityBytes();
      encoder.release();
      heldBytes -= capacity;
      closeRun();
    }

    private void closeRun() {
      if (run != null) {
        pieces.add(run.piece(null));
        run = null;
      }
    }

    private void syncFiles() throws IOException {
      for (OwnFile each : files) {
        each.syncAndClose();
      }
    }
  }
}
