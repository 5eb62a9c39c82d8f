package io.sparklog.commits;

import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.Codec;
import io.sparklog.format.Layout;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.routing.Router;
import java.nio.ByteBuffer;
import java.time.Clock;
import java.util.List;

/**
 * Checks the batches that clients send to a topic, with the decoder and the limits of our readers: a batch that is accepted can be read by
 * every reader. FORMAT.md section C.1.
 */
public final class Intake {
  private static final String BEFORE_MAX_MS = "message.timestamp.before.max.ms";
  private static final String AFTER_MAX_MS = "message.timestamp.after.max.ms";

  /** Kafka's default: a time in another unit than ms would keep a partition from its retention for ever. */
  private static final long AFTER_MAX_MS_DEFAULT = 3_600_000;

  private final State state;
  private final TopicConfig config;
  private final Router router;
  private final Clock clock;
  private final BatchDecoder decoder;

  /** @param state of the topic, for its configuration and for where keys go */
  public Intake(State state, Clock clock) {
    this.state = state;
    this.config = state.config();
    this.router = state.forWriters().router();
    this.clock = clock;
    this.decoder = new BatchDecoder(config.decompressedBytesMax());
  }

  /** The only batch in {@code records}, which is copied. @throws AppendRefused if the batch may not be added */
  public PreparedAppend prepared(int partition, ByteBuffer records) throws AppendRefused {
    return new PreparedAppend(state.topicId(), state.router(), List.of(accept(partition, records)), null);
  }

  PreparedAppend.PreparedBatch accept(int partition, ByteBuffer records) throws AppendRefused {
    requirePartition(partition);
    byte[] batch = new byte[records.remaining()];
    records.duplicate().get(batch);
    requireWhole(batch);
    requireAllowed(batch);
    try {
      decoder.decode(batch, 0, batch.length);
    } catch (BadBatch e) {
      throw new AppendRefused(e.limit().isPresent() ? AppendRefused.Reason.TOO_LARGE : AppendRefused.Reason.INVALID_RECORD,
          "A batch is not valid: " + e.getMessage(), e);
    }
    BatchHeader.clearLeaderEpoch(batch);
    PreparedAppend.KeyHomes keys = keys(partition);
    if (config.logAppendTime()) {
      long now = Math.max(0, clock.millis());
      BatchHeader.setLogAppendTime(batch, now);
      return new PreparedAppend.PreparedBatch(batch, now, keys, true);
    }
    return timed(batch, keys);
  }

  /** Where the keys of the batch that was decoded last belong. */
  private PreparedAppend.KeyHomes keys(int partition) {
    int keyed = 0;
    for (int i = 0; i < decoder.count(); i++) {
      int length = decoder.keyLengths()[i];
      if (length >= 0) {
        keyed++;
        if (router.ofKey(decoder.data(), decoder.keyAt()[i], length) != partition) {
          return PreparedAppend.KeyHomes.ASTRAY;
        }
      }
    }
    if (keyed == 0) {
      return PreparedAppend.KeyHomes.NONE;
    }
    return keyed == decoder.count() ? PreparedAppend.KeyHomes.ALL : PreparedAppend.KeyHomes.SOME;
  }

  private void requirePartition(int partition) throws AppendRefused {
    if (!state.hasPartition(partition)) {
      throw AppendRefused.unknownPartition(state.topic(), partition);
    }
  }

