package io.sparklog.serve.coordinator;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/**
 * The memory of the live records of all partitions that this process coordinates. A record that would take too much is refused before it is
 * written. Records that were written are always loaded.
 *
 * <p>A server gets the share of the limit that it has of the partitions. So the servers of a root have no more than the limit together, and
 * a server can load the records of all when the others have died.
 */
final class RecordMemory {
  private final long bytesMax;
  private final int partitions;
  private final IntPredicate isOurs;
  private final AtomicLongArray bytes;

  /** @param bytesMax of all partitions @param isOurs whether this process coordinates a partition now */
  RecordMemory(long bytesMax, int partitions, IntPredicate isOurs) {
    this.bytesMax = bytesMax;
    this.partitions = partitions;
    this.isOurs = isOurs;
    this.bytes = new AtomicLongArray(partitions);
  }

  long bytes() {
    return IntStream.range(0, partitions).mapToLong(bytes::get).sum();
  }

  /** How much this process may hold. */
  long limit() {
    long ours = IntStream.range(0, partitions).filter(isOurs).count();
    return bytesMax / partitions * ours;
  }

  /**
   * Whether there is room for so much more. Records that take no more than the records before them are always taken. The limit falls when
   * another server takes a partition over, before its records leave this process: they do not count from then on.
   */
  boolean hasRoom(long more) {
    return more <= 0 || IntStream.range(0, partitions).filter(isOurs).mapToLong(bytes::get).sum() + more <= limit();
  }

  /** Whether this process coordinates a partition now. */
  boolean isOf(int partition) {
    return isOurs.test(partition);
  }

  void add(int partition, long more) {
    bytes.addAndGet(partition, more);
  }
}
