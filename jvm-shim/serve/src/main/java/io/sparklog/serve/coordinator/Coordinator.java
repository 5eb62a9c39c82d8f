package io.sparklog.serve.coordinator;

import com.yammer.metrics.core.MetricsRegistry;
import io.sparklog.commits.TopicWriters;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.serve.coordinator.TopicsImage.KnownTopic;
import io.sparklog.spec.Warnings;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.GroupCoordinatorService;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordType;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorRuntimeMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.server.share.persister.NoOpStatePersister;
import org.apache.kafka.server.util.PartitionMetadataClient;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.SystemTimerReaper;

/** Kafka's coordinator of groups over the partitions of one topic id. */
final class Coordinator implements AutoCloseable, CoordinatorPartition.CoordinatorKind {
  private final String location;
  private final RecordMemory memory;
  private final GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
  private final Metrics metrics = new Metrics();
  private final CoordinatorTopic topic;
  private final GroupCoordinatorService service;
  private final TopicsImage image;

  /** @param settings by Kafka's names; others are ignored */
  Coordinator(Root root, State state, TopicWriters writers, int nodeId, Map<String, Object> settings, int recordsMin, RecordMemory memory) {
    this.location = root.location();
    this.memory = memory;
    topic = new CoordinatorTopic(root, state, writers, this, memory, recordsMin);
    GroupCoordinatorConfig config = GroupCoordinatorConfig.fromProps(settings);
    service = new GroupCoordinatorService.Builder(nodeId, config).withTime(Time.SYSTEM)
        .withTimer(new SystemTimerReaper("group-timer", new SystemTimer("group")))
        .withLoader(topic)
        .withWriter(topic)
        .withCoordinatorRuntimeMetrics(new GroupCoordinatorRuntimeMetrics(metrics))
        .withGroupCoordinatorMetrics(new GroupCoordinatorMetrics(new MetricsRegistry(), metrics))
        .withGroupConfigManager(new GroupConfigManager(Map.of(), config, ShareGroupConfig.fromProps(Map.of())))
        .withPersister(new NoOpStatePersister())
        .withAuthorizerPlugin(Optional.empty())
        .withPartitionMetadataClient(new NoOffsets())
        .build();
    service.startup(topic::size);
    image = new TopicsImage(service);
  }

  CoordinatorTopic topic() {
    return topic;
  }

  GroupCoordinator service() {
    return service;
  }

  void topics(Collection<KnownTopic> topics) {
    image.update(topics);
  }

  @Override
  public void close() {
    service.shutdown();
    metrics.close();
  }

  @Override
  public void onElection(int partition, int epoch) {
    service.onElection(partition, epoch);
  }

  @Override
  public void onResignation(int partition, OptionalInt epoch) {
    service.onResignation(partition, epoch);
  }

  @Override
  public CoordinatorRecord deserialize(ByteBuffer key, ByteBuffer value) {
    return serde.deserialize(key, value);
  }

  @Override
  public String kind() {
    return "group";
  }

  /** INVALID_COMMIT_OFFSET_SIZE for positions, and GROUP_MAX_SIZE_REACHED for other records. */
  @Override
  public RuntimeException noRoom(MemoryRecords records) {
    String text = "the groups of this server take " + memory.bytes() + " bytes of memory, and may take " + memory.limit()
        + ": delete groups or positions that no client needs, or raise " + Groups.BYTES_MAX;
    Warnings.seldom(Coordinator.class, location, "records of groups under {} are refused: {}", location, text);
    boolean isOfPositions = true;
    for (Record record : records.records()) {
      short type = record.key().getShort(record.key().position());
      isOfPositions &= type == CoordinatorRecordType.OFFSET_COMMIT.id() || type == CoordinatorRecordType.LEGACY_OFFSET_COMMIT.id();
    }
    return (isOfPositions ? Errors.INVALID_COMMIT_OFFSET_SIZE : Errors.GROUP_MAX_SIZE_REACHED).exception(text);
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
