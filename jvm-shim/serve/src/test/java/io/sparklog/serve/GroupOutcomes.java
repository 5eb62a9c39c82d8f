package io.sparklog.serve;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.log.Root;
import java.util.List;
import java.util.stream.Stream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupDescribeRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.DeleteGroupsRequestData;
import org.apache.kafka.common.message.DescribeGroupsRequestData;
import org.apache.kafka.common.message.FindCoordinatorRequestData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocol;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocolCollection;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupRequestData.MemberIdentity;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestPartition;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestTopic;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestTopicCollection;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopic;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopics;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ConsumerGroupDescribeResponse;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatResponse;
import org.apache.kafka.common.requests.DeleteGroupsResponse;
import org.apache.kafka.common.requests.DescribeGroupsResponse;
import org.apache.kafka.common.requests.FindCoordinatorResponse;
import org.apache.kafka.common.requests.HeartbeatResponse;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.LeaveGroupResponse;
import org.apache.kafka.common.requests.ListGroupsResponse;
import org.apache.kafka.common.requests.OffsetCommitResponse;
import org.apache.kafka.common.requests.OffsetDeleteResponse;
import org.apache.kafka.common.requests.OffsetFetchResponse;
import org.apache.kafka.common.requests.SyncGroupResponse;

/** Outcomes of the requests about groups. The topic {@code t} has 3 partitions. */
final class GroupOutcomes {
  private static final String GROUP = "outcomes";

  private GroupOutcomes() {}

  static List<Outcome> all(Root root) {
    Uuid id = Uuid.fromString(root.state("t").topicId());
    return Stream.of(coordinators(), members(), offsets(id), lists()).flatMap(List::stream).toList();
  }

  private static void error(Errors expected, short code) {
    assertEquals(expected, Errors.forCode(code));
  }

  private static List<Outcome> coordinators() {
    return List.of(Outcome.<FindCoordinatorResponse>of("a group", ApiKeys.FIND_COORDINATOR, new FindCoordinatorRequestData().setKey(GROUP),
        (answer, version) -> {
          error(Errors.NONE, answer.data().errorCode());
          assertTrue(answer.data().port() > 0);
        }).to(3), Outcome.<FindCoordinatorResponse>of("groups", ApiKeys.FIND_COORDINATOR,
            new FindCoordinatorRequestData().setCoordinatorKeys(List.of(GROUP, "other")), (answer, version) -> {
              assertEquals(2, answer.data().coordinators().size());
              answer.data().coordinators().forEach(each -> error(Errors.NONE, each.errorCode()));
            }).from(4),
        Outcome.<FindCoordinatorResponse>of("a transactional id", ApiKeys.FIND_COORDINATOR,
            new FindCoordinatorRequestData().setKey("x").setKeyType((byte) 1),
            (answer, version) -> error(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, answer.data().errorCode())).from(1).to(3),
        Outcome
            .<FindCoordinatorResponse>of("transactional ids", ApiKeys.FIND_COORDINATOR,
                new FindCoordinatorRequestData().setCoordinatorKeys(List.of("x")).setKeyType((byte) 1),
                (answer, version) -> error(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, answer.data().coordinators().get(0).errorCode()))
            .from(4),
        Outcome
            .<FindCoordinatorResponse>of("a share group", ApiKeys.FIND_COORDINATOR,
                new FindCoordinatorRequestData().setCoordinatorKeys(List.of("g:" + new Uuid(1, 2) + ":0")).setKeyType((byte) 2),
                (answer, version) -> error(Errors.INVALID_REQUEST, answer.data().coordinators().get(0).errorCode()))
            .from(6));
  }

  private static JoinGroupRequestData join(String group, String member) {
    JoinGroupRequestProtocolCollection protocols = new JoinGroupRequestProtocolCollection();
    protocols.add(new JoinGroupRequestProtocol().setName("range").setMetadata(new byte[] {0, 0}));
    return new JoinGroupRequestData().setGroupId(group)
        .setMemberId(member)
        .setProtocolType("consumer")
        .setSessionTimeoutMs(10_000)
        .setRebalanceTimeoutMs(100)
        .setProtocols(protocols);
  }

