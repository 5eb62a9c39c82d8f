package io.sparklog.serve;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.WrittenTopic;
import io.sparklog.serve.members.Address;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.ConsumerGroupDescribeRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.DeleteGroupsRequestData;
import org.apache.kafka.common.message.DescribeConfigsRequestData.DescribeConfigsResource;
import org.apache.kafka.common.message.DescribeConfigsRequestData;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResourceResult;
import org.apache.kafka.common.message.DescribeGroupsRequestData;
import org.apache.kafka.common.message.DescribeGroupsResponseData.DescribedGroup;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocol;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocolCollection;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData.SyncGroupRequestAssignment;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ConsumerGroupDescribeResponse;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatResponse;
import org.apache.kafka.common.requests.DeleteGroupsResponse;
import org.apache.kafka.common.requests.DescribeConfigsResponse;
import org.apache.kafka.common.requests.DescribeGroupsResponse;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.OffsetCommitResponse;
import org.apache.kafka.common.requests.SyncGroupResponse;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The clients of a listener that shows a part of the topics learn nothing of the other topics, and of other listeners. */
final class PrefixesTest {
  @TempDir
  static Path folder;

  private static RootServer server;
  private static Address all;
  private static Address part;

  @BeforeAll
  static void open() throws IOException {
    new WrittenTopic(folder.resolve("root"), "open").segment(0, 3, 4).commit();
    new WrittenTopic(folder.resolve("root"), "closed").segment(0, 3, 4).commit();
    server = new RootServer(ServeConfig.of(folder.resolve("root").toString(), "listeners=ALL://127.0.0.1:0,PART://127.0.0.1:0",
        "listener.security.protocol.map=ALL:PLAINTEXT,PART:PLAINTEXT", "listener.name.part.topic.prefixes=open"));
    all = address("ALL");
    part = address("PART");
  }

  private static Address address(String listener) {
    Matcher found = Pattern.compile(listener + "://(127\\.0\\.0\\.1):([0-9]+)").matcher(server.listeners());
    assertTrue(found.find());
    return new Address(found.group(1), Integer.parseInt(found.group(2)));
  }

  @AfterAll
  static void close() {
    server.close();
  }

  @Test
  void aListenerTellsItsOwnAddressAlone() throws IOException {
    DescribeConfigsRequestData request = new DescribeConfigsRequestData().setResources(List
        .of(new DescribeConfigsResource().setResourceType(ConfigResource.Type.BROKER.id()).setResourceName("").setConfigurationKeys(null)));
    try (RawClient client = new RawClient(part)) {
      DescribeConfigsResponse answer = client.ask(ApiKeys.DESCRIBE_CONFIGS, 4, request);
      List<String> values = answer.data().results().get(0).configs().stream().map(DescribeConfigsResourceResult::value).toList();
      assertTrue(values.contains("PART://" + part));
      assertFalse(values.stream().anyMatch(value -> value.contains("ALL:") || value.contains(Integer.toString(all.port()))),
          values::toString);
    }
  }

  private static Errors delete(Address from, String group) throws IOException {
    try (RawClient client = new RawClient(from)) {
      DeleteGroupsResponse answer = client.ask(ApiKeys.DELETE_GROUPS, 2, new DeleteGroupsRequestData().setGroupsNames(List.of(group)));
      return Errors.forCode(answer.data().results().find(group).errorCode());
    }
  }

  private static void commit(String group, String topic) throws IOException {
    OffsetCommitRequestPartition partition = new OffsetCommitRequestPartition().setPartitionIndex(0).setCommittedOffset(1);
    OffsetCommitRequestData request = new OffsetCommitRequestData().setGroupId(group)
        .setTopics(List.of(new OffsetCommitRequestTopic().setName(topic).setPartitions(List.of(partition))));
    try (RawClient client = new RawClient(all)) {
      OffsetCommitResponse answer = client.ask(ApiKeys.OFFSET_COMMIT, 8, request);
      assertEquals(Errors.NONE.code(), answer.data().topics().get(0).partitions().get(0).errorCode());
    }
  }

  @Test
  void positionsInHiddenTopicsAreNotDeletedWithTheirGroup() throws IOException {
    commit("hidden", "closed");
    commit("shown", "open");
    assertEquals(Errors.GROUP_AUTHORIZATION_FAILED, delete(part, "hidden"));
    assertEquals(Errors.NONE, delete(part, "shown"));
    assertEquals(Errors.NONE, delete(all, "hidden"));
  }

