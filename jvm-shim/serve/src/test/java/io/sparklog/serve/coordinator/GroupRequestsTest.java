package io.sparklog.serve.coordinator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.sparklog.admin.Administration;
import io.sparklog.commits.CommitSettings;
import io.sparklog.commits.TopicWriters;
import io.sparklog.kit.Seed;
import io.sparklog.log.Root;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.Names;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.serve.topics.ServedTopics;
import io.sparklog.spec.Options;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.BufferSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Groups beside topics that are slow, that cannot be read, that come and go. */
@Timeout(value = 5, unit = TimeUnit.MINUTES)
final class GroupRequestsTest {
  private static final String GROUP = "g";
  private static final long WAIT_S = 120;

  @TempDir
  Path directory;

  /** Seconds of the clock by which topics get old. */
  private final AtomicLong seconds = new AtomicLong();
  private final Workers work = new Workers("test", 4);
  private final Random random = new Random(Seed.draw());
  private Root root;
  private TopicWriters writers;
  private Groups groups;
  private GroupRequests requests;

  /** The folder of a topic whose files cannot be read: each call waits for {@code released}, and then fails. Null for no topic. */
  private volatile String held;

  private volatile CountDownLatch released = new CountDownLatch(0);
  private volatile CountDownLatch reached = new CountDownLatch(0);

  @BeforeEach
  void open() {
    FaultyStore store = FaultyStore.of(Stores.open(directory.toString())).at((method, name, when) -> {
      if (when == FaultyStore.When.BEFORE && held != null && name.startsWith("_partlog/" + held)) {
        reached.countDown();
        released.await();
        throw new IOException("the file cannot be read now");
      }
    });
    for (String name : List.of("a", "b")) {
      create(name);
    }
    root = new Root(store.store());
    writers = new TopicWriters(root, CommitSettings.USUAL, topic -> {}, Clock.systemUTC(), new SecureRandom());
    groups = new Groups(root, writers, 1, Map.of("offsets.topic.num.partitions", "1"), partition -> true, Clock.systemUTC(), random);
    requests = new GroupRequests(groups, new ServedTopics(root, Clock.systemUTC()), work, () -> TimeUnit.SECONDS.toNanos(seconds.get()));
  }

  @AfterEach
  void close() {
    released.countDown();
    requests.close();
    groups.close();
    writers.close();
    work.close();
  }

  /** By another process. */
  private void create(String name) {
    administration(name).create(
        TopicConfig.of(Options.of(Map.of("partitions", "2", "kafka.view", "none"), Options.Side.WRITE).topicConfig()),
        Names.identity(random));
  }

  private Administration administration(String name) {
    Root another = new Root(Stores.open(directory.toString()));
    return new Administration(new TopicWork(another.topic(name), Clock.systemUTC(), random));
  }

