package io.sparklog.serve.coordinator;

import io.sparklog.serve.coordinator.TopicsImage.KnownTopic;
import java.net.InetAddress;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.coordinator.group.GroupCoordinator;

/** The requests of a client of groups, which it repeats as clients do. */
final class Member {
  private static final long PATIENCE_S = 120;

  /** No session ends in a test. */
  private static final int SESSION_MS = 600_000;

  private final Groups groups;
  private final String group;

  Member(Groups groups, String group) {
    this.groups = groups;
    this.group = group;
  }

  static RequestContext context(ApiKeys key) {
    return new RequestContext(new RequestHeader(key, key.latestVersion(), "client", 0), "0", InetAddress.getLoopbackAddress(),
        KafkaPrincipal.ANONYMOUS, ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT), SecurityProtocol.PLAINTEXT,
        ClientInformation.EMPTY, false);
  }

  static <T> T await(CompletableFuture<T> future) {
    return future.orTimeout(PATIENCE_S, TimeUnit.SECONDS).join();
  }

  /** The answer to a request, which is repeated while its error is one that clients repeat. */
  <T> T ask(Function<GroupCoordinator, CompletableFuture<T>> request, Function<T, Errors> error) {
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    while (true) {
      Errors found;
      T answer = null;
      try {
        answer = await(groups.of(group).thenCompose(request));
        found = error.apply(answer);
      } catch (CompletionException e) {
        found = Errors.forException(e.getCause());
      }
      if (!(found.exception() instanceof RetriableException) || System.nanoTime() > until) {
        if (answer == null) {
          throw found.exception();
        }
        return answer;
      }
    }
  }

  /** Commits an offset of a group without members, and returns the error. */
  Errors commit(KnownTopic topic, int partition, long offset) {
    return ask(coordinator -> coordinator.commitOffsets(context(ApiKeys.OFFSET_COMMIT), commitData(topic, partition, offset),
        BufferSupplier.NO_CACHING), data -> Errors.forCode(data.topics().get(0).partitions().get(0).errorCode())).topics()
        .stream()
        .map(of -> Errors.forCode(of.partitions().get(0).errorCode()))
        .findFirst()
        .orElseThrow();
  }

  OffsetCommitRequestData commitData(KnownTopic topic, int partition, long offset) {
    return new OffsetCommitRequestData().setGroupId(group)
        .setTopics(List.of(new OffsetCommitRequestData.OffsetCommitRequestTopic().setName(topic.name())
            .setTopicId(Uuid.fromString(topic.id()))
            .setPartitions(List.of(new OffsetCommitRequestData.OffsetCommitRequestPartition().setPartitionIndex(partition)
                .setCommittedOffset(offset)
                .setCommittedMetadata("m")))));
  }

  /** Deletes the group. */
  void delete() {
    ask(coordinator -> coordinator.deleteGroups(context(ApiKeys.DELETE_GROUPS), List.of(group), BufferSupplier.NO_CACHING),
        found -> Errors.forCode(found.find(group).errorCode()));
  }

  /** The offset of the group in a partition; −1 if there is none. */
  long fetch(KnownTopic topic, int partition) {
    OffsetFetchRequestData.OffsetFetchRequestGroup wanted = new OffsetFetchRequestData.OffsetFetchRequestGroup().setGroupId(group)
        .setTopics(List.of(new OffsetFetchRequestData.OffsetFetchRequestTopics().setName(topic.name())
            .setTopicId(Uuid.fromString(topic.id()))
            .setPartitionIndexes(List.of(partition))));
    return ask(coordinator -> coordinator.fetchOffsets(context(ApiKeys.OFFSET_FETCH), wanted, true),
        found -> Errors.forCode(found.errorCode())).topics().get(0).partitions().get(0).committedOffset();
  }

  /** Asks to join a classic group, once. */
  CompletableFuture<JoinGroupResponseData> joinOnce(String id) {
    return groups.of(group).thenCompose(coordinator -> joined(coordinator, id));
  }

  private CompletableFuture<JoinGroupResponseData> joined(GroupCoordinator coordinator, String id) {
    JoinGroupRequestData data = new JoinGroupRequestData().setGroupId(group)
        .setMemberId(id)
        .setProtocolType("consumer")
        .setSessionTimeoutMs(SESSION_MS)
        .setRebalanceTimeoutMs(SESSION_MS);
    data.protocols().add(new JoinGroupRequestData.JoinGroupRequestProtocol().setName("range").setMetadata(new byte[] {0, 0}));
    return coordinator.joinGroup(context(ApiKeys.JOIN_GROUP), data, BufferSupplier.NO_CACHING);
  }

  /** Joins a classic group, and takes the partitions. @return the id of the member, and the generation */
  JoinGroupResponseData join(String id) {
    JoinGroupResponseData joined = ask(coordinator -> joined(coordinator, id), found -> Errors.forCode(found.errorCode()));
    if (joined.errorCode() == Errors.MEMBER_ID_REQUIRED.code()) {
      return join(joined.memberId());
    }
    SyncGroupResponseData synced = ask(coordinator -> coordinator.syncGroup(context(ApiKeys.SYNC_GROUP),
        new SyncGroupRequestData().setGroupId(group)
            .setMemberId(joined.memberId())
            .setGenerationId(joined.generationId())
            .setProtocolName("range")
            .setProtocolType("consumer")
            .setAssignments(List
                .of(new SyncGroupRequestData.SyncGroupRequestAssignment().setMemberId(joined.memberId()).setAssignment(new byte[] {1}))),
        BufferSupplier.NO_CACHING), found -> Errors.forCode(found.errorCode()));
    return Errors.forCode(synced.errorCode()) == Errors.NONE ? joined : new JoinGroupResponseData().setErrorCode(synced.errorCode());
  }

  /** The heartbeat of a member of the new protocol. @param epoch 0 to join */
  ConsumerGroupHeartbeatResponseData beat(String id, int epoch, String... topics) {
    ConsumerGroupHeartbeatRequestData data = new ConsumerGroupHeartbeatRequestData().setGroupId(group)
        .setMemberId(id)
        .setMemberEpoch(epoch)
        .setRebalanceTimeoutMs(30_000);
    if (epoch == 0) {
      data.setSubscribedTopicNames(List.of(topics)).setTopicPartitions(List.of());
    }
    return ask(coordinator -> coordinator.consumerGroupHeartbeat(context(ApiKeys.CONSUMER_GROUP_HEARTBEAT), data),
        found -> Errors.forCode(found.errorCode()));
  }

  /** The partitions that an answer assigns, as text. */
  static String assigned(ConsumerGroupHeartbeatResponseData answer) {
    return Optional.ofNullable(answer.assignment())
        .map(found -> found.topicPartitions().stream().map(of -> of.topicId() + ":" + of.partitions()).collect(Collectors.joining(" ")))
        .orElse("");
  }

  static List<KnownTopic> topics(int count) {
    return IntStream.range(0, count).mapToObj(i -> new KnownTopic("t" + i, Uuid.randomUuid().toString(), 4)).toList();
  }
}