  private static List<Outcome> members() {
    return List.of(Outcome.<JoinGroupResponse>of("a new member", ApiKeys.JOIN_GROUP, join("joined", ""), (answer, version) -> {
      error(version < 4 ? Errors.NONE : Errors.MEMBER_ID_REQUIRED, answer.data().errorCode());
      assertFalse(answer.data().memberId().isEmpty());
    }), Outcome.<JoinGroupResponse>of("an unknown member", ApiKeys.JOIN_GROUP, join(GROUP, "unknown"),
        (answer, version) -> error(Errors.UNKNOWN_MEMBER_ID, answer.data().errorCode())),
        Outcome.<JoinGroupResponse>of("a session that is too short", ApiKeys.JOIN_GROUP, join(GROUP, "").setSessionTimeoutMs(1),
            (answer, version) -> error(Errors.INVALID_SESSION_TIMEOUT, answer.data().errorCode())),
        Outcome.<JoinGroupResponse>of("a group without a name", ApiKeys.JOIN_GROUP, join("", ""),
            (answer, version) -> error(Errors.INVALID_GROUP_ID, answer.data().errorCode())),
        Outcome.<SyncGroupResponse>of("an unknown member", ApiKeys.SYNC_GROUP,
            new SyncGroupRequestData().setGroupId(GROUP).setMemberId("unknown").setProtocolType("consumer").setProtocolName("range"),
            (answer, version) -> error(Errors.UNKNOWN_MEMBER_ID, answer.data().errorCode())),
        Outcome
            .<SyncGroupResponse>of("no protocol", ApiKeys.SYNC_GROUP, new SyncGroupRequestData().setGroupId(GROUP).setMemberId("m"),
                (answer, version) -> error(Errors.INCONSISTENT_GROUP_PROTOCOL, answer.data().errorCode()))
            .from(5),
        Outcome.<HeartbeatResponse>of("an unknown member", ApiKeys.HEARTBEAT,
            new HeartbeatRequestData().setGroupId(GROUP).setMemberId("unknown"),
            (answer, version) -> error(Errors.UNKNOWN_MEMBER_ID, answer.data().errorCode())),
        Outcome
            .<LeaveGroupResponse>of("an unknown member", ApiKeys.LEAVE_GROUP,
                new LeaveGroupRequestData().setGroupId(GROUP).setMemberId("unknown"),
                (answer, version) -> error(Errors.UNKNOWN_MEMBER_ID, answer.data().errorCode()))
            .to(2),
        Outcome
            .<LeaveGroupResponse>of("unknown members", ApiKeys.LEAVE_GROUP,
                new LeaveGroupRequestData().setGroupId(GROUP).setMembers(List.of(new MemberIdentity().setMemberId("unknown"))),
                (answer, version) -> error(Errors.UNKNOWN_MEMBER_ID, answer.data().members().get(0).errorCode()))
            .from(3),
        Outcome.<ConsumerGroupHeartbeatResponse>of("a new member", ApiKeys.CONSUMER_GROUP_HEARTBEAT,
            beat(0).setSubscribedTopicNames(List.of("t")).setTopicPartitions(List.of()), (answer, version) -> {
              error(Errors.NONE, answer.data().errorCode());
              assertEquals(3, answer.data().assignment().topicPartitions().get(0).partitions().size());
            }),
        Outcome.<ConsumerGroupHeartbeatResponse>of("an unknown member", ApiKeys.CONSUMER_GROUP_HEARTBEAT, beat(7).setMemberId("unknown"),
            (answer, version) -> error(Errors.UNKNOWN_MEMBER_ID, answer.data().errorCode())),
        Outcome.<ConsumerGroupHeartbeatResponse>of("an invalid request", ApiKeys.CONSUMER_GROUP_HEARTBEAT, beat(0).setGroupId(""),
            (answer, version) -> error(Errors.INVALID_REQUEST, answer.data().errorCode())));
  }

  private static ConsumerGroupHeartbeatRequestData beat(int epoch) {
    return new ConsumerGroupHeartbeatRequestData().setGroupId("consumers")
        .setMemberId("AAAAAAAAAAAAAAAAAAAAAw")
        .setMemberEpoch(epoch)
        .setRebalanceTimeoutMs(10_000);
  }

  private static OffsetCommitRequestData commit(OffsetCommitRequestTopic topic, int partition) {
    topic.setPartitions(
        List.of(new OffsetCommitRequestPartition().setPartitionIndex(partition).setCommittedOffset(2).setCommittedMetadata("m")));
    return new OffsetCommitRequestData().setGroupId("offsets").setTopics(List.of(topic));
  }

