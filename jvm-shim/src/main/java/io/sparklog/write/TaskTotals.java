package io.sparklog.write;

import io.sparklog.spec.Invariant;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Counts the bytes that a task writes and holds, and bounds the memory of its batches. */
final class TaskTotals {
  /** A holder of batches in memory, which can write them to a file. */
  interface Holder {
    long heldBytes();

    /** Writes batches to a file, and {@link #note notes} the memory that it gives back. */
    void spill() throws IOException;
  }

  private final long heldBytesMax;
  private final List<Holder> holders = new ArrayList<>();
  private long heldBytes;
  private long heldBytesPeak;
  private long writtenBytes;
  private long records;

  /** @param heldBytesMax the most memory that batches may take */
  TaskTotals(long heldBytesMax) {
    this.heldBytesMax = heldBytesMax;
  }

  void add(Holder holder) {
    holders.add(holder);
  }

  void countRecord() {
    records++;
  }

  /** Counts a closed batch. */
  void countBatch(int bytes) {
    writtenBytes += bytes;
  }

  /** Notes that batches take this much more memory; less, if negative. The bound is left to the next {@link #hold}. */
  void note(long bytes) {
    heldBytes += bytes;
    Invariant.require(heldBytes >= 0, () -> "the batches of a task take " + heldBytes + " bytes of memory");
  }

  /** Notes that batches take this much more memory. Beyond the bound, the holder that holds most must spill, then the next. */
  void hold(long bytes) throws IOException {
    heldBytes += bytes;
    while (heldBytes > heldBytesMax) {
      Holder largest = null;
      long most = 0;
      for (Holder holder : holders) {
        long held = holder.heldBytes();
        if (held > most) {
          largest = holder;
          most = held;
        }
      }
      if (largest == null) {
        break;
      }
      largest.spill();
    }
    // Measured after spilling: the bound can be exceeded by at most one record.
    heldBytesPeak = Math.max(heldBytesPeak, heldBytes);
  }

  long records() {
    return records;
  }

  /** Requires that the reports of a task, by topic, have all the records that were counted. */
  void requireReported(Map<String, TopicReport> reports) {
    long reported = reports.values().stream().mapToLong(TopicReport::records).sum();
    Invariant.require(reported == records,
        () -> "a task was given " + records + " records for topics " + reports.keySet() + ", and reports " + reported);
  }

  long writtenBytes() {
    return writtenBytes;
  }

  long heldBytesPeak() {
    return heldBytesPeak;
  }
}
