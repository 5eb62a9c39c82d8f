package io.sparklog.serve.coordinator.groups;

import io.sparklog.admin.Administration;
import io.sparklog.commits.PreparedBatch;
import io.sparklog.commits.AppendResult;
import io.sparklog.commits.PreparedAppend;
import io.sparklog.commits.TopicWriters;
import io.sparklog.format.BatchDecoder;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.BatchPosition;
import io.sparklog.segment.Extent;
import io.sparklog.segment.ExtentReader;
import io.sparklog.segment.ReadAhead;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFiles;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.PartlogException;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntPredicate;
import java.util.random.RandomGenerator;
import org.apache.kafka.common.errors.NotCoordinatorException;

/** The topic in which the records of groups are. */
final class OffsetsTopic {
  static final String NAME = ReadableTopics.GROUPS;

  /** A record of a partition. @param value null in a tombstone */
  record Stored(long offset, long timestamp, byte[] key, byte[] value) {
    int bytes() {
      return (key == null ? 0 : key.length) + (value == null ? 0 : value.length);
    }
  }

  /** Takes the records of a partition in the order of their offsets. */
  @FunctionalInterface
  interface RecordTaker {
    void take(Stored record);
  }

  private final Root root;
  private final TopicLog log;
  private final TopicWork work;
  private final IntPredicate isOurs;
  private final TopicWriters writers;

  /** @param isOurs whether this process may add records to a partition now */
  OffsetsTopic(Root root, TopicWriters writers, IntPredicate isOurs, Clock clock, RandomGenerator random) {
    this.root = root;
    this.writers = writers;
    this.isOurs = isOurs;
    this.log = root.topic(NAME);
    this.work = new TopicWork(log, clock, random);
  }

  static Thread daemon(Runnable task, String name) {
    Thread thread = new Thread(task, name);
    thread.setDaemon(true);
    return thread;
  }

  TopicLog log() {
    return log;
  }

  /** Makes the topic, unless another process has made it meanwhile. */
  void create(TopicConfig config) {
    try {
      root.prepare();
      new Administration(work).create(config, work.identity());
    } catch (PartlogException e) {
      if (log.newest().isEmpty()) {
        throw e;
      }
    }
    root.listAgain();
  }

  /**
   * Adds batches to a partition if it ends at {@code end}.
   *
   * @param topicId of the topic that the records are for
   * @param replaces whether they take the place of all records of the partition
   * @return the end offset after them; {@link NotCoordinatorException} if this process may not; {@link io.sparklog.commits.AppendRefused},
   *     with which they may be there or not
   */
  CompletableFuture<Long> append(String topicId, int partition, long end, boolean replaces, List<PreparedBatch> batches) {
    if (!isOurs.test(partition)) { // After a sleep, the timers of this process take all members for dead.
      return CompletableFuture.failedFuture(new NotCoordinatorException("another server may coordinate the groups of " + partition));
    }
    PreparedAppend fenced = PreparedAppend.of(topicId, batches, new PreparedAppend.Fence(end, replaces));
    return writers.append(NAME, partition, fenced).thenApply(AppendResult::end);
  }

  /**
   * Hands on the records of a partition.
   *
   * @throws PartlogException BATCH_CORRUPT, SEGMENT_CORRUPT, SEGMENT_MISSING
   */
  void read(State state, int partition, RecordTaker taker) throws IOException {
    List<Extent> extents = new ArrayList<>();
    for (Segment segment : state.segments(partition)) {
      long start = Math.max(segment.base(), state.start(partition));
      extents.add(Extent.of(segment, BatchPosition.startOf(segment), start, segment.end(), false));
    }
    BatchDecoder decoder = new BatchDecoder(state.config().decompressedBytesMax());
    try (SegmentFiles files = root.open(NAME, extents)) {
      ReadAhead ahead = new ReadAhead();
      for (Extent extent : extents) {
        try (ExtentReader reader = ExtentReader.open(files.open(extent), extent, ExtentReader.Need.RECORDS, ahead, decoder)) {
          while (reader.next()) {
            take(reader, decoder, taker);
          }
        }
      }
    }
  }

  private static void take(ExtentReader reader, BatchDecoder decoder, RecordTaker taker) {
    for (int i = 0; i < decoder.count(); i++) {
      long offset = reader.base() + decoder.offsetDeltas()[i];
      if (offset >= reader.extent().startOffset()) {
        byte[] key = copy(decoder.data(), decoder.keyAt()[i], decoder.keyLengths()[i]);
        byte[] value = copy(decoder.data(), decoder.valueAt()[i], decoder.valueLengths()[i]);
        taker.take(new Stored(offset, decoder.timestamps()[i], key, value));
      }
    }
  }

  private static byte[] copy(byte[] from, int at, int length) {
    return length < 0 ? null : Arrays.copyOfRange(from, at, at + length);
  }
}
