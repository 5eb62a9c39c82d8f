package io.sparklog.serve.coordinator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.commits.CommitSettings;
import io.sparklog.commits.TopicWriters;
import io.sparklog.kit.Seed;
import io.sparklog.log.Root;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.Names;
import io.sparklog.serve.coordinator.groups.Groups;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.serve.topics.ServedTopics;
import io.sparklog.spec.Options;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
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
import org.junit.jupiter.api.io.TempDir;

/** Groups beside topics that are slow, that cannot be read, that come and go. */
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

  @BeforeEach
  void open() {
    LogStore local = Stores.open(directory.toString());
    LogStore store = (LogStore) Proxy.newProxyInstance(LogStore.class.getClassLoader(), new Class<?>[] {LogStore.class},
        (proxy, method, arguments) -> {
          if (held != null && arguments != null && arguments[0] instanceof String file && file.startsWith("_partlog/" + held)) {
            released.await();
            throw new IOException("the file cannot be read now");
          }
          try {
            return method.invoke(local, arguments);
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
        });
    for (String name : List.of("a", "b")) {
      create(name);
    }
    root = new Root(store);
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

  /** Looks at all topics, and waits for that. */
  private void lookAtAll() {
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
    assertFalse(late.isDone(), "after a pause of all groups, the topics are looked at first");
    released.countDown();
    assertEquals(Errors.NONE, Errors.forCode(await(late).errorCode()));
  }

  @Test
  void aMemberGetsPartitionsOfATopicThatWasCreatedAMomentAgo() {
    int epoch = subscribe(0, "a").memberEpoch();
    create("new");
    ConsumerGroupHeartbeatResponseData told = subscribe(epoch, "a", "new");
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_S);
    while (told.assignment() == null || told.assignment().topicPartitions().size() < 2) { // Kafka's coordinator shares out once a second.
      assertTrue(System.nanoTime() < until, told::toString);
      told = await(beat(told.memberEpoch()));
    }
    assertEquals(List.of(2, 2), told.assignment().topicPartitions().stream().map(each -> each.partitions().size()).toList());
  }

  /** For the coordinator, a topic that is missing is deleted, and so are the positions there. */
  @Test
  void aTopicThatCannotBeReadKeepsThePositionsOfGroups() {
    String id = id("a");
    commit("a", id, 17);
    lookAtAll();
    held = "a/";
    for (int looks = 0; looks < 3; looks++) {
      lookAtAll();
      assertEquals(17, position("a", id));
    }
    held = null;
    lookAtAll();
    assertEquals(17, position("a", id));
    assertEquals(2, subscribe(0, "a").assignment().topicPartitions().get(0).partitions().size());
  }

  @Test
  void aTopicThatIsDeletedLosesThePositionsOfGroups() throws Exception {
    String id = id("a");
    commit("a", id, 17);
    lookAtAll();
    administration("a").delete(false);
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_S);
    do {
      lookAtAll();
    } while (position("a", id) >= 0 && System.nanoTime() < until);
    assertEquals(-1, position("a", id));
    create("a");
    lookAtAll();
    assertEquals(-1, position("a", id("a")));
  }
}
