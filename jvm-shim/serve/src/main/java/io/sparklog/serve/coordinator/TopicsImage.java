package io.sparklog.serve.coordinator;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

/** The topics of the root in the form for Kafka's coordinator, which shares their partitions out and drops offsets of deleted topics. */
final class TopicsImage {
  /** Kafka's id of a folder of logs if none was chosen. */
  private static final Uuid NO_FOLDER = Uuid.fromString("AAAAAAAAAAAAAAAAAAAAAQ");

  /**
   * A topic of the root, whose partitions members share.
   *
   * @param id as the format writes it, which is Kafka's form too
   */
  record KnownTopic(String name, String id, int partitions) {}

  private final GroupCoordinator service;
  private final Map<String, KnownTopic> known = new HashMap<>();
  private MetadataImage image = MetadataImage.EMPTY;
  private long changes;

  TopicsImage(GroupCoordinator service) {
    this.service = service;
  }

  /** @param topics all topics that exist now */
  synchronized void update(Collection<KnownTopic> topics) {
    Map<String, KnownTopic> now = new HashMap<>();
    topics.forEach(topic -> now.put(topic.name(), topic));
    if (now.equals(known)) {
      return;
    }
    MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
    for (KnownTopic before : List.copyOf(known.values())) {
      KnownTopic after = now.get(before.name());
      if (after == null || !after.id().equals(before.id())) {
        delta.replay(new RemoveTopicRecord().setTopicId(Uuid.fromString(before.id())));
        known.remove(before.name());
      }
    }
    now.values().forEach(topic -> add(topic, delta));
    known.putAll(now);
    image = delta.apply(new MetadataProvenance(++changes, 1, System.currentTimeMillis(), true));
    service.onMetadataUpdate(delta, image);
  }

  private void add(KnownTopic topic, MetadataDelta delta) {
    Uuid id = Uuid.fromString(topic.id());
    KnownTopic before = known.get(topic.name());
    if (before == null) {
      delta.replay(new TopicRecord().setName(topic.name()).setTopicId(id));
    }
    for (int partition = before == null ? 0 : before.partitions(); partition < topic.partitions(); partition++) {
      delta.replay(new PartitionRecord().setTopicId(id)
          .setPartitionId(partition)
          .setReplicas(List.of(1))
          .setIsr(List.of(1))
          .setLeader(1)
          .setLeaderEpoch(0)
          .setPartitionEpoch(0)
          .setDirectories(List.of(NO_FOLDER)));
    }
  }
}
