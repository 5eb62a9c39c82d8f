package io.sparklog.serve.coordinator;

import io.sparklog.commits.AppendResult;
import io.sparklog.commits.PreparedAppend;
import io.sparklog.commits.TopicWriters;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.NotCoordinatorException;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader.LoadSummary;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.Deserializer;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter.Listener;

/**
 * One partition of a topic that has the records of a coordinator, and this process as its coordinator: up to which offset it knows the
 * records, and whether that is still all.
 *
 * <p>One append is under way at a time. The records that come meanwhile are the next append. So no append follows a refused append, and
 * equal end offsets mean equal records.
 */
final class CoordinatorPartition {
  private static final int BATCH_BYTES = 256 << 10;

  private enum Standing {
    /** No coordinator: no request has come yet, or the last load failed. */
    IDLE, LOADING, ACTIVE
  }

  /** A coordinator of Kafka, by the methods that each kind has. It needs the newest record of each key, and no other records. */
  interface CoordinatorKind extends Deserializer<CoordinatorRecord> {
    void onElection(int partition, int epoch);

    void onResignation(int partition, OptionalInt epoch);

    /** The word for the thing that a record describes, such as group. */
    String kind();

    /** The error for records that would take too much memory. */
    RuntimeException noRoom(MemoryRecords records);
  }

  private final Root root;
  private final TopicLog log;
  private final String topicId;
  private final TopicPartition place;
  private final TopicWriters writers;
  private final CoordinatorKind service;
  private final RecordMemory memory;
  private final int recordsMin;

  // All below is guarded by this.
  private Standing standing = Standing.IDLE;
  private int epoch;
  private CompletableFuture<Void> loaded;
  private Listener listener;

  /** The coordinator knows all records below this offset, and these are committed. */
  private long known;

  /** The end offset after the append that is under way; {@link #known} without an append. */
  private long underWay;

  /** Completes when the outcome of the newest append counts here. */
  private CompletableFuture<Void> settled = CompletableFuture.completedFuture(null);

  /** The end offset after all appends. */
  private long end;

  private List<PreparedAppend.PreparedBatch> waiting = new ArrayList<>();

  /** The number of records at which the partition is worth a compaction. */
  private long compactAt;
  private long records;

  /** The memory that the newest records take, with the records that are not committed yet. */
  private LiveSizes sizes = new LiveSizes();

  CoordinatorPartition(Root root, State state, int partition, TopicWriters writers, CoordinatorKind service, RecordMemory memory,
      int recordsMin) {
    this.root = root;
    this.log = root.topic(state.topic());
    this.topicId = state.topicId();
    this.place = new TopicPartition(state.topic(), partition);
    this.writers = writers;
    this.service = service;
    this.memory = memory;
    this.recordsMin = recordsMin;
  }

  /** Completes when the coordinator knows all records that {@code state} has, and is active. Loads them if need be. */
  CompletableFuture<Void> current(State state) {
    CompletableFuture<Void> wait;
    synchronized (this) {
      long there = state.end(place.partition());
      if (standing == Standing.ACTIVE && there <= known) {
        return CompletableFuture.completedFuture(null);
      }
      if (standing == Standing.ACTIVE && there == underWay) {
        wait = settled; // These are the records that are under way, or as many records of another process.
      } else {
        if (standing == Standing.ACTIVE) {
          startOver();
        } else if (standing == Standing.IDLE) {
          begin();
        }
        wait = loaded;
      }
    }
    return wait.thenCompose(done -> current(state));
  }

  private void begin() {
    standing = Standing.LOADING;
    loaded = new CompletableFuture<>();
    service.onElection(place.partition(), ++epoch);
  }

  /** Gives the coordinator up, which answers all that waits with NOT_COORDINATOR, and loads the records again. */
  private void startOver() {
    waiting.clear();
    service.onResignation(place.partition(), OptionalInt.of(++epoch));
    begin();
  }

  /** Gives the coordinator up: another process coordinates the partition. A load that is under way ends first. */
  synchronized void release() {
    if (standing == Standing.ACTIVE) {
      waiting.clear();
      standing = Standing.IDLE;
      hold(new LiveSizes());
      service.onResignation(place.partition(), OptionalInt.of(++epoch));
    }
  }

  /** The coordinator ends: what waits for a load is answered. */
  void end() {
    CompletableFuture<Void> waited;
    synchronized (this) {
      waited = loaded;
    }
    if (waited != null) {
      waited.completeExceptionally(new NotCoordinatorException("the coordinator of " + place + " ends"));
    }
  }

  /** Kafka's coordinator has the loaded records, and is active. */
  void activated(Listener listener) {
    CompletableFuture<Void> waited;
    synchronized (this) {
      this.listener = listener;
      standing = Standing.ACTIVE;
      waited = loaded;
    }
    waited.complete(null);
  }

  synchronized void deactivated(Listener listener) {
    if (this.listener == listener) {
      this.listener = null;
    }
  }

