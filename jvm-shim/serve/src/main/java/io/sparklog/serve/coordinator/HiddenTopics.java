package io.sparklog.serve.coordinator;

import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.security.Rights;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.GroupCoordinator;

/** Whether the clients of a listener may know all topics of a group. A listener may show a part of the topics, and groups belong to all. */
final class HiddenTopics {
  private HiddenTopics() {}

  /** Whether a client may know the topics of a member. A member that says its topics in its own way may be known where all topics are. */
  static boolean mayKnow(Rights rights, DescribeGroupsResponseData.DescribedGroupMember member) {
    if (rights.prefixes().isEmpty()) {
      return true;
    }
    try {
      return member.memberMetadata().length == 0 || ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(member.memberMetadata()))
          .topics()
          .stream()
          .allMatch(rights::mayRead)
          && (member.memberAssignment().length == 0 || ConsumerProtocol.deserializeAssignment(ByteBuffer.wrap(member.memberAssignment()))
              .partitions()
              .stream()
              .allMatch(partition -> rights.mayRead(partition.topic())));
    } catch (RuntimeException e) { // Its bytes are not a consumer's.
      return false;
    }
  }

  /** As the other. */
  static boolean mayKnow(Rights rights, ConsumerGroupDescribeResponseData.Member member) {
    String pattern = member.subscribedTopicRegex();
    return (rights.prefixes().isEmpty() || pattern == null || pattern.isEmpty())
        && member.subscribedTopicNames().stream().allMatch(rights::mayRead)
        && Stream.of(member.assignment(), member.targetAssignment())
            .flatMap(assignment -> assignment.topicPartitions().stream())
            .allMatch(topic -> rights.mayRead(topic.topicName()));
  }

  /** Fails with GROUP_AUTHORIZATION_FAILED if the group has a position in a topic that the client may not know. */
  static CompletableFuture<Void> requireKnown(ClientRequest asked, GroupCoordinator coordinator, String group) {
    if (asked.rights().prefixes().isEmpty()) {
      return CompletableFuture.completedFuture(null);
    }
    OffsetFetchRequestGroup all = new OffsetFetchRequestGroup().setGroupId(group).setTopics(null);
    return coordinator.fetchOffsets(asked.context(), all, false).thenAccept(found -> {
      if (!found.topics().stream().allMatch(topic -> asked.rights().mayRead(topic.name()))) {
        throw Errors.GROUP_AUTHORIZATION_FAILED.exception();
      }
    });
  }
}
