package io.sparklog.serve.coordinator.groups;

import io.sparklog.commits.PreparedBatch;
import io.sparklog.serve.coordinator.groups.OffsetsTopic.Stored;
import io.sparklog.spec.Warnings;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.Deserializer;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;

/**
 * The newest record of each key, in the order of these records: a compaction keeps them, and no others.
 *
 * <p>Everybody who can write files of the root can write records here. A record that no coordinator can read is left out, and named in the
 * log. Then the record before it counts, so that a group reads records again at most. A type of record that is not known is kept.
 */
final class LiveRecords implements OffsetsTopic.RecordTaker {
  /** So many records that cannot be read are named in the log; the others are counted. */
  private static final int NAMED = 10;

  private final TopicPartition place;
  private final GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
  private final Map<ByteBuffer, Stored> newest = new LinkedHashMap<>();
  private long bytes;
  private long read;
  private long unreadable;

  LiveRecords(TopicPartition place) {
    this.place = place;
  }

  @Override
  public void take(Stored record) {
    read++;
    if (!isReadable(record)) {
      return;
    }
    ByteBuffer key = ByteBuffer.wrap(record.key());
    Stored before = newest.remove(key);
    bytes -= before == null ? 0 : before.bytes();
    if (record.value() != null) {
      newest.put(key, record);
      bytes += record.bytes();
    }
  }

  private boolean isReadable(Stored record) {
    try {
      record(record);
      return true;
    } catch (RuntimeException e) {
      leaveOut(record.offset(), e);
      return false;
    }
  }

  private CoordinatorRecord record(Stored record) {
    try {
      return serde.deserialize(record.key() == null ? null : ByteBuffer.wrap(record.key()),
          record.value() == null ? null : ByteBuffer.wrap(record.value()));
    } catch (Deserializer.UnknownRecordTypeException e) {
      return null;
    }
  }

  /** Hands the records on. */
  void replay(CoordinatorPlayback<CoordinatorRecord> playback) {
    for (Stored stored : newest.values()) {
      try {
        CoordinatorRecord record = record(stored);
        if (record != null) {
          playback.replay(stored.offset(), RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH, record);
        }
      } catch (RuntimeException e) {
        leaveOut(stored.offset(), e);
      }
    }
    if (unreadable > NAMED) {
      Warnings.warn(LiveRecords.class, "in partition {} of topic {}, {} records cannot be records of a group, and are left out",
          place.partition(), place.topic(), unreadable);
    }
  }

  private void leaveOut(long offset, RuntimeException why) {
    if (++unreadable <= NAMED) {
      Warnings.warn(LiveRecords.class,
          "the record at offset {} of partition {} of topic {} cannot be a record of a group, and is left out: {}", offset,
          place.partition(), place.topic(), why.toString());
    }
  }

  Collection<Stored> records() {
    return newest.values();
  }

  /** How many records were read, with the older records of each key. */
  long read() {
    return read;
  }

  long bytes() {
    return bytes;
  }

  /** The memory that each takes. */
  LiveSizes sizes() {
    LiveSizes sizes = new LiveSizes();
    newest.forEach((key, record) -> sizes.put(key, ByteBuffer.wrap(record.value())));
    return sizes;
  }

  /** The records as batches. @param batchBytes a batch is closed when it has so many bytes */
  List<PreparedBatch> batches(int batchBytes) {
    List<PreparedBatch> batches = new ArrayList<>();
    List<Stored> open = new ArrayList<>();
    int size = 0;
    for (Stored record : newest.values()) {
      open.add(record);
      size += record.bytes();
      if (size >= batchBytes) {
        batches.add(batch(open, size));
        open.clear();
        size = 0;
      }
    }
    if (!open.isEmpty()) {
      batches.add(batch(open, size));
    }
    return batches;
  }

  private static PreparedBatch batch(List<Stored> records, int size) {
    ByteBuffer buffer = ByteBuffer.allocate(size + 64 * records.size() + 128);
    long min = Long.MAX_VALUE;
    try (MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE,
        TimestampType.CREATE_TIME, 0, RecordBatch.NO_TIMESTAMP, RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH,
        RecordBatch.NO_SEQUENCE, false, 0)) {
      for (Stored record : records) {
        builder.append(record.timestamp(), record.key(), record.value());
        min = Math.min(min, record.timestamp());
      }
      ByteBuffer built = builder.build().buffer();
      byte[] bytes = new byte[built.remaining()];
      built.duplicate().get(bytes);
      return PreparedBatch.unordered(bytes, min);
    }
  }
}