  private static ConsumerGroupHeartbeatRequestData heartbeat(String group) {
    return new ConsumerGroupHeartbeatRequestData().setGroupId(group)
        .setMemberId(Uuid.randomUuid().toString())
        .setMemberEpoch(0)
        .setRebalanceTimeoutMs(60_000)
        .setTopicPartitions(List.of());
  }

  private static Errors join(Address at, ConsumerGroupHeartbeatRequestData request) throws IOException {
    try (RawClient client = new RawClient(at)) {
      ConsumerGroupHeartbeatResponse answer = client.ask(ApiKeys.CONSUMER_GROUP_HEARTBEAT, 1, request);
      return Errors.forCode(answer.data().errorCode());
    }
  }

  @Test
  void aMemberMaySubscribeToTopicsThatItSees() throws IOException {
    assertEquals(Errors.NONE, join(part, heartbeat("a").setSubscribedTopicNames(List.of("open"))));
    assertEquals(Errors.TOPIC_AUTHORIZATION_FAILED, join(part, heartbeat("b").setSubscribedTopicNames(List.of("open", "closed"))));
    assertEquals(Errors.TOPIC_AUTHORIZATION_FAILED, join(part, heartbeat("c").setSubscribedTopicRegex(".*")));
    assertEquals(Errors.NONE, join(all, heartbeat("d").setSubscribedTopicRegex(".*")));
  }

  private static int described(Address at, String group, Errors expected) throws IOException {
    try (RawClient client = new RawClient(at)) {
      ConsumerGroupDescribeResponse answer = client.ask(ApiKeys.CONSUMER_GROUP_DESCRIBE, 1,
          new ConsumerGroupDescribeRequestData().setGroupIds(List.of(group)));
      assertEquals(expected, Errors.forCode(answer.data().groups().get(0).errorCode()));
      return answer.data().groups().get(0).members().size();
    }
  }

  @Test
  void membersWithHiddenTopicsAreNotDescribed() throws IOException {
    join(all, heartbeat("of-hidden").setSubscribedTopicNames(List.of("closed")));
    join(all, heartbeat("of-shown").setSubscribedTopicNames(List.of("open")));
    assertEquals(0, described(part, "of-hidden", Errors.TOPIC_AUTHORIZATION_FAILED));
    assertEquals(1, described(part, "of-shown", Errors.NONE));
    assertEquals(1, described(all, "of-hidden", Errors.NONE));
  }

  /** Joins a group with the classic protocol, alone. */
  private static void joinClassic(String group, String topic) throws IOException {
    byte[] subscription = ConsumerProtocol.serializeSubscription(new Subscription(List.of(topic))).array();
    byte[] assignment = ConsumerProtocol.serializeAssignment(new Assignment(List.of(new TopicPartition(topic, 0)))).array();
    JoinGroupRequestProtocol protocol = new JoinGroupRequestProtocol().setName("range").setMetadata(subscription);
    JoinGroupRequestData join = new JoinGroupRequestData().setGroupId(group)
        .setSessionTimeoutMs(60_000)
        .setRebalanceTimeoutMs(60_000)
        .setProtocolType("consumer")
        .setProtocols(new JoinGroupRequestProtocolCollection(List.of(protocol).iterator()));
    try (RawClient client = new RawClient(all)) {
      JoinGroupResponse joined = client.ask(ApiKeys.JOIN_GROUP, 3, join);
      JoinGroupResponseData member = joined.data();
      SyncGroupRequestData sync = new SyncGroupRequestData().setGroupId(group)
          .setMemberId(member.memberId())
          .setGenerationId(member.generationId())
          .setAssignments(List.of(new SyncGroupRequestAssignment().setMemberId(member.memberId()).setAssignment(assignment)));
      SyncGroupResponse synced = client.ask(ApiKeys.SYNC_GROUP, 3, sync);
      assertEquals(Errors.NONE.code(), synced.data().errorCode());
    }
  }

  private static DescribedGroup classic(Address at, String group) throws IOException {
    try (RawClient client = new RawClient(at)) {
      DescribeGroupsResponse answer = client.ask(ApiKeys.DESCRIBE_GROUPS, 5, new DescribeGroupsRequestData().setGroups(List.of(group)));
      return answer.data().groups().get(0);
    }
  }

  @Test
  void classicMembersWithHiddenTopicsAreNotDescribed() throws IOException {
    joinClassic("classic-hidden", "closed");
    joinClassic("classic-shown", "open");
    assertEquals(Errors.GROUP_AUTHORIZATION_FAILED.code(), classic(part, "classic-hidden").errorCode());
    assertEquals(List.of(), classic(part, "classic-hidden").members());
    assertEquals(1, classic(part, "classic-shown").members().size());
    assertEquals(1, classic(all, "classic-hidden").members().size());
  }
}
