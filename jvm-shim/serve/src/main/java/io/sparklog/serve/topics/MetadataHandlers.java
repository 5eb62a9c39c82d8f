package io.sparklog.serve.topics;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.segment.Segment;
import io.sparklog.serve.members.Servers;
import io.sparklog.serve.protocol.ClientRequest;
import io.sparklog.serve.protocol.Handlers;
import io.sparklog.serve.protocol.KafkaErrors;
import io.sparklog.serve.security.Rights;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.message.DescribeClusterResponseData.DescribeClusterBroker;
import org.apache.kafka.common.message.DescribeClusterResponseData;
import org.apache.kafka.common.message.DescribeLogDirsResponseData.DescribeLogDirsPartition;
import org.apache.kafka.common.message.DescribeLogDirsResponseData.DescribeLogDirsResult;
import org.apache.kafka.common.message.DescribeLogDirsResponseData.DescribeLogDirsTopic;
import org.apache.kafka.common.message.DescribeLogDirsResponseData;
import org.apache.kafka.common.message.DescribeTopicPartitionsRequestData;
import org.apache.kafka.common.message.DescribeTopicPartitionsResponseData.Cursor;
import org.apache.kafka.common.message.DescribeTopicPartitionsResponseData.DescribeTopicPartitionsResponsePartition;
import org.apache.kafka.common.message.DescribeTopicPartitionsResponseData.DescribeTopicPartitionsResponseTopic;
import org.apache.kafka.common.message.DescribeTopicPartitionsResponseData;
import org.apache.kafka.common.message.MetadataRequestData.MetadataRequestTopic;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseBroker;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponsePartition;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.DescribeClusterRequest;
import org.apache.kafka.common.requests.DescribeClusterResponse;
import org.apache.kafka.common.requests.DescribeLogDirsRequest;
import org.apache.kafka.common.requests.DescribeLogDirsResponse;
import org.apache.kafka.common.requests.DescribeTopicPartitionsRequest;
import org.apache.kafka.common.requests.DescribeTopicPartitionsResponse;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;

/**
 * The requests that tell servers, topics, partitions and rights. All partitions of a topic have one leader, as a commit is of a topic.
 *
 * @param createsTopics whether topics are created when clients use them first: {@code auto.create.topics.enable}
 */
record MetadataHandlers(TopicChanges operators, Servers servers, boolean createsTopics) {
  /** The most partitions of a page of DescribeTopicPartitions. */
  private static final int PAGE_MAX = 2000;

  private static final byte BROKERS = 1;

  void addTo(Handlers handlers) {
    handlers.addBlocking(ApiKeys.METADATA, this::tell)
        .add(ApiKeys.DESCRIBE_CLUSTER, this::tellCluster)
        .addBlocking(ApiKeys.DESCRIBE_TOPIC_PARTITIONS,
            (ClientRequest asked,
                DescribeTopicPartitionsRequest request) -> new DescribeTopicPartitionsResponse(page(asked, request.data())))
        .addBlocking(ApiKeys.DESCRIBE_LOG_DIRS, this::tellBytes)
        .add(ApiKeys.DESCRIBE_ACLS, MetadataHandlers::refuseAcls)
        .add(ApiKeys.CREATE_ACLS, MetadataHandlers::refuseAcls)
        .add(ApiKeys.DELETE_ACLS, MetadataHandlers::refuseAcls);
  }

  private ServedTopics topics() {
    return operators.topics();
  }

  private MetadataResponse tell(ClientRequest asked, MetadataRequest request) {
    MetadataResponseData data = new MetadataResponseData().setClusterId(servers.clusterId()).setControllerId(servers.self().node());
    servers.at(asked.listener().name())
        .forEach((node, address) -> data.brokers()
            .add(new MetadataResponseBroker().setNodeId(node).setHost(address.host()).setPort(address.port())));
    if (asked.version() >= 8 && asked.version() <= 10 && request.data().includeClusterAuthorizedOperations()) {
      data.setClusterAuthorizedOperations(operationsOfCluster(asked.rights()));
    }
    if (request.isAllTopics()) {
      topics().all(asked).forEach(state -> data.topics().add(told(new MetadataResponseTopic(), asked, state)));
    } else {
      List<MetadataRequestTopic> wanted = request.data().topics().stream().distinct().toList();
      Map<String, Optional<State>> read = new HashMap<>(); // At once: a client may have hundreds of topics.
      topics().readRecent(wanted.stream().map(MetadataRequestTopic::name).filter(name -> mayTell(asked, name)).toList(), read::put);
      boolean mayCreate = createsTopics && request.allowAutoTopicCreation();
      wanted.forEach(topic -> data.topics().add(topic(asked, topic, read, mayCreate)));
    }
    if (request.data().includeTopicAuthorizedOperations()) {
      data.topics()
          .forEach(topic -> topic.setTopicAuthorizedOperations(topic.name() == null ? 0 : operations(asked.rights(), topic.name())));
    }
    return new MetadataResponse(data, asked.version());
  }

