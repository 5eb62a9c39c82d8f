package io.sparklog.serve.coordinator.groups;

import com.yammer.metrics.core.MetricsRegistry;
import io.sparklog.log.State;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorService;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorRuntimeMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.server.share.persister.NoOpStatePersister;
import org.apache.kafka.server.util.PartitionMetadataClient;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.SystemTimerReaper;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/** Kafka's coordinator over the partitions of one topic id. If the topic is created again, or gets more partitions, another one begins. */
final class Coordinator implements AutoCloseable {
  private final String topicId;
  private final List<GroupPartition> partitions = new ArrayList<>();
  private final ExecutorService loads = Executors.newFixedThreadPool(2, task -> OffsetsTopic.daemon(task, "group-loads"));
  private final Metrics metrics = new Metrics();
  private final GroupCoordinatorService service;
  private final TopicsImage image;

  /** @param settings by Kafka's names; others are ignored */
  Coordinator(OffsetsTopic topic, State state, int nodeId, Map<String, Object> settings, int compactionRecordsMin, GroupMemory memory) {
    topicId = state.topicId();
    GroupCoordinatorConfig config = GroupCoordinatorConfig.fromProps(settings);
    service = new GroupCoordinatorService.Builder(nodeId, config).withTime(Time.SYSTEM)
        .withTimer(new SystemTimerReaper("group-timer", new SystemTimer("group")))
        .withLoader(new Loader())
        .withWriter(new Writer())
        .withCoordinatorRuntimeMetrics(new GroupCoordinatorRuntimeMetrics(metrics))
        .withGroupCoordinatorMetrics(new GroupCoordinatorMetrics(new MetricsRegistry(), metrics))
        .withGroupConfigManager(new GroupConfigManager(Map.of(), config, ShareGroupConfig.fromProps(Map.of())))
        .withPersister(new NoOpStatePersister())
        .withAuthorizerPlugin(Optional.empty())
        .withPartitionMetadataClient(new NoOffsets())
        .build();
    for (int partition = 0; partition < state.partitions(); partition++) {
      partitions.add(new GroupPartition(topic, topicId, partition, service, compactionRecordsMin, memory));
    }
    service.startup(partitions::size);
    image = new TopicsImage(service);
  }

  /** Whether this coordinates the groups of the topic that {@code state} is of. */
  boolean isOf(State state) {
    return state.topicId().equals(topicId) && state.partitions() == partitions.size();
  }

  GroupCoordinator service() {
    return service;
  }

  void topics(Collection<KnownTopic> topics) {
    image.update(topics);
  }

  /** Completes when the coordinator of a group knows all that {@code state} has. */
  CompletableFuture<Void> current(String group, State state) {
    return partitions.get(service.partitionFor(group)).current(state);
  }

  /** The same for all groups of some partitions. */
  CompletableFuture<Void> current(State state, IntPredicate isMeant) {
    return CompletableFuture.allOf(meant(isMeant).map(each -> each.current(state)).toArray(CompletableFuture[]::new));
  }

  /** Forgets the groups of some partitions. */
  void release(IntPredicate isMeant) {
    meant(isMeant).forEach(GroupPartition::release);
  }

  private Stream<GroupPartition> meant(IntPredicate isMeant) {
    return IntStream.range(0, partitions.size()).filter(isMeant).mapToObj(partitions::get);
  }

  @Override
  public void close() {
    service.shutdown();
    loads.shutdownNow();
    metrics.close();
  }

  private GroupPartition partition(TopicPartition place) {
    return partitions.get(place.partition());
  }

  private final class Writer implements PartitionWriter {
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
    public CompletableFuture<VerificationGuard> maybeStartTransactionVerification(TopicPartition place, String id, long producer,
        short epoch, int version) {
      return CompletableFuture.failedFuture(Errors.UNSUPPORTED_VERSION.exception());
    }

    /** Kafka deletes records here that no partition needs. A load compacts instead. */
    @Override
    public CompletableFuture<Void> deleteRecords(TopicPartition place, long before) {
      return CompletableFuture.completedFuture(null);
    }
  }

  private final class Loader implements CoordinatorLoader<CoordinatorRecord> {
    @Override
    public CompletableFuture<LoadSummary> load(TopicPartition place, CoordinatorPlayback<CoordinatorRecord> playback) {
      CompletableFuture<LoadSummary> done = new CompletableFuture<>();
      loads.execute(() -> {
        try {
          done.complete(partition(place).load(playback));
        } catch (Throwable e) {
          done.completeExceptionally(e);
        }
      });
      return done;
    }

    @Override
    public void close() {}
  }

  /** Share groups ask for the end offsets of their topics. They are not served. */
  private static final class NoOffsets implements PartitionMetadataClient {
    @Override
    public Map<TopicPartition, CompletableFuture<OffsetResponse>> listLatestOffsets(Set<TopicPartition> places) {
      Map<TopicPartition, CompletableFuture<OffsetResponse>> none = new HashMap<>();
      places
          .forEach(place -> none.put(place, CompletableFuture.completedFuture(new OffsetResponse(-1, Errors.UNKNOWN_TOPIC_OR_PARTITION))));
      return none;
    }

    @Override
    public void close() {}
  }
}
