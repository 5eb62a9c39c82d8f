package io.sparklog.serve.coordinator;

import io.sparklog.log.State;
import io.sparklog.serve.metrics.Metrics.Sample;
import io.sparklog.serve.metrics.Metrics;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.security.Rights;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.ListGroupsResponseData.ListedGroup;
import org.apache.kafka.common.message.ListGroupsResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponsePartitions;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseTopics;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/** The topics of a root and the positions of its groups as metrics, with the names that {@code sparklog metrics} has for them. */
public final class GroupMetrics {
  private static final String HOME = "topic";
  private static final long ANSWER_S = 10;

  /** How long the numbers of one snapshot serve the metrics of one text, in nanoseconds. */
  private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final GroupRequests requests;
  private Snapshot snapshot;

  /** The numbers at a moment. */
  private record Snapshot(long nanos, SortedMap<String, State> topics, List<Position> positions, List<Sample> unreadable) {}

  /** The position of a group in a partition. @param offset −1 without a position */
  private record Position(String group, State state, int partition, long offset) {
    Sample sample(double value) {
      return Sample.of(value, group, HOME, state.topic(), Integer.toString(partition));
    }

    /** The records that the group has not read. Expired records do not count. */
    long lag() {
      return Math.max(0, state.end(partition) - Math.max(offset, state.start(partition)));
    }
  }

  /** Declares the metrics. */
  public GroupMetrics(Metrics metrics, GroupRequests requests) {
    this.requests = requests;
    List<String> ofPartition = List.of("topic", "partition");
    List<String> ofGroup = List.of("group", "home", "topic", "partition");
    metrics.gauge("partlog_topic_version", "Newest version. Its rate is the rate of commits.", List.of("topic"),
        () -> snapshot().topics.values().stream().map(state -> Sample.of(state.version(), state.topic())).toList());
    metrics.gauge("partlog_partition_end_offset", "End offset. Its rate is the rate of written records.", ofPartition, this::ends);
    metrics.gauge("partlog_group_partition_offset", "Committed position of a group.", ofGroup,
        () -> snapshot().positions.stream().filter(each -> each.offset >= 0).map(each -> each.sample(each.offset)).toList());
    metrics.gauge("partlog_group_partition_lag", "Records that a group has not read; without a position, all records.", ofGroup,
        () -> snapshot().positions.stream().map(each -> each.sample(each.lag())).toList());
    metrics.gauge("partlog_unreadable", "1 if the root or its groups cannot be read, with the error.", List.of("kind", "name", "condition"),
        () -> snapshot().unreadable);
  }

  private List<Sample> ends() {
    List<Sample> samples = new ArrayList<>();
    for (State state : snapshot().topics.values()) {
      for (int p = 0; p < state.partitions(); p++) {
        samples.add(Sample.of(state.end(p), state.topic(), Integer.toString(p)));
      }
    }
    return samples;
  }

  private synchronized Snapshot snapshot() {
    if (snapshot == null || System.nanoTime() - snapshot.nanos >= FRESH_NANOS) {
      SortedMap<String, State> topics = new TreeMap<>();
      try {
        topics = requests.topics().all();
        snapshot = new Snapshot(System.nanoTime(), topics, positions(topics), List.of());
      } catch (PartlogException e) {
        snapshot = new Snapshot(System.nanoTime(), topics, List.of(),
            List.of(Sample.of(1, "root", requests.topics().root().location(), e.condition())));
      } catch (Exception e) {
        Throwable cause = e.getCause() == null ? e : e.getCause();
        Warnings.warn(GroupMetrics.class, "the groups cannot be told now", cause);
        snapshot = new Snapshot(System.nanoTime(), topics, List.of(),
            List.of(Sample.of(1, "groups", Rights.OFFSETS_TOPIC, KafkaErrors.of(cause).name())));
      }
    }
    return snapshot;
  }

  private List<Position> positions(Map<String, State> topics) throws Exception {
    RequestContext context = context();
    List<ListedGroup> groups = answer(
        requests.askAll(coordinator -> coordinator.listGroups(context, new ListGroupsRequestData()), new ListGroupsResponseData()))
        .groups();
    List<CompletableFuture<OffsetFetchResponseGroup>> answers = groups.stream().map(group -> {
      OffsetFetchRequestGroup all = new OffsetFetchRequestGroup().setGroupId(group.groupId()).setTopics(null);
      return requests.ask(group.groupId(), coordinator -> coordinator.fetchOffsets(context, all, false));
    }).toList();
    List<Position> found = new ArrayList<>();
    for (CompletableFuture<OffsetFetchResponseGroup> each : answers) {
      OffsetFetchResponseGroup group = answer(each);
      for (OffsetFetchResponseTopics topic : group.topics()) {
        State state = topics.get(topic.name());
        if (state != null) {
          found.addAll(positions(group.groupId(), state, topic.partitions()));
        }
      }
    }
    return found;
  }

  private static List<Position> positions(String group, State state, List<OffsetFetchResponsePartitions> answered) {
    Map<Integer, Long> offsets = new HashMap<>();
    answered.forEach(each -> offsets.put(each.partitionIndex(), each.committedOffset()));
    List<Position> positions = new ArrayList<>();
    for (int p = 0; p < state.partitions(); p++) {
      positions.add(new Position(group, state, p, offsets.getOrDefault(p, -1L)));
    }
    return positions;
  }

  private static <T> T answer(CompletableFuture<T> asked) throws Exception {
    return asked.get(ANSWER_S, TimeUnit.SECONDS);
  }

  /** The coordinator wants the circumstances of a request. */
  private static RequestContext context() {
    return new RequestContext(new RequestHeader(ApiKeys.OFFSET_FETCH, ApiKeys.OFFSET_FETCH.latestVersion(), "metrics", 0), "metrics", null,
        KafkaPrincipal.ANONYMOUS, ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT), SecurityProtocol.PLAINTEXT,
        ClientInformation.EMPTY, false);
  }
}
