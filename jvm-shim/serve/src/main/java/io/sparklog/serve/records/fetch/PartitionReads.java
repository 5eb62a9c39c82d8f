package io.sparklog.serve.records.fetch;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.read.PartitionCursor;
import io.sparklog.segment.ReadAhead;
import io.sparklog.segment.SegmentFile;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** Reads the record batches of any partition from any offset on. For several threads at once. */
public final class PartitionReads {
  /** Fewer bytes are copied, as that takes less time than to send them from their file. */
  private static final int SENT_BYTES_MIN = 16 << 10;

  /** So many files are open for answers at most. With more answers under way, bytes are copied. */
  private static final int FILES_MAX = 1024;

  /** Each idle cursor has a buffer of some 128 KiB. */
  private static final int IDLE_MAX = 128;

  /** The same where each has bytes that it asked for ahead. */
  private static final int IDLE_REMOTE_MAX = 8;

  private final ReadableTopics topics;
  private final IdleCursors idle;
  private final CheckedBatches checked = new CheckedBatches();
  private final AtomicInteger files = new AtomicInteger();
  private final Memory memory;
  private final ReadMemory reading;

  /**
   * @param bytesMax the bytes that the parts of all answers should have in memory; a part of one batch is given in any case. All cursors
   *     together have as many again
   */
  public PartitionReads(ReadableTopics topics, Clock clock, long bytesMax) {
    this.topics = topics;
    this.memory = new Memory(bytesMax);
    this.idle = new IdleCursors(topics.isRemote() ? IDLE_REMOTE_MAX : IDLE_MAX, clock);
    this.reading = new ReadMemory(bytesMax, idle::closeAll);
  }

  /**
   * Whole batches from the batch that holds {@code offset} on: at least one, and as many as fit in {@code bytesMax}, of as many segments as
   * needed; none at the end offset. If batches were found before a fault, they are given, and a read from the next offset on meets the
   * fault. The caller closes the parts.
   *
   * <p>Each batch is read and checked before it is sent for the first time. Later, large batches are sent without being read again: a
   * client checks the CRC of a batch too.
   *
   * @param state of the topic; records of a topic that took its name are not given
   * @throws PartlogException OFFSETS_EXPIRED below the log start offset, OFFSETS_OUT_OF_RANGE beyond the end offset, TOPIC_NOT_FOUND,
   *     TOPIC_REPLACED, PARTITION_NOT_FOUND, SEGMENT_MISSING, SEGMENT_CORRUPT, BATCH_CORRUPT
   */
  public List<FetchedBytes> read(State state, int partition, long offset, int bytesMax) throws IOException {
    List<PartitionCursor.Batches> known = checked.find(state, partition, offset, bytesMax);
    List<FetchedBytes> sent = known.isEmpty() ? null : parts(state.topic(), known);
    if (sent != null && areWhole(sent)) {
      return sent;
    }
    if (sent != null) { // The cursor reports the batch that is missing.
      close(sent);
      checked.forget(state.topicId(), partition);
    }
    PartitionCursor cursor = idle.take(state.topicId(), partition, offset);
    if (cursor == null) {
      cursor = open(state, partition, offset);
    }
    boolean kept = false;
    try {
      List<PartitionCursor.Batches> batches = cursor.next(bytesMax);
      List<FetchedBytes> parts = parts(state.topic(), batches);
      if (parts == null) { // A file went between the look of the cursor and the next one: the cursor would find its batches elsewhere.
        return read(state, partition, offset, bytesMax);
      }
      checked.add(state.topicId(), partition, batches.stream().filter(PartitionReads::isSent).toList());
      kept = cursor.position() < state.end(partition);
      return parts;
    } finally {
      if (kept) {
        idle.keep(cursor, partition);
        if (reading.isScarce()) { // Not before it is idle: a cursor that waits since then closes it.
          idle.closeAll();
        }
      } else {
        IdleCursors.close(cursor);
      }
    }
  }

