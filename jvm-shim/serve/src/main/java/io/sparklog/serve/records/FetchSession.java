package io.sparklog.serve.records;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchRequestData.FetchPartition;
import org.apache.kafka.common.message.FetchRequestData.FetchTopic;
import org.apache.kafka.common.message.FetchRequestData.ForgottenTopic;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData.PartitionData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchResponse;

/**
 * The partitions that a client reads, and the offsets that the server told the client. Each further request names the partitions that the
 * client changed since the last request, and the answer has the partitions with something new. KIP-227. For several threads at once.
 */
final class FetchSession {
  private final int id;
  private final boolean byId;

  /** In the order in which they are read: a partition that has given records goes to the end, so that each has its turn. */
  private final Map<PartitionName, SessionPartition> lines = new LinkedHashMap<>();
  private int epoch = FetchMetadata.nextEpoch(FetchMetadata.INITIAL_EPOCH);

  /** A partition by the name or the id of its topic. */
  record PartitionName(String topic, Uuid id, int partition) {}

  /** A partition as the client asks for it, with the offsets that the client knows. This object belongs to one request at a time. */
  private static final class SessionPartition {
    FetchPartition asked;
    long toldEnd = -1;
    long toldStart = -1;

    SessionPartition(FetchPartition asked) {
      this.asked = asked;
    }
  }

  /** @param byId whether requests name topics by their id */
  FetchSession(int id, boolean byId) {
    this.id = id;
    this.byId = byId;
  }

  int id() {
    return id;
  }

  synchronized int size() {
    return lines.size();
  }

  /** The most partitions that there are while a request makes its changes. */
  synchronized int sizeWith(FetchRequestData request) {
    int size = lines.size();
    for (FetchTopic topic : request.topics()) {
      for (FetchPartition partition : topic.partitions()) {
        size += lines.containsKey(place(topic, partition)) ? 0 : 1;
      }
    }
    return size;
  }

  private static PartitionName place(FetchTopic topic, FetchPartition partition) {
    return new PartitionName(topic.topic(), topic.topicId(), partition.partition());
  }

  /**
   * Takes the changes that a request makes. The order of requests of a session is the order of their epochs.
   *
   * @param asksById whether the request names topics by their id
   * @throws org.apache.kafka.common.errors.ApiException if the request does not follow the last request of the session
   */
  synchronized void follow(FetchRequestData request, boolean asksById) {
    if (request.sessionEpoch() != epoch) {
      throw Errors.INVALID_FETCH_SESSION_EPOCH
          .exception("Session " + id + " is at epoch " + epoch + ", and not at " + request.sessionEpoch() + ".");
    }
    if (byId != asksById) {
      throw Errors.FETCH_SESSION_TOPIC_ID_ERROR.exception("Session " + id + " names topics in the other way, by name or by id.");
    }
    epoch = FetchMetadata.nextEpoch(epoch);
    add(request);
    for (ForgottenTopic topic : request.forgottenTopicsData()) {
      topic.partitions().forEach(partition -> lines.remove(new PartitionName(topic.topic(), topic.topicId(), partition)));
    }
  }

  /** Adds the partitions of a request, or changes them. */
  synchronized void add(FetchRequestData request) {
    for (FetchTopic topic : request.topics()) {
      for (FetchPartition partition : topic.partitions()) {
        PartitionName place = place(topic, partition);
        SessionPartition known = lines.get(place);
        if (known == null) {
          lines.put(place, new SessionPartition(kept(partition)));
        } else {
          known.asked = kept(partition);
        }
      }
    }
  }

  /** The fields that a fetch uses. A request may have unknown fields of any size, which nothing must keep. */
  private static FetchPartition kept(FetchPartition asked) {
    return new FetchPartition().setPartition(asked.partition())
        .setCurrentLeaderEpoch(asked.currentLeaderEpoch())
        .setFetchOffset(asked.fetchOffset())
        .setPartitionMaxBytes(asked.partitionMaxBytes());
  }

  /** All partitions, in the order in which they are to be read. */
  synchronized List<FetchTopic> partitions() {
    List<FetchTopic> topics = new ArrayList<>();
    FetchTopic last = null;
    for (Map.Entry<PartitionName, SessionPartition> each : lines.entrySet()) {
      PartitionName place = each.getKey();
      if (last == null || !last.topic().equals(place.topic) || !last.topicId().equals(place.id)) {
        last = new FetchTopic().setTopic(place.topic).setTopicId(place.id);
        topics.add(last);
      }
      last.partitions().add(each.getValue().asked);
    }
    return topics;
  }

  /** Whether an answer has something that the client does not know. The client knows it from now on. */
  synchronized boolean tells(PartitionName place, PartitionData data) {
    SessionPartition line = lines.get(place);
    if (line == null) {
      return true; // A later request has forgotten it.
    }
    boolean isFault = data.errorCode() != Errors.NONE.code();
    boolean isNew = data.highWatermark() != line.toldEnd || data.logStartOffset() != line.toldStart;
    boolean hasRecords = FetchResponse.recordsSize(data) > 0;
    // After a fault the answer has the partition in any case, to show that the fault is over.
    line.toldEnd = isFault ? -1 : data.highWatermark();
    line.toldStart = isFault ? -1 : data.logStartOffset();
    if (hasRecords) {
      lines.remove(place);
      lines.put(place, line);
    }
    return isFault || isNew || hasRecords;
  }
}