  /** Versions up to 11 cannot say null for the name. */
  private MetadataResponseTopic topic(ClientRequest asked, MetadataRequestTopic wanted, Map<String, Optional<State>> read,
      boolean mayCreate) {
    MetadataResponseTopic topic = new MetadataResponseTopic().setName(wanted.name()).setTopicId(wanted.topicId());
    ApiError error = KafkaErrors.attempt(() -> told(topic, asked, state(asked, wanted, read, mayCreate)));
    return topic.setErrorCode(error.error().code());
  }

  private static boolean mayTell(ClientRequest asked, String name) {
    return name != null && (asked.rights().mayRead(name) || asked.rights().mayWrite(name));
  }

  /** @param read states by name, without topics that cannot be read; these are read again, for their error */
  private State state(ClientRequest asked, MetadataRequestTopic wanted, Map<String, Optional<State>> read, boolean mayCreate) {
    String name = wanted.name();
    if (name == null) {
      return topics().newestById(wanted.topicId().toString())
          .filter(state -> asked.rights().mayRead(state.topic()))
          .orElseThrow(Errors.UNKNOWN_TOPIC_ID::exception);
    }
    ReadableTopics.requireLegal(name);
    Optional<State> state = read.get(name);
    if (mayCreate && asked.rights().mayWrite(name)) {
      return (state == null ? topics().newest(name) : state).orElseGet(() -> operators.createForUse(name));
    }
    return state == null || !asked.rights().mayRead(name)
        ? topics().readable(asked, name)
        : state.orElseThrow(Errors.UNKNOWN_TOPIC_OR_PARTITION::exception);
  }

  private MetadataResponseTopic told(MetadataResponseTopic topic, ClientRequest asked, State state) {
    List<Integer> leader = leader(asked, state);
    topic.setName(state.topic()).setTopicId(Uuid.fromString(state.topicId())).setIsInternal(state.topic().equals(Rights.OFFSETS_TOPIC));
    for (int partition = 0; partition < state.partitions(); partition++) {
      topic.partitions()
          .add(new MetadataResponsePartition().setPartitionIndex(partition)
              .setLeaderId(leader.get(0))
              .setLeaderEpoch(0)
              .setReplicaNodes(leader)
              .setIsrNodes(leader));
    }
    return topic;
  }

  private List<Integer> leader(ClientRequest asked, State state) {
    return List.of(servers.preferred(asked.listener().name(), state.topicId()).node());
  }

  /** A served root does not have controllers. */
  private CompletableFuture<DescribeClusterResponse> tellCluster(ClientRequest asked, DescribeClusterRequest request) {
    if (request.data().endpointType() != BROKERS) {
      throw Errors.MISMATCHED_ENDPOINT_TYPE.exception();
    }
    DescribeClusterResponseData data = new DescribeClusterResponseData().setClusterId(servers.clusterId())
        .setControllerId(servers.self().node())
        .setEndpointType(BROKERS);
    servers.at(asked.listener().name())
        .forEach((node, address) -> data.brokers()
            .add(new DescribeClusterBroker().setBrokerId(node).setHost(address.host()).setPort(address.port())));
    if (request.data().includeClusterAuthorizedOperations()) {
      data.setClusterAuthorizedOperations(operationsOfCluster(asked.rights()));
    }
    return CompletableFuture.completedFuture(new DescribeClusterResponse(data));
  }