  /**
   * The bytes of the batch that holds {@code offset}, or of the next one; null at the end offset.
   *
   * @param room has the memory of the batch, and as much again for its caller to decode it. The batch before is given up
   * @throws PartlogException as {@link #read}
   */
  byte[] batch(State state, int partition, long offset, ReadAhead.ReadRoom room) throws IOException {
    room.give(); // A read that waits for memory must not hold memory.
    List<FetchedBytes> parts = read(state, partition, offset, 1);
    try {
      if (parts.isEmpty()) {
        return null;
      }
      room.buffer((int) Math.min(Integer.MAX_VALUE, 2L * parts.get(0).bytes()));
      if (parts.get(0) instanceof FetchedBytes.Copied copied) {
        return copied.take();
      }
      FetchedBytes.FromFile sent = (FetchedBytes.FromFile) parts.get(0);
      return sent.copy();
    } finally {
      close(parts);
    }
  }

  private PartitionCursor open(State state, int partition, long offset) {
    PartitionCursor cursor = PartitionCursor.open(topics, state.topic(), partition, offset, room());
    if (!cursor.topicId().equals(state.topicId())) {
      IdleCursors.close(cursor);
      throw PartlogException.of("TOPIC_REPLACED", "topic", state.topic(), "root", topics.location());
    }
    return cursor;
  }

  /** The parts of an answer; null if the file of the first of them is gone. If a later file is gone, the parts before it. */
  private List<FetchedBytes> parts(String topic, List<PartitionCursor.Batches> batches) throws IOException {
    List<FetchedBytes> parts = new ArrayList<>();
    try {
      for (PartitionCursor.Batches each : batches) {
        parts.add(each.copy() != null ? new FetchedBytes.Copied(each.copy(), memory) : inFile(topic, each));
      }
    } catch (SegmentGone gone) {
      return parts.isEmpty() ? null : parts;
    } catch (IOException | RuntimeException | Error e) {
      close(parts);
      throw e;
    }
    return parts;
  }

  private static boolean areWhole(List<FetchedBytes> parts) throws IOException {
    for (FetchedBytes part : parts) {
      if (part instanceof FetchedBytes.FromFile sent && sent.file().fileBytes() < sent.position() + sent.bytes()) {
        return false;
      }
    }
    return true;
  }

  /** Whether batches are sent from their file if not too many files are open. */
  private static boolean isSent(PartitionCursor.Batches batches) {
    return batches.copy() == null && batches.bytes() >= SENT_BYTES_MIN;
  }

  private FetchedBytes inFile(String topic, PartitionCursor.Batches batches) throws IOException {
    boolean sent = isSent(batches) && files.incrementAndGet() <= FILES_MAX;
    if (!sent && isSent(batches)) {
      files.decrementAndGet();
    }
    SegmentFile file = null;
    try {
      file = topics.open(topic, batches.segment());
      if (sent) {
        return new FetchedBytes.FromFile(file, batches, files::decrementAndGet);
      }
      byte[] copy = FetchedBytes.FromFile.copy(file, batches);
      file.close();
      return new FetchedBytes.Copied(copy, memory);
    } catch (IOException | RuntimeException | Error e) {
      if (sent) {
        files.decrementAndGet();
      }
      if (file != null) {
        file.close();
      }
      throw e;
    }
  }

  /** Closes the parts of an answer that is not sent. */
  public static void close(List<FetchedBytes> parts) {
    for (FetchedBytes part : parts) {
      try {
        part.close();
      } catch (IOException e) {
        Warnings.warn(PartitionReads.class, "A file was not closed", e);
      }
    }
  }

  Memory memory() {
    return memory;
  }

  /** The memory for one more reader. */
  ReadAhead.ReadRoom room() {
    return reading.share();
  }

  ReadMemory reading() {
    return reading;
  }

  void closeIdle() {
    idle.closeAll();
  }

  /** Closes the cursors that have waited for long. To be called from time to time. */
  void tidy() {
    idle.tidy();
  }

  /** How many files answers have open, and how many cursors wait for the next fetch. */
  int filesOpen() {
    return files.get();
  }

  int cursorsIdle() {
    return idle.size();
  }
}
