package io.sparklog.serve.coordinator;

import io.sparklog.commits.TopicWriters;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.serve.protocol.Workers;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/**
 * A topic with the records of a coordinator of Kafka, as the runtime of all Kafka's coordinators sees it. It is of one topic id: if the
 * topic is created again, or gets more partitions, another object begins.
 */
final class CoordinatorTopic implements PartitionWriter, CoordinatorLoader<CoordinatorRecord> {
  private final String topicId;
  private final List<CoordinatorPartition> partitions;
  private final Workers loads = new Workers("coordinator-loads", 2);

  /** @param recordsMin a partition with fewer records is not compacted */
  CoordinatorTopic(Root root, State state, TopicWriters writers, CoordinatorPartition.CoordinatorKind service, RecordMemory memory,
      int recordsMin) {
    topicId = state.topicId();
    partitions = IntStream.range(0, state.partitions())
        .mapToObj(number -> new CoordinatorPartition(root, state, number, writers, service, memory, recordsMin))
        .toList();
  }

  /** Whether this is the topic that {@code state} is of. */
  boolean isOf(State state) {
    return state.topicId().equals(topicId) && state.partitions() == partitions.size();
  }

  int size() {
    return partitions.size();
  }

  /** Completes when the coordinator of some partitions knows all that {@code state} has. */
  CompletableFuture<Void> current(State state, IntPredicate isMeant) {
    return CompletableFuture.allOf(meant(isMeant).map(each -> each.current(state)).toArray(CompletableFuture[]::new));
  }

  /** Forgets the records of some partitions. */
  void release(IntPredicate isMeant) {
    meant(isMeant).forEach(CoordinatorPartition::release);
  }

  private Stream<CoordinatorPartition> meant(IntPredicate isMeant) {
    return IntStream.range(0, partitions.size()).filter(isMeant).mapToObj(partitions::get);
  }

  private CoordinatorPartition partition(TopicPartition place) {
    return partitions.get(place.partition());
  }

  @Override
  public void registerListener(TopicPartition place, Listener listener) {
    partition(place).activated(listener);
  }

  @Override
  public void deregisterListener(TopicPartition place, Listener listener) {
    partition(place).deactivated(listener);
  }

  @Override
  public LogConfig config(TopicPartition place) {
    return new LogConfig(Map.of());
  }

  @Override
  public long append(TopicPartition place, VerificationGuard guard, MemoryRecords records, short transactionVersion) {
    return partition(place).append(records);
  }

  @Override
  public CompletableFuture<VerificationGuard> maybeStartTransactionVerification(TopicPartition place, String id, long producer, short epoch,
      int version) {
    return CompletableFuture.failedFuture(Errors.UNSUPPORTED_VERSION.exception());
  }

  /** Kafka deletes records here that no partition needs. A load compacts instead. */
  @Override
  public CompletableFuture<Void> deleteRecords(TopicPartition place, long before) {
    return CompletableFuture.completedFuture(null);
  }

  @Override
  public CompletableFuture<LoadSummary> load(TopicPartition place, CoordinatorPlayback<CoordinatorRecord> playback) {
    return loads.run(() -> partition(place).load(playback));
  }

  /** The coordinator calls it when it ends. */
  @Override
  public void close() {
    loads.closeNow();
    partitions.forEach(CoordinatorPartition::end);
  }
}