  /** The bytes are one batch of a form that readers know, not too large, and as its client made them. */
  private void requireWhole(byte[] batch) throws AppendRefused {
    if (batch.length > Layout.MAGIC_AT && BatchHeader.magic(batch, 0) != Layout.MAGIC) {
      throw new AppendRefused(AppendRefused.Reason.UNSUPPORTED_MAGIC,
          "A batch has magic number " + BatchHeader.magic(batch, 0) + "; send batches of magic number " + Layout.MAGIC + ".");
    }
    if (batch.length > config.maxMessageBytes()) {
      throw new AppendRefused(AppendRefused.Reason.TOO_LARGE, "A batch has " + batch.length + " bytes; " + TopicConfig.MAX_MESSAGE_BYTES
          + " of topic " + state.topic() + " is " + config.maxMessageBytes() + ".");
    }
    if (batch.length > config.batchBytesMax()) {
      throw new AppendRefused(AppendRefused.Reason.TOO_LARGE_FOR_SEGMENT, "A batch has " + batch.length + " bytes; "
          + TopicConfig.SEGMENT_BYTES + " of topic " + state.topic() + " is " + config.batchBytesMax() + ".");
    }
    if (batch.length >= Layout.HEADER_BYTES) {
      if (BatchHeader.codecId(batch, 0) >= Codec.values().length) {
        throw new AppendRefused(AppendRefused.Reason.UNSUPPORTED_CODEC,
            "A batch has codec " + BatchHeader.codecId(batch, 0) + ", which is not known.");
      }
      require(!BatchHeader.isTransactional(batch, 0), "A batch is of a transaction. Transactions are not supported.");
      require(!BatchHeader.hasReserved(batch, 0), "A batch has attributes that clients must not set.");
    }
    try {
      decoder.check(batch, 0, batch.length);
    } catch (BadBatch e) {
      throw new AppendRefused(AppendRefused.Reason.CORRUPT, "A batch is damaged, or is not alone: " + e.getMessage(), e);
    }
  }

  private static void requireAllowed(byte[] batch) throws AppendRefused {
    int count = BatchHeader.count(batch, 0);
    require(count > 0 && count == BatchHeader.lastOffsetDelta(batch, 0) + 1L,
        "A batch has " + count + " records, and its last offset delta is " + BatchHeader.lastOffsetDelta(batch, 0) + ".");
    long id = BatchHeader.producerId(batch, 0);
    require(id == -1 || id >= 0 && BatchHeader.producerEpoch(batch, 0) >= 0 && BatchHeader.baseSequence(batch, 0) >= 0,
        "A batch has producer id " + id + ", epoch " + BatchHeader.producerEpoch(batch, 0) + " and base sequence "
            + BatchHeader.baseSequence(batch, 0) + ".");
  }

  private static void require(boolean condition, String message) throws AppendRefused {
    if (!condition) {
      throw new AppendRefused(AppendRefused.Reason.INVALID_RECORD, message);
    }
  }

  /** The decoded batch, whose records have the times of their producer. */
  private PreparedAppend.PreparedBatch timed(byte[] batch, PreparedAppend.KeyHomes keys) throws AppendRefused {
    if (BatchHeader.isLogAppendTime(batch, 0)) {
      throw new AppendRefused(AppendRefused.Reason.INVALID_TIMESTAMP,
          "A batch has the time at which a log appended it, and only the log may set that.");
    }
    long[] times = decoder.timestamps();
    long now = clock.millis();
    long beforeMax = limit(BEFORE_MAX_MS, Long.MAX_VALUE);
    long afterMax = limit(AFTER_MAX_MS, AFTER_MAX_MS_DEFAULT);
    long least = Long.MAX_VALUE;
    long greatest = -1;
    boolean ordered = times[0] == BatchHeader.baseTimestamp(batch, 0);
    for (int i = 0; i < decoder.count(); i++) {
      long time = times[i];
      if (time < -1 || time >= 0 && (now - time > beforeMax || time - now > afterMax)) {
        throw new AppendRefused(AppendRefused.Reason.INVALID_TIMESTAMP,
            "A record has time " + time + " ms since 1970, and topic " + state.topic() + " does not take it at " + now + ".");
      }
      ordered &= time >= greatest;
      least = Math.min(least, time);
      greatest = Math.max(greatest, time);
    }
    if (BatchHeader.maxTimestamp(batch, 0) != greatest) {
      BatchHeader.setMaxTimestamp(batch, greatest);
    }
    return new PreparedAppend.PreparedBatch(batch, least, keys, ordered);
  }

  /** @param otherwise the limit if the topic does not have the key */
  private long limit(String key, long otherwise) {
    String text = config.entries().get(key);
    try {
      return text == null ? otherwise : Long.parseLong(text);
    } catch (NumberFormatException e) {
      return otherwise;
    }
  }
}