  private static List<Outcome> offsets(Uuid id) {
    Uuid unknown = new Uuid(1, 2);
    return List.of(Outcome.<OffsetCommitResponse>of("a name", ApiKeys.OFFSET_COMMIT, commit(new OffsetCommitRequestTopic().setName("t"), 1),
        (answer, version) -> {
          error(Errors.NONE, answer.data().topics().get(0).partitions().get(0).errorCode());
          assertEquals("t", answer.data().topics().get(0).name());
        }).to(9), Outcome.<OffsetCommitResponse>of("an id", ApiKeys.OFFSET_COMMIT, commit(new OffsetCommitRequestTopic().setTopicId(id), 1),
            (answer, version) -> {
              error(Errors.NONE, answer.data().topics().get(0).partitions().get(0).errorCode());
              assertEquals(id, answer.data().topics().get(0).topicId());
            }).from(10),
        Outcome.<OffsetCommitResponse>of("an unknown name", ApiKeys.OFFSET_COMMIT,
            commit(new OffsetCommitRequestTopic().setName("absent"), 1),
            (answer, version) -> error(Errors.UNKNOWN_TOPIC_OR_PARTITION, answer.data().topics().get(0).partitions().get(0).errorCode()))
            .to(9),
        Outcome
            .<OffsetCommitResponse>of("an unknown partition", ApiKeys.OFFSET_COMMIT,
                commit(new OffsetCommitRequestTopic().setName("t"), 99),
                (answer, version) -> error(Errors.UNKNOWN_TOPIC_OR_PARTITION,
                    answer.data().topics().get(0).partitions().get(0).errorCode()))
            .to(9),
        Outcome
            .<OffsetCommitResponse>of("an unknown id", ApiKeys.OFFSET_COMMIT, commit(new OffsetCommitRequestTopic().setTopicId(unknown), 1),
                (answer, version) -> error(Errors.UNKNOWN_TOPIC_ID, answer.data().topics().get(0).partitions().get(0).errorCode()))
            .from(10),
        Outcome
            .<OffsetCommitResponse>of("metadata that is too large", ApiKeys.OFFSET_COMMIT, tooLarge(),
                (answer, version) -> error(Errors.OFFSET_METADATA_TOO_LARGE, answer.data().topics().get(0).partitions().get(0).errorCode()))
            .to(9),
        Outcome
            .<OffsetFetchResponse>of("a name", ApiKeys.OFFSET_FETCH,
                new OffsetFetchRequestData().setGroupId("offsets")
                    .setTopics(List.of(new OffsetFetchRequestTopic().setName("t").setPartitionIndexes(List.of(0, 1)))),
                (answer, version) -> {
                  assertEquals(-1, answer.data().topics().get(0).partitions().get(0).committedOffset());
                  assertEquals(2, answer.data().topics().get(0).partitions().get(1).committedOffset());
                })
            .from(1)
            .to(7),
        Outcome
            .<OffsetFetchResponse>of("an unknown name", ApiKeys.OFFSET_FETCH,
                new OffsetFetchRequestData().setGroupId("offsets")
                    .setTopics(List.of(new OffsetFetchRequestTopic().setName("absent").setPartitionIndexes(List.of(0)))),
                (answer, version) -> {
                  error(Errors.NONE, answer.data().topics().get(0).partitions().get(0).errorCode());
                  assertEquals(-1, answer.data().topics().get(0).partitions().get(0).committedOffset());
                })
            .from(1)
            .to(7),
        Outcome
            .<OffsetFetchResponse>of("all topics", ApiKeys.OFFSET_FETCH, new OffsetFetchRequestData().setGroupId("offsets").setTopics(null),
                (answer, version) -> assertEquals("t", answer.data().topics().get(0).name()))
            .from(2)
            .to(7),
        Outcome.<OffsetFetchResponse>of("groups", ApiKeys.OFFSET_FETCH, fetch(new OffsetFetchRequestTopics().setName("t")),
            (answer, version) -> {
              assertEquals(2, answer.data().groups().size());
              assertEquals(2, answer.data().groups().get(0).topics().get(0).partitions().get(1).committedOffset());
              assertEquals("t", answer.data().groups().get(1).topics().get(0).name());
            }).from(8).to(9),
        Outcome.<OffsetFetchResponse>of("an id", ApiKeys.OFFSET_FETCH, fetch(new OffsetFetchRequestTopics().setTopicId(id)),
            (answer, version) -> {
              assertEquals(2, answer.data().groups().get(0).topics().get(0).partitions().get(1).committedOffset());
              answer.data().groups().forEach(group -> assertEquals(id, group.topics().get(0).topicId()));
            }).from(10),
        Outcome.<OffsetFetchResponse>of("an unknown id", ApiKeys.OFFSET_FETCH, fetch(new OffsetFetchRequestTopics().setTopicId(unknown)),
            (answer, version) -> error(Errors.UNKNOWN_TOPIC_ID,
                answer.data().groups().get(0).topics().get(0).partitions().get(0).errorCode()))
            .from(10),
        Outcome.<OffsetDeleteResponse>of("a partition", ApiKeys.OFFSET_DELETE, delete("deleting", "t"),
            (answer, version) -> error(Errors.GROUP_ID_NOT_FOUND, answer.data().errorCode())),
        Outcome.<OffsetDeleteResponse>of("an unknown name", ApiKeys.OFFSET_DELETE, delete("offsets", "absent"), (answer,
            version) -> error(Errors.UNKNOWN_TOPIC_OR_PARTITION, answer.data().topics().find("absent").partitions().find(0).errorCode())));
  }

