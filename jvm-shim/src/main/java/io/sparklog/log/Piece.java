package io.sparklog.log;

import java.io.Serializable;

/**
 * Whole batches of one partition that a task wrote, with base offsets relative to the first of them. Pieces of a task are listed in their
 * order.
 *
 * @param file relative to the topic's folder, or null if the bytes travel
 * @param position in the file
 * @param travelling the batches themselves, or null if they lie in a file
 * @param minTimestamp the least record time in ms
 */
public record Piece(int partition, String file, long position, byte[] travelling, long bytes, long records, int batches, long minTimestamp,
    long maxTimestamp, boolean routed, boolean ordered, int headerCrc) implements Serializable {

  /** The segment that a piece in a file becomes; its offsets count from 0 as long as nobody has assigned them. */
  Segment segment() {
    return new Segment(partition, file, position, bytes, 0, records, records, batches, minTimestamp, maxTimestamp, true, routed, ordered,
        headerCrc);
  }
}