  private static RequestContext context(ApiKeys key) {
    return new RequestContext(new RequestHeader(key, key.latestVersion(), "client", 0), "0", InetAddress.getLoopbackAddress(),
        KafkaPrincipal.ANONYMOUS, ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT), SecurityProtocol.PLAINTEXT,
        ClientInformation.EMPTY, false);
  }

  private static <T> T await(CompletableFuture<T> future) {
    return future.orTimeout(WAIT_S, TimeUnit.SECONDS).join();
  }

  private static ConsumerGroupHeartbeatRequestData beat(int epoch, List<String> names) {
    return new ConsumerGroupHeartbeatRequestData().setGroupId(GROUP)
        .setMemberId("AAAAAAAAAAAAAAAAAAAAAQ")
        .setMemberEpoch(epoch)
        .setRebalanceTimeoutMs(600_000)
        .setSubscribedTopicNames(names)
        .setTopicPartitions(List.of());
  }

  /** As a member whose subscription has changed. */
  private ConsumerGroupHeartbeatResponseData subscribe(int epoch, String... names) {
    return await(requests.ask(GROUP, List.of(names),
        coordinator -> coordinator.consumerGroupHeartbeat(context(ApiKeys.CONSUMER_GROUP_HEARTBEAT), beat(epoch, List.of(names)))));
  }

  private CompletableFuture<ConsumerGroupHeartbeatResponseData> beat(int epoch) {
    return requests.ask(GROUP,
        coordinator -> coordinator.consumerGroupHeartbeat(context(ApiKeys.CONSUMER_GROUP_HEARTBEAT), beat(epoch, null)));
  }

  private void commit(String name, String id, long offset) {
    OffsetCommitRequestData data = new OffsetCommitRequestData().setGroupId("positions")
        .setTopics(List.of(new OffsetCommitRequestData.OffsetCommitRequestTopic().setName(name)
            .setTopicId(Uuid.fromString(id))
            .setPartitions(
                List.of(new OffsetCommitRequestData.OffsetCommitRequestPartition().setPartitionIndex(0).setCommittedOffset(offset)))));
    short error = await(requests.ask("positions",
        coordinator -> coordinator.commitOffsets(context(ApiKeys.OFFSET_COMMIT), data, BufferSupplier.NO_CACHING))).topics()
        .get(0)
        .partitions()
        .get(0)
        .errorCode();
    assertEquals(Errors.NONE, Errors.forCode(error));
  }

  private long position(String name, String id) {
    OffsetFetchRequestData.OffsetFetchRequestGroup wanted = new OffsetFetchRequestData.OffsetFetchRequestGroup().setGroupId("positions")
        .setTopics(List.of(new OffsetFetchRequestData.OffsetFetchRequestTopics().setName(name)
            .setTopicId(Uuid.fromString(id))
            .setPartitionIndexes(List.of(0))));
    return await(requests.ask("positions", coordinator -> coordinator.fetchOffsets(context(ApiKeys.OFFSET_FETCH), wanted, true))).topics()
        .get(0)
        .partitions()
        .get(0)
        .committedOffset();
  }

  /** Refreshes all topics, and waits for that. */
  private void refreshAll() {
    seconds.addAndGet(2);
    await(requests.askWithAllTopics(GROUP, coordinator -> CompletableFuture.completedFuture(null)));
  }

  private String id(String name) {
    return root.state(name).topicId();
  }

  @Test
  void aHeartbeatWaitsForNoTopic() throws Exception {
    int epoch = subscribe(0, "a").memberEpoch();
    released = new CountDownLatch(1);
    held = "b/";
    for (int beats = 0; beats < 5; beats++) {
      seconds.addAndGet(3);
      assertEquals(Errors.NONE, Errors.forCode(await(beat(epoch)).errorCode()));
    }
    seconds.addAndGet(60);
    CompletableFuture<ConsumerGroupHeartbeatResponseData> late = beat(epoch);
    assertFalse(late.isDone(), "after a pause of all groups, the topics are refreshed first");
    released.countDown();
    assertEquals(Errors.NONE, Errors.forCode(await(late).errorCode()));
  }

  @Test
  void aMemberGetsPartitionsOfATopicThatWasCreatedAMomentAgo() {
    int epoch = subscribe(0, "a").memberEpoch();
    create("new");
    ConsumerGroupHeartbeatResponseData told = subscribe(epoch, "a", "new");
    while (told.assignment() == null || told.assignment().topicPartitions().size() < 2) { // Kafka's coordinator shares out once a second.
      told = await(beat(told.memberEpoch()));
    }
    assertEquals(List.of(2, 2), told.assignment().topicPartitions().stream().map(each -> each.partitions().size()).toList());
  }

  /** For the coordinator, a topic that is missing is deleted, and so are the positions there. */
  @Test
  void aTopicThatCannotBeReadKeepsThePositionsOfGroups() {
    String id = id("a");
    commit("a", id, 17);
    refreshAll();
    held = "a/";
    for (int refreshes = 0; refreshes < 3; refreshes++) {
      refreshAll();
      assertEquals(17, position("a", id));
    }
    held = null;
    refreshAll();
    assertEquals(17, position("a", id));
    assertEquals(2, subscribe(0, "a").assignment().topicPartitions().get(0).partitions().size());
  }

  @Test
  void aTopicThatIsDeletedLosesThePositionsOfGroups() throws Exception {
    String id = id("a");
    commit("a", id, 17);
    refreshAll();
    administration("a").delete(false);
    do {
      refreshAll();
    } while (position("a", id) >= 0);
    create("a");
    refreshAll();
    assertEquals(-1, position("a", id("a")));
  }

  /** A refresh has found that the topic does not exist, and is still at another topic when a member subscribes to the new topic. */
  @Test
  void anOlderReadTakesNoTopicAway() throws Exception {
    create("d");
    subscribe(0, "c");
    reached = new CountDownLatch(1);
    released = new CountDownLatch(1);
    held = "d/";
    seconds.addAndGet(2);
    CompletableFuture<Object> refresh = requests.askWithAllTopics(GROUP, coordinator -> CompletableFuture.completedFuture(null));
    reached.await();
    create("c");
    seconds.addAndGet(1);
    await(requests.ask(GROUP, List.of("c"), coordinator -> CompletableFuture.completedFuture(null)));
    String id = id("c");
    commit("c", id, 7);
    released.countDown();
    await(refresh);
    assertEquals(7, position("c", id));
  }

  /**
   * Requests of all kinds at the same time, beside another process that creates and deletes topics, and topics that cannot be read for a
   * while. The model: by topic that exists, its id and the position that was committed there.
   */
  @Test
  void positionsOfTopicsThatExistStay() throws Exception {
    Map<String, Map.Entry<String, Long>> model = new HashMap<>();
    Map<String, String> deleted = new HashMap<>();
    for (int step = 0; step < Seed.either(60, 2000); step++) {
      seconds.addAndGet(random.nextInt(5) == 0 ? 60 : random.nextInt(3));
      List<CompletableFuture<?>> asked = new ArrayList<>();
      for (int count = random.nextInt(4); count > 0; count--) {
        List<String> names = Stream.of("a", "b", "c", "absent").filter(name -> random.nextBoolean()).toList();
        asked.add(switch (random.nextInt(4)) {
          case 0 -> requests.ask(GROUP, names, coordinator -> CompletableFuture.completedFuture(null));
          case 1 -> requests.askWithAllTopics(GROUP, coordinator -> CompletableFuture.completedFuture(null));
          case 2 -> requests.askAll(coordinator -> CompletableFuture.completedFuture(null), null);
          default -> requests.ask(GROUP, coordinator -> CompletableFuture.completedFuture(null));
        });
      }
      String name = List.of("a", "b", "c").get(random.nextInt(3));
      switch (random.nextInt(6)) {
        case 0 -> held = random.nextBoolean() ? name + "/" : null;
        case 1 -> {
          if (model.containsKey(name)) {
            deleted.put(model.remove(name).getKey(), name);
            administration(name).delete(false);
          }
        }
        default -> {
          if (!model.containsKey(name) && new Root(Stores.open(directory.toString())).newest(name).isEmpty()) {
            create(name);
          }
          String id = new Root(Stores.open(directory.toString())).state(name).topicId();
          long position = random.nextInt(1000);
          commit(name, id, position);
          model.put(name, Map.entry(id, position));
        }
      }
      asked.forEach(GroupRequestsTest::await);
      model.forEach((topic, known) -> assertEquals(known.getValue(), position(topic, known.getKey()), topic));
    }
    held = null;
    do {
      refreshAll();
    } while (deleted.entrySet().stream().anyMatch(each -> position(each.getValue(), each.getKey()) >= 0));
    model.forEach((topic, known) -> assertEquals(known.getValue(), position(topic, known.getKey()), topic));
    assertFalse(deleted.isEmpty());
  }
}
