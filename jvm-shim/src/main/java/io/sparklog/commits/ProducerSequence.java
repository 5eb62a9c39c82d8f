package io.sparklog.commits;

import io.sparklog.format.Layout;
import java.nio.ByteBuffer;

/**
 * The numbers that a producer gave to a batch. FORMAT.md annex B.
 *
 * @param id of the producer; −1 without a producer
 * @param first the sequence of the first record
 */
record ProducerSequence(long id, int epoch, int first) {
  private static final ProducerSequence NONE = new ProducerSequence(-1, -1, -1);

  /** The numbers of a batch that is not checked yet. */
  static ProducerSequence of(ByteBuffer batch) {
    int at = batch.position();
    if (batch.remaining() < Layout.HEADER_BYTES || batch.get(at + Layout.MAGIC_AT) != Layout.MAGIC) {
      return NONE;
    }
    return new ProducerSequence(batch.getLong(at + Layout.PRODUCER_ID_AT), batch.getShort(at + Layout.PRODUCER_EPOCH_AT),
        batch.getInt(at + Layout.BASE_SEQUENCE_AT));
  }

  /** Whether a batch comes after another batch of the same producer and epoch, by their first sequences. The one after 2³¹ − 1 is 0. */
  static boolean isAfter(int first, int otherFirst) {
    return first != otherFirst && (first - otherFirst & Integer.MAX_VALUE) < 1 << 30;
  }
}
