import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Kafka's own assignors as a filter: one group a line in, as the vectors in assignors.json describe it, the partitions of its members a
 * line out. Run by generate.py with Kafka's jars, and by tests/kafka/test_assignors.py.
 */
public final class KafkaAssignors {
  private static final Map<String, AbstractPartitionAssignor> OF_CLIENTS = Map.of("range", new RangeAssignor(), "roundrobin",
      new RoundRobinAssignor(), "sticky", new StickyAssignor(), "cooperative-sticky", new CooperativeStickyAssignor());
  private static final Map<String, PartitionAssignor> OF_BROKERS = Map.of("uniform", new UniformAssignor(), "range-848",
      new org.apache.kafka.coordinator.group.assignor.RangeAssignor());

  public static void main(String[] args) throws Exception {
    ObjectMapper json = new ObjectMapper();
    for (String line : new String(System.in.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
      JsonNode group = json.readTree(line);
      boolean ofClients = OF_CLIENTS.containsKey(group.get("assignor").textValue());
      Map<String, String> answer = new LinkedHashMap<>();
      (ofClients ? byClient(group) : byBroker(group)).forEach((member, partitions) -> answer.put(member, text(partitions)));
      System.out.println(json.writeValueAsString(answer));
    }
  }

  private static Map<String, List<TopicPartition>> byClient(JsonNode group) {
    String name = group.get("assignor").textValue();
    Map<String, Subscription> members = new LinkedHashMap<>();
    group.get("members").properties().forEach(each -> {
      JsonNode member = each.getValue();
      List<TopicPartition> owned = owned(member);
      int generation = member.path("generation").asInt(-1);
      Optional<String> instance = Optional.ofNullable(member.path("instance").textValue());
      ByteBuffer data = null;
      if (name.equals("sticky") && !owned.isEmpty()) {
        StickyAssignor before = new StickyAssignor();
        before.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("g", generation, each.getKey(), instance));
        data = before.subscriptionUserData(new HashSet<>(topics(member)));
      }
      Subscription subscription = new Subscription(topics(member), data, owned, generation,
          Optional.ofNullable(member.path("rack").textValue()));
      subscription.setGroupInstanceId(instance);
      members.put(each.getKey(), subscription);
    });
    Map<String, List<PartitionInfo>> partitions = new TreeMap<>();
    group.get("topics").properties().forEach(topic -> {
      if (members.values().stream().noneMatch(member -> member.topics().contains(topic.getKey()))) {
        return; // a group knows only the topics that its members read
      }
      List<PartitionInfo> infos = new ArrayList<>();
      for (int number = 0; number < topic.getValue().intValue(); number++) {
        List<Node> nodes = new ArrayList<>();
        for (JsonNode rack : group.path("replica_racks").path(topic.getKey()).path(number)) {
          nodes.add(new Node(nodes.size(), "host", 1, rack.textValue()));
        }
        Node[] replicas = nodes.toArray(new Node[0]);
        infos.add(new PartitionInfo(topic.getKey(), number, Node.noNode(), replicas, replicas));
      }
      partitions.put(topic.getKey(), infos);
    });
    return OF_CLIENTS.get(name).assignPartitions(partitions, members);
  }

  private static Map<String, List<TopicPartition>> byBroker(JsonNode group) {
    Map<String, Uuid> ids = new HashMap<>();
    Map<Uuid, String> names = new HashMap<>();
    Map<String, Integer> counts = new TreeMap<>();
    group.get("topics").properties().forEach(topic -> counts.put(topic.getKey(), topic.getValue().intValue()));
    for (String topic : counts.keySet()) {
      ids.put(topic, new Uuid(0, ids.size() + 1));
      names.put(ids.get(topic), topic);
    }
    Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
    Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
    Set<Set<Uuid>> subscriptions = new HashSet<>();
    group.get("members").properties().forEach(each -> {
      Map<Uuid, Set<Integer>> owned = new LinkedHashMap<>();
      for (TopicPartition partition : owned(each.getValue())) {
        owned.computeIfAbsent(ids.get(partition.topic()), id -> new LinkedHashSet<>()).add(partition.partition());
        owners.computeIfAbsent(ids.get(partition.topic()), id -> new HashMap<>()).put(partition.partition(), each.getKey());
      }
      Set<Uuid> reads = new LinkedHashSet<>();
      topics(each.getValue()).forEach(topic -> reads.add(ids.get(topic)));
      subscriptions.add(reads);
      members.put(each.getKey(),
          new MemberSubscriptionAndAssignmentImpl(Optional.empty(), Optional.ofNullable(each.getValue().path("instance").textValue()),
              reads, new org.apache.kafka.coordinator.group.modern.Assignment(Collections.unmodifiableMap(owned))));
    });
    SubscribedTopicDescriber topics = new SubscribedTopicDescriber() {
      @Override
      public int numPartitions(Uuid id) {
        return names.containsKey(id) ? counts.get(names.get(id)) : -1;
      }

      @Override
      public Set<String> racksForPartition(Uuid id, int partition) {
        return Set.of();
      }
    };
    SubscriptionType type = subscriptions.size() == 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
    var assigned = OF_BROKERS.get(group.get("assignor").textValue()).assign(new GroupSpecImpl(members, type, owners), topics).members();
    Map<String, List<TopicPartition>> answer = new LinkedHashMap<>();
    for (String member : members.keySet()) {
      List<TopicPartition> partitions = new ArrayList<>();
      if (assigned.containsKey(member)) {
        assigned.get(member)
            .partitions()
            .forEach((id, numbers) -> numbers.forEach(number -> partitions.add(new TopicPartition(names.get(id), number))));
      }
      answer.put(member, partitions);
    }
    return answer;
  }

  private static List<String> topics(JsonNode member) {
    List<String> topics = new ArrayList<>();
    member.get("topics").forEach(topic -> topics.add(topic.textValue()));
    return topics;
  }

  /** Partitions as {@code t0:0,1 t1:2} names them. */
  private static List<TopicPartition> owned(JsonNode member) {
    List<TopicPartition> owned = new ArrayList<>();
    for (String each : member.path("owned").asText("").split(" ")) {
      String[] halves = each.split(":");
      for (String number : halves.length == 2 ? halves[1].split(",") : new String[0]) {
        owned.add(new TopicPartition(halves[0], Integer.parseInt(number)));
      }
    }
    return owned;
  }

  private static String text(List<TopicPartition> partitions) {
    Map<String, Set<Integer>> by = new TreeMap<>();
    partitions.forEach(each -> by.computeIfAbsent(each.topic(), topic -> new TreeSet<>()).add(each.partition()));
    List<String> found = new ArrayList<>();
    by.forEach((topic, numbers) -> found.add(topic + ":" + String.join(",", numbers.stream().map(String::valueOf).toList())));
    return String.join(" ", found);
  }
}
