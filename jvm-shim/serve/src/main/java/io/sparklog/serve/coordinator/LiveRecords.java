package io.sparklog.serve.coordinator;

import io.sparklog.commits.PreparedAppend;
import io.sparklog.format.BatchDecoder;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.segment.BatchPosition;
import io.sparklog.segment.Extent;
import io.sparklog.segment.ExtentReader;
import io.sparklog.segment.ReadAhead;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFiles;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.Warnings;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.Deserializer;

/**
 * The newest record of each key, in the order of these records: a compaction keeps them, and no others.
 *
 * <p>Everybody who can write files of the root can write records here. A record that no coordinator can read is left out, and named in the
 * log. Then the record before it counts. A type of record that is not known is kept.
 */
final class LiveRecords {
  /** So many records that cannot be read are named in the log; the others are counted. */
  private static final int NAMED = 10;

  /** The most reads of a partition whose segments are merged while it is read. */
  private static final int TRIES = 5;

  private final TopicPartition place;
  private final Deserializer<CoordinatorRecord> reader;
  private final String kind;
  private final Map<ByteBuffer, Stored> newest = new LinkedHashMap<>();
  private long bytes;
  private long read;
  private long unreadable;

  /** A record of a partition. @param value null in a tombstone */
  record Stored(long offset, long timestamp, byte[] key, byte[] value) {
    int bytes() {
      return (key == null ? 0 : key.length) + (value == null ? 0 : value.length);
    }
  }

  private LiveRecords(TopicPartition place, Deserializer<CoordinatorRecord> reader, String kind) {
    this.place = place;
    this.reader = reader;
    this.kind = kind;
  }

  /**
   * Reads a partition.
   *
   * @param first a state of the topic
   * @param kind the word for the thing that a record describes, such as group
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT, SEGMENT_MISSING
   */
  static LiveRecords of(Root root, State first, TopicPartition place, Deserializer<CoordinatorRecord> reader, String kind)
      throws IOException {
    State state = first;
    for (int tries = 1;; tries++) {
      LiveRecords live = new LiveRecords(place, reader, kind);
      try {
        read(root, state, place.partition(), live::take);
        return live;
      } catch (SegmentGone gone) { // A merge has put the records into another file.
        State newest = root.topic(place.topic()).newest().filter(found -> found.topicId().equals(first.topicId())).orElseThrow(() -> gone);
        if (newest.end(place.partition()) != first.end(place.partition()) || tries == TRIES) {
          throw gone;
        }
        state = newest;
      }
    }
  }

  /** Hands on the records of a partition in the order of their offsets. */
  static void read(Root root, State state, int partition, Consumer<Stored> taker) throws IOException {
    List<Extent> extents = new ArrayList<>();
    for (Segment segment : state.segments(partition)) {
      long start = Math.max(segment.base(), state.start(partition));
      extents.add(Extent.of(segment, BatchPosition.startOf(segment), start, segment.end(), false));
    }
    BatchDecoder decoder = new BatchDecoder(state.config().decompressedBytesMax());
    try (SegmentFiles files = root.open(state.topic(), extents)) {
      ReadAhead ahead = new ReadAhead();
      for (Extent extent : extents) {
        try (ExtentReader reader = ExtentReader.open(files.open(extent), extent, ExtentReader.Need.RECORDS, ahead, decoder)) {
          while (reader.next()) {
            for (int i = 0; i < decoder.count(); i++) {
              long offset = reader.base() + decoder.offsetDeltas()[i];
              if (offset >= extent.startOffset()) {
                byte[] key = copy(decoder.data(), decoder.keyAt()[i], decoder.keyLengths()[i]);
                byte[] value = copy(decoder.data(), decoder.valueAt()[i], decoder.valueLengths()[i]);
                taker.accept(new Stored(offset, decoder.timestamps()[i], key, value));
              }
            }
          }
        }
      }
    }
  }

  private static byte[] copy(byte[] from, int at, int length) {
    return length < 0 ? null : Arrays.copyOfRange(from, at, at + length);
  }

  private void take(Stored record) {
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
      return reader.deserialize(record.key() == null ? null : ByteBuffer.wrap(record.key()),
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
      Warnings.warn(LiveRecords.class, "in partition {} of topic {}, {} records cannot be records of a {}, and are left out",
          place.partition(), place.topic(), unreadable, kind);
    }
  }

  private void leaveOut(long offset, RuntimeException why) {
    if (++unreadable <= NAMED) {
      Warnings.warn(LiveRecords.class,
          "the record at offset {} of partition {} of topic {} cannot be a record of a {}, and is left out: {}", offset, place.partition(),
          place.topic(), kind, why.toString());
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

  /** The records as batches. @param batchBytes the size in bytes at which a batch is closed */
  List<PreparedAppend.PreparedBatch> batches(int batchBytes) {
    List<PreparedAppend.PreparedBatch> batches = new ArrayList<>();
    List<Stored> open = new ArrayList<>();
    int size = 0;
    for (Stored record : newest.values()) {
      open.add(record);
      size += record.bytes();
      if (size >= batchBytes) {
        batches.add(batch(open));
        open.clear();
        size = 0;
      }
    }
    if (!open.isEmpty()) {
      batches.add(batch(open));
    }
    return batches;
  }

  private static PreparedAppend.PreparedBatch batch(List<Stored> stored) {
    SimpleRecord[] records = stored.stream()
        .map(record -> new SimpleRecord(record.timestamp(), record.key(), record.value()))
        .toArray(SimpleRecord[]::new);
    ByteBuffer batch = MemoryRecords.withRecords(Compression.NONE, 0, records).buffer();
    byte[] bytes = new byte[batch.remaining()];
    batch.get(bytes);
    return PreparedAppend.PreparedBatch.unordered(bytes, stored.stream().mapToLong(Stored::timestamp).min().orElseThrow());
  }
}