  /** Tells partitions in pages: topics by name, and a cursor where the next page begins. */
  private DescribeTopicPartitionsResponseData page(ClientRequest asked, DescribeTopicPartitionsRequestData request) {
    DescribeTopicPartitionsRequestData.Cursor from = request.cursor();
    if (from != null && from.partitionIndex() < 0 || request.responsePartitionLimit() <= 0) {
      throw Errors.INVALID_REQUEST.exception();
    }
    TreeSet<String> names = new TreeSet<>(request.topics().isEmpty()
        ? topics().all(asked).stream().map(State::topic).toList()
        : request.topics().stream().map(each -> each.name()).toList());
    DescribeTopicPartitionsResponseData page = new DescribeTopicPartitionsResponseData();
    int left = Math.min(request.responsePartitionLimit(), PAGE_MAX);
    for (String name : from == null ? names : names.tailSet(from.topicName())) {
      int first = from != null && name.equals(from.topicName()) ? from.partitionIndex() : 0;
      if (left == 0) {
        return page.setNextCursor(new Cursor().setTopicName(name).setPartitionIndex(0));
      }
      DescribeTopicPartitionsResponseTopic topic = new DescribeTopicPartitionsResponseTopic().setName(name);
      page.topics().add(topic);
      try {
        State state = topics().readable(asked, name);
        int end = Math.min(state.partitions(), first + left);
        describe(topic, state, asked, first, end);
        left -= Math.max(0, end - first);
        if (end < state.partitions()) {
          return page.setNextCursor(new Cursor().setTopicName(name).setPartitionIndex(end));
        }
      } catch (RuntimeException e) {
        topic.setErrorCode(KafkaErrors.of(e).code());
      }
    }
    return page;
  }

  private void describe(DescribeTopicPartitionsResponseTopic topic, State state, ClientRequest asked, int first, int end) {
    List<Integer> leader = leader(asked, state);
    topic.setTopicId(Uuid.fromString(state.topicId()))
        .setIsInternal(state.topic().equals(Rights.OFFSETS_TOPIC))
        .setTopicAuthorizedOperations(operations(asked.rights(), state.topic()));
    for (int partition = first; partition < end; partition++) {
      topic.partitions()
          .add(new DescribeTopicPartitionsResponsePartition().setPartitionIndex(partition)
              .setLeaderId(leader.get(0))
              .setLeaderEpoch(0)
              .setReplicaNodes(leader)
              .setIsrNodes(leader)
              .setEligibleLeaderReplicas(List.of())
              .setLastKnownElr(List.of()));
    }
  }

  /** Tells the bytes of partitions. The root is the one directory. */
  private DescribeLogDirsResponse tellBytes(ClientRequest asked, DescribeLogDirsRequest request) {
    List<DescribeLogDirsTopic> told = new ArrayList<>();
    if (request.isAllTopicPartitions()) {
      topics().all(asked).forEach(state -> told.add(bytes(state, IntStream.range(0, state.partitions()).boxed().toList())));
    } else {
      request.data()
          .topics()
          .forEach(topic -> topics().newest(topic.topic())
              .filter(state -> asked.rights().mayRead(state.topic()))
              .ifPresent(state -> told.add(bytes(state, topic.partitions().stream().filter(state::hasPartition).toList()))));
    }
    DescribeLogDirsResult root = new DescribeLogDirsResult().setLogDir(topics().root().location()).setTopics(told);
    return new DescribeLogDirsResponse(new DescribeLogDirsResponseData().setResults(List.of(root)));
  }

  private static DescribeLogDirsTopic bytes(State state, List<Integer> partitions) {
    return new DescribeLogDirsTopic().setName(state.topic())
        .setPartitions(partitions.stream()
            .map(each -> new DescribeLogDirsPartition().setPartitionIndex(each)
                .setPartitionSize(state.segments(each).stream().mapToLong(Segment::bytes).sum()))
            .toList());
  }

  /** Answers as a broker without an authorizer does. Tools such as MirrorMaker know this answer. */
  private static CompletableFuture<AbstractResponse> refuseAcls(ClientRequest asked, AbstractRequest request) {
    return CompletableFuture.failedFuture(Errors.SECURITY_DISABLED.exception("This server has no ACLs. Rights belong to listeners."));
  }

  /** The rights in a topic as Kafka tells them: a bit for each operation. */
  private static int operations(Rights rights, String topic) {
    int read = bits(AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS);
    int write = bits(AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER, AclOperation.ALTER_CONFIGS);
    return (rights.mayRead(topic) ? read : 0) | (rights.mayWrite(topic) ? write : 0);
  }

  private static int operationsOfCluster(Rights rights) {
    return bits(AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        | (rights.readOnly() ? 0 : bits(AclOperation.CREATE, AclOperation.IDEMPOTENT_WRITE));
  }

  private static int bits(AclOperation... operations) {
    return List.of(operations).stream().mapToInt(operation -> 1 << operation.code()).sum();
  }
}