  private static OffsetCommitRequestData tooLarge() {
    OffsetCommitRequestData data = commit(new OffsetCommitRequestTopic().setName("t"), 1);
    data.topics().get(0).partitions().get(0).setCommittedMetadata("m".repeat(5000));
    return data;
  }

  /** One group for these partitions, and for all. */
  private static OffsetFetchRequestData fetch(OffsetFetchRequestTopics topic) {
    topic.setPartitionIndexes(List.of(0, 1));
    return new OffsetFetchRequestData().setGroups(List.of(new OffsetFetchRequestGroup().setGroupId("offsets").setTopics(List.of(topic)),
        new OffsetFetchRequestGroup().setGroupId("offsets").setTopics(null)));
  }

  private static OffsetDeleteRequestData delete(String group, String topic) {
    OffsetDeleteRequestTopicCollection topics = new OffsetDeleteRequestTopicCollection();
    topics
        .add(new OffsetDeleteRequestTopic().setName(topic).setPartitions(List.of(new OffsetDeleteRequestPartition().setPartitionIndex(0))));
    return new OffsetDeleteRequestData().setGroupId(group).setTopics(topics);
  }

  private static List<Outcome> lists() {
    return List.of(Outcome.<ListGroupsResponse>of("all groups", ApiKeys.LIST_GROUPS, new ListGroupsRequestData(), (answer, version) -> {
      error(Errors.NONE, answer.data().errorCode());
      var group = answer.data().groups().stream().filter(each -> each.groupId().equals("offsets")).findAny().orElseThrow();
      assertEquals(version < 4 ? "" : "Empty", group.groupState());
    }), Outcome
        .<ListGroupsResponse>of("groups in a state", ApiKeys.LIST_GROUPS,
            new ListGroupsRequestData().setStatesFilter(List.of("PreparingRebalance")),
            (answer, version) -> assertTrue(answer.data().groups().stream().noneMatch(each -> each.groupId().equals("offsets"))))
        .from(4),
        Outcome.<DescribeGroupsResponse>of("an unknown group", ApiKeys.DESCRIBE_GROUPS,
            new DescribeGroupsRequestData().setGroups(List.of("absent", "offsets")), (answer, version) -> {
              error(version < 6 ? Errors.NONE : Errors.GROUP_ID_NOT_FOUND, answer.data().groups().get(0).errorCode());
              assertEquals("Dead", answer.data().groups().get(0).groupState());
              assertEquals("Empty", answer.data().groups().get(1).groupState());
            }),
        Outcome.<ConsumerGroupDescribeResponse>of("an unknown group", ApiKeys.CONSUMER_GROUP_DESCRIBE,
            new ConsumerGroupDescribeRequestData().setGroupIds(List.of("absent")),
            (answer, version) -> error(Errors.GROUP_ID_NOT_FOUND, answer.data().groups().get(0).errorCode())),
        Outcome.<ConsumerGroupDescribeResponse>of("a group", ApiKeys.CONSUMER_GROUP_DESCRIBE,
            new ConsumerGroupDescribeRequestData().setGroupIds(List.of("consumers")), (answer, version) -> {
              error(Errors.NONE, answer.data().groups().get(0).errorCode());
              assertEquals("t", answer.data().groups().get(0).members().get(0).subscribedTopicNames().get(0));
            }),
        Outcome.<DeleteGroupsResponse>of("an unknown group", ApiKeys.DELETE_GROUPS,
            new DeleteGroupsRequestData().setGroupsNames(List.of("absent", "consumers")), (answer, version) -> {
              error(Errors.GROUP_ID_NOT_FOUND, answer.data().results().find("absent").errorCode());
              error(Errors.NON_EMPTY_GROUP, answer.data().results().find("consumers").errorCode());
            }));
  }
}