  /**
   * Takes records. The listener is called when they are committed.
   *
   * @return the end offset after them
   * @throws NotCoordinatorException if the records are loaded again
   * @throws RuntimeException of {@link CoordinatorKind#noRoom}
   */
  synchronized long append(MemoryRecords records) {
    if (standing != Standing.ACTIVE) {
      throw new NotCoordinatorException("the records of " + place + " are loaded again");
    }
    requireMemory(records);
    for (MutableRecordBatch batch : records.batches()) {
      batch.setPartitionLeaderEpoch(0);
      ByteBuffer bytes = ByteBuffer.allocate(batch.sizeInBytes());
      batch.writeTo(bytes); // A copy: the coordinator uses its buffer again.
      long least = Long.MAX_VALUE;
      int count = 0;
      for (Record record : batch) {
        least = Math.min(least, record.timestamp());
        count++;
      }
      waiting.add(PreparedAppend.PreparedBatch.unordered(bytes.array(), least));
      end += count;
      this.records += count;
    }
    if (underWay == known) {
      commit();
    }
    return end;
  }

  /** Otherwise a coordinator that loads them, here or in another process, could need more memory than there is. */
  private void requireMemory(MemoryRecords records) {
    LiveSizes.Added change = sizes.new Added();
    records.records().forEach(record -> change.add(record.key(), record.value()));
    if (!memory.hasRoom(change.growth())) {
      // After a sleep, for example, the process may hold nothing.
      throw memory.isOf(place.partition()) ? service.noRoom(records) : notOurs();
    }
    sizes.take(change);
    memory.add(place.partition(), change.growth());
  }

  private NotCoordinatorException notOurs() {
    return new NotCoordinatorException("another server may coordinate the " + service.kind() + "s of " + place.partition());
  }

  private void hold(LiveSizes next) {
    memory.add(place.partition(), next.bytes() - sizes.bytes());
    sizes = next;
  }

  private void commit() {
    List<PreparedAppend.PreparedBatch> batches = waiting;
    waiting = new ArrayList<>();
    underWay = end;
    int of = epoch;
    settled = append(batches, new PreparedAppend.Fence(known, false)).handle((after, failed) -> {
      committed(of, after, failed);
      return null;
    });
  }

  /**
   * Commits batches if the partition ends at the fence.
   *
   * @return the end offset after them; {@link NotCoordinatorException} if this process may not; {@link io.sparklog.commits.AppendRefused},
   *     with which they may be there or not
   */
  private CompletableFuture<Long> append(List<PreparedAppend.PreparedBatch> batches, PreparedAppend.Fence fence) {
    if (!memory.isOf(place.partition())) { // After a sleep, the timers of this process take all members for dead.
      return CompletableFuture.failedFuture(notOurs());
    }
    return writers.append(place.topic(), place.partition(), PreparedAppend.of(topicId, batches, fence)).thenApply(AppendResult::end);
  }

  private void committed(int of, Long after, Throwable failed) {
    Listener told;
    synchronized (this) {
      if (of != epoch) {
        return;
      }
      if (failed != null) {
        Warnings.inform(CoordinatorPartition.class, "partition {} of topic {} is loaded again: {}", place.partition(), place.topic(),
            failed.getMessage());
        startOver();
        return;
      }
      known = after;
      underWay = after;
      told = listener;
      if (!waiting.isEmpty()) {
        commit();
      }
    }
    if (told != null) {
      told.onHighWatermarkUpdated(place, after); // First: a start over refuses the requests that still wait.
    }
    synchronized (this) {
      if (of == epoch && underWay == known && records >= compactAt) {
        startOver();
      }
    }
  }

  /** Hands the live records on, and compacts the partition first if it is worth it. */
  LoadSummary load(CoordinatorPlayback<CoordinatorRecord> playback) throws IOException {
    long began = System.currentTimeMillis();
    try {
      State state = log.newest()
          .filter(found -> found.topicId().equals(topicId))
          .orElseThrow(() -> new NotCoordinatorException("Topic " + place.topic() + " was deleted, or created again"));
      LiveRecords live = LiveRecords.of(root, state, place, service, service.kind());
      boolean isWorthIt = live.read() >= recordsMin && live.records().size() < live.read() / 2;
      long there = state.end(place.partition());
      long reached = isWorthIt ? compacted(live, there) : there;
      live.replay(playback);
      synchronized (this) {
        known = reached;
        underWay = reached;
        end = reached;
        records = reached > there ? live.records().size() : live.read();
        compactAt = Math.max(recordsMin, 2L * records);
        hold(live.sizes());
      }
      if (reached > 0) { // It refuses 0.
        playback.updateLastWrittenOffset(reached);
        playback.updateLastCommittedOffset(reached);
      }
      return new LoadSummary(began, System.currentTimeMillis(), 0, live.read(), live.bytes());
    } catch (IOException | RuntimeException | Error e) {
      failed(e);
      throw e;
    }
  }

  /** Puts the live records in the place of all records. @return the end offset after them; {@code there} if that failed */
  private long compacted(LiveRecords live, long there) {
    try {
      return append(live.batches(BATCH_BYTES), new PreparedAppend.Fence(there, true)).join();
    } catch (CompletionException e) {
      // If another process added records, the next append is refused, and they are loaded then.
      Warnings.inform(CoordinatorPartition.class, "partition {} of topic {} is not compacted: {}", place.partition(), place.topic(),
          e.getCause().getMessage());
      return there;
    }
  }

  private void failed(Throwable why) {
    Warnings.warn(CoordinatorPartition.class, "the {}s in partition {} of topic {} under {} cannot be loaded", service.kind(),
        place.partition(), place.topic(), root.location(), why);
    CompletableFuture<Void> waited;
    synchronized (this) {
      standing = Standing.IDLE;
      hold(new LiveSizes());
      waited = loaded;
    }
    waited.completeExceptionally(why);
  }
}
