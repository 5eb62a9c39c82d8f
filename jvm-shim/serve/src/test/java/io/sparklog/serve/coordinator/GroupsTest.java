package io.sparklog.serve.coordinator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.commits.AppendRefused;
import io.sparklog.commits.AppendResult;
import io.sparklog.commits.CommitSettings;
import io.sparklog.commits.PreparedAppend;
import io.sparklog.commits.TopicWriters;
import io.sparklog.kit.Seed;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.serve.coordinator.TopicsImage.KnownTopic;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntPredicate;
import java.util.random.RandomGenerator;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.NotCoordinatorException;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Groups over a root on a disk, through one coordinator or through several in turn. */
final class GroupsTest {
  private static final int COMPACTION_RECORDS = 24;

  @TempDir
  Path directory;

  private final GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
  private final Random random = new Random(Seed.draw());
  private final List<Groups> opened = new ArrayList<>();
  private final List<TopicWriters> committing = new ArrayList<>();
  private List<KnownTopic> topics = Member.topics(2);

  private Groups open(String... settings) {
    return open(random, settings);
  }

  private Groups open(RandomGenerator random, String... settings) {
    return open(random, partition -> true, settings);
  }

  private Groups open(RandomGenerator random, IntPredicate isOurs, String... settings) {
    Map<String, String> config = new HashMap<>(Map.of("group.initial.rebalance.delay.ms", "0", Groups.PARTITIONS, "2"));
    for (int i = 0; i < settings.length; i += 2) {
      config.put(settings[i], settings[i + 1]);
    }
    Root root = new Root(Stores.open(directory.toString()));
    Groups groups = new Groups(root, writers(root, random), 1, config, isOurs, Clock.systemUTC(), random, COMPACTION_RECORDS);
    groups.topics(topics);
    opened.add(groups);
    return groups;
  }

  /** @param random is safe for many threads */
  private TopicWriters writers(Root root, RandomGenerator random) {
    TopicWriters writers = new TopicWriters(root, CommitSettings.USUAL, topic -> {}, Clock.systemUTC(), random);
    committing.add(writers);
    return writers;
  }

  /** Adds a batch to partition 0 as a coordinator does. @return the end offset after the batch */
  private static CompletableFuture<Long> append(TopicWriters writers, String topicId, long end, byte[] bytes) {
    List<PreparedAppend.PreparedBatch> batches = List.of(PreparedAppend.PreparedBatch.unordered(bytes, -1));
    return writers.append(Groups.TOPIC, 0, PreparedAppend.of(topicId, batches, new PreparedAppend.Fence(end, false)))
        .thenApply(AppendResult::end);
  }

  @AfterEach
  void close() {
    opened.forEach(Groups::close);
    committing.forEach(TopicWriters::close);
  }

  private State state() {
    return new Root(Stores.open(directory.toString())).state(Groups.TOPIC);
  }

  @Test
  void aRootWithoutGroupsIsLeftAsItIs() {
    assertTrue(Member.await(open().ofAll()).isEmpty());
    assertTrue(new Root(Stores.open(directory.toString())).newest(Groups.TOPIC).isEmpty());
  }

  @Test
  void positionsSurviveARestart() {
    Member member = new Member(open(), "g");
    assertEquals(-1, member.fetch(topics.get(0), 1));
    assertEquals(Errors.NONE, member.commit(topics.get(0), 1, 17));
    assertEquals(17, member.fetch(topics.get(0), 1));
    assertEquals(17, new Member(open(), "g").fetch(topics.get(0), 1));
  }

  @Test
  void theTopicKeepsItsPartitionsWhateverAnotherProcessWants() {
    Member member = new Member(open(), "g");
    member.commit(topics.get(0), 0, 1);
    assertEquals(1, new Member(open(Groups.PARTITIONS, "5"), "g").fetch(topics.get(0), 0));
    assertEquals(2, state().partitions());
    assertEquals("none", state().config().get("kafka.view"));
    assertFalse(state().config().hasRetention(), "also if somebody sets it");
  }

  /** The load takes no notice of an interrupt, as a read that hangs. */
  @Test
  @Timeout(600)
  void aRequestThatWaitsForALoadIsAnsweredWhenTheCoordinatorEnds() throws Exception {
    new Member(open(), "g").commit(topics.get(0), 0, 1);
    CountDownLatch isLoading = new CountDownLatch(1);
    CountDownLatch mayGoOn = new CountDownLatch(1);
    LogStore real = Stores.open(directory.toString());
    Root root = new Root(
        (LogStore) Proxy.newProxyInstance(LogStore.class.getClassLoader(), new Class<?>[] {LogStore.class}, (proxy, method, arguments) -> {
          if (method.getName().equals("open")) {
            isLoading.countDown();
            awaitUninterruptibly(mayGoOn);
          }
          return method.invoke(real, arguments);
        }));
    Map<String, String> config = Map.of(Groups.PARTITIONS, "2");
    Groups groups = new Groups(root, writers(root, random), 1, config, partition -> true, Clock.systemUTC(), random, COMPACTION_RECORDS);
    groups.topics(topics);
    CompletableFuture<?> request = groups.of("g");
    try {
      isLoading.await();
      CompletableFuture<Void> closing = CompletableFuture.runAsync(groups::close, task -> new Thread(task).start());
      Throwable failure = assertThrows(ExecutionException.class, request::get).getCause();
      assertInstanceOf(NotCoordinatorException.class, failure);
      mayGoOn.countDown();
      closing.get();
    } finally {
      mayGoOn.countDown();
    }
  }

  private static void awaitUninterruptibly(CountDownLatch latch) {
    while (latch.getCount() > 0) {
      Thread.interrupted();
      LockSupport.parkNanos(1_000_000);
    }
  }

  /** Both hold themselves for the coordinator. Each finds the records of the other before it answers. */
  @Test
  void twoCoordinatorsInTurnAreExact() {
    List<Member> members = List.of(new Member(open(), "g"), new Member(open(), "g"));
    for (int offset = 0; offset < 10; offset++) {
      Member member = members.get(offset % 2);
      assertEquals(offset - 1, member.fetch(topics.get(0), 0));
      assertEquals(Errors.NONE, member.commit(topics.get(0), 0, offset));
    }
    assertEquals(10, state().end(0) + state().end(1));
  }

  /** Neither looks before it appends: the fence alone refuses the second one. */
  @Test
  void anAppendOfACoordinatorThatMissedRecordsIsRefused() {
    Groups first = open();
    Groups second = open();
    Member a = new Member(first, "g");
    a.commit(topics.get(0), 0, 1);
    var late = Member.await(second.of("g"));
    a.commit(topics.get(0), 0, 2);
    var refused = Member
        .await(late.commitOffsets(Member.context(ApiKeys.OFFSET_COMMIT), a.commitData(topics.get(0), 0, 1), BufferSupplier.NO_CACHING));
    assertEquals(Errors.NOT_COORDINATOR.code(), refused.topics().get(0).partitions().get(0).errorCode());
    assertEquals(2, new Member(second, "g").fetch(topics.get(0), 0));
  }

  /** The topic ends at the offset that the first coordinator expects after its own append, with a record of the second one. */
  @Test
  void aCoordinatorDoesNotTakeTheRecordsOfAnotherForTheAppendThatIsUnderWay() throws Exception {
    CountDownLatch reached = new CountDownLatch(1);
    CompletableFuture<Void> released = new CompletableFuture<>();
    AtomicBoolean holds = new AtomicBoolean();
    Groups first = open(() -> { // Each append draws its identity after its request, and before it looks at the topic.
      if (holds.get() && Thread.currentThread().getName().startsWith("server-commit")) {
        reached.countDown();
        Member.await(released);
      }
      return random.nextLong();
    });
    Member member = new Member(first, "g");
    assertEquals(Errors.NONE, member.commit(topics.get(0), 0, 1));
    holds.set(true);
    var late = commitOnce(Member.await(first.of("g")), member, 5);
    assertTrue(reached.await(120, TimeUnit.SECONDS));
    assertEquals(Errors.NONE, new Member(open(), "g").commit(topics.get(0), 0, 9));
    CompletableFuture<GroupCoordinator> current = first.of("g");
    Member.await(first.partition("g"));
    Member.await(first.partition("g")); // A later look: the question for the coordinator was asked after the look before it.
    assertFalse(current.isDone());
    released.complete(null);
    Member.await(current);
    assertEquals(Errors.NOT_COORDINATOR, Member.await(late));
    assertEquals(9, member.fetch(topics.get(0), 0));
  }

  /** Commits an offset of partition 0 of the first topic, and does not repeat a request that is refused. */
  private CompletableFuture<Errors> commitOnce(GroupCoordinator coordinator, Member member, long offset) {
    return coordinator
        .commitOffsets(Member.context(ApiKeys.OFFSET_COMMIT), member.commitData(topics.get(0), 0, offset), BufferSupplier.NO_CACHING)
        .thenApply(data -> Errors.forCode(data.topics().get(0).partitions().get(0).errorCode()));
  }

  /** A coordinator that starts over may leave an append behind, which has the same expected end as the next one. */
  @Test
  void oneOfSeveralAppendsAtTheSameEndIsCommitted() {
    Member member = new Member(open(Groups.PARTITIONS, "1"), "g");
    member.commit(topics.get(0), 0, 7);
    State before = state();
    TopicWriters raw = writers(new Root(Stores.open(directory.toString())), new SecureRandom());
    List<CompletableFuture<Long>> appends = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      MemoryRecords records = MemoryRecords.withRecords(Compression.NONE, new SimpleRecord(new byte[] {0, 2, 0, 1, (byte) i}, null));
      byte[] bytes = new byte[records.sizeInBytes()];
      records.buffer().get(bytes);
      long end = before.end(0) + (i == 0 ? 0 : 1); // While the first is committed, the others wait for the same commit.
      appends.add(append(raw, before.topicId(), end, bytes));
    }
    long done = appends.stream().filter(append -> {
      try {
        return Member.await(append) > before.end(0);
      } catch (CompletionException fenced) {
        assertEquals(AppendRefused.Reason.FENCED, ((AppendRefused) fenced.getCause()).refusal(), fenced.toString());
        return false;
      }
    }).count();
    assertEquals(2, done);
    assertEquals(before.end(0) + 2, state().end(0));
  }

  private static Set<String> states(Groups groups) {
    var listed = Member
        .await(Member.await(groups.ofAll()).orElseThrow().listGroups(Member.context(ApiKeys.LIST_GROUPS), new ListGroupsRequestData()));
    return listed.groups().stream().map(group -> group.groupState()).collect(Collectors.toSet());
  }

  @Test
  void aClassicGroupSurvivesARestart() {
    Member member = new Member(open(), "g");
    JoinGroupResponseData joined = member.join("");
    assertEquals(Errors.NONE.code(), joined.errorCode());
    Groups other = open();
    assertEquals(Set.of("Stable"), states(other));
    JoinGroupResponseData again = new Member(other, "g").join(joined.memberId());
    assertEquals(joined.memberId(), again.memberId());
    assertNotEquals(0, again.generationId());
  }

  /** Otherwise the member would wait here until the session of another member ends. */
  @Test
  void aMemberThatWaitsIsToldWhenAnotherProcessCoordinatesItsGroup() {
    AtomicInteger lost = new AtomicInteger(-1);
    Groups groups = open(random, partition -> partition != lost.get());
    Map<Integer, Member> members = new HashMap<>(); // A group of each partition.
    for (int i = 0; members.size() < 2; i++) {
      members.putIfAbsent(Member.await(groups.partition("g" + i)), new Member(groups, "g" + i));
    }
    Map<Integer, JoinGroupResponseData> first = new HashMap<>();
    Map<Integer, CompletableFuture<JoinGroupResponseData>> second = new HashMap<>();
    members.forEach((partition, member) -> {
      first.put(partition, member.join(""));
      second.put(partition, member.joinOnce(Member.await(member.joinOnce("")).memberId())); // It waits until the first joins again.
    });
    while (!states(groups).equals(Set.of("PreparingRebalance"))) {
      assertFalse(second.values().stream().anyMatch(CompletableFuture::isDone));
    }
    lost.set(1);
    groups.release();
    assertEquals(Errors.NOT_COORDINATOR.code(), Member.await(second.get(1)).errorCode());
    assertFalse(second.get(0).isDone());
    JoinGroupResponseData again = members.get(0).join(first.get(0).memberId());
    assertEquals(List.of(0, 2), List.of((int) Member.await(second.get(0)).errorCode(), again.members().size()));
  }

  @Test
  void membersOfTheNewProtocolGetThePartitionsOfTopicsThatCome() {
    Groups groups = open();
    Member member = new Member(groups, "g");
    String id = Uuid.randomUuid().toString();
    ConsumerGroupHeartbeatResponseData joined = member.beat(id, 0, "t0", "t2");
    assertEquals(topics.get(0).id() + ":[0, 1, 2, 3]", Member.assigned(joined));
    List<KnownTopic> more = new ArrayList<>(topics);
    more.add(new KnownTopic("t2", Uuid.randomUuid().toString(), 1));
    groups.topics(more);
    String assigned = "";
    int epoch = joined.memberEpoch();
    while (!assigned.contains(more.get(2).id() + ":[0]")) {
      ConsumerGroupHeartbeatResponseData answer = member.beat(id, epoch);
      assertEquals(Errors.NONE.code(), answer.errorCode());
      epoch = answer.memberEpoch();
      assigned = Member.assigned(answer);
    }
  }

  @Test
  void positionsOfATopicThatIsCreatedAgainDoNotCount() {
    Groups groups = open();
    Member member = new Member(groups, "g");
    member.commit(topics.get(0), 0, 5);
    KnownTopic again = new KnownTopic("t0", Uuid.randomUuid().toString(), 4);
    topics = List.of(again, topics.get(1));
    groups.topics(topics);
    assertEquals(-1, member.fetch(again, 0));
    assertEquals(-1, new Member(open(), "g").fetch(again, 0));
  }

  @Test
  void aTopicOfGroupsThatIsCreatedAgainBeginsAnew() throws Exception {
    Groups groups = open();
    Member member = new Member(groups, "g");
    member.commit(topics.get(0), 0, 5);
    Root root = new Root(Stores.open(directory.toString()));
    new Administration(new TopicWork(root.topic(Groups.TOPIC), Clock.systemUTC(), random)).delete(false);
    assertEquals(-1, member.fetch(topics.get(0), 0));
    assertEquals(Errors.NONE, member.commit(topics.get(0), 0, 6));
    assertEquals(6, member.fetch(topics.get(0), 0));
  }

  /** A partition is compacted at a moment without an append, which may be some commits later. */
  @Test
  @Timeout(value = 5, unit = TimeUnit.MINUTES)
  void aPartitionIsCompactedWhenLessThanHalfOfItIsLive() {
    Member member = new Member(open(Groups.PARTITIONS, "1"), "g");
    int offset = 0;
    long left = Long.MAX_VALUE;
    while (offset < 4 * COMPACTION_RECORDS || left > COMPACTION_RECORDS + 3) {
      member.commit(topics.get(0), offset % 3, offset);
      offset++;
      left = state().end(0) - state().start(0);
    }
    Member later = new Member(open(Groups.PARTITIONS, "1"), "g");
    for (int last = offset - 3; last < offset; last++) {
      assertEquals(last, later.fetch(topics.get(0), last % 3));
    }
  }

  @Test
  void aCommitThatIsRefusedBesideACompactionWasNotMade() {
    Groups groups = open(Groups.PARTITIONS, "1");
    Member member = new Member(groups, "g");
    long made = -1;
    for (int i = 0; i < 6 * COMPACTION_RECORDS; i++) {
      long next = made + 1;
      Errors error = Member.await(groups.of("g").thenCompose(coordinator -> commitOnce(coordinator, member, next)));
      made = error == Errors.NONE ? next : made;
      assertEquals(made, member.fetch(topics.get(0), 0), error::toString);
    }
    assertTrue(state().start(0) > 0, "nothing was compacted");
  }

  /** Everybody who can write files of the root can write such records. */
  @Test
  void recordsThatNoCoordinatorWroteAreLeftOut() {
    Member member = new Member(open(Groups.PARTITIONS, "1"), "g");
    member.commit(topics.get(0), 0, 7);
    TopicWriters raw = writers(new Root(Stores.open(directory.toString())), new SecureRandom());
    byte[] key = new GroupCoordinatorRecordSerde()
        .serializeKey(CoordinatorRecord.tombstone(new OffsetCommitKey().setGroup("g").setTopic("t0").setPartition(0)));
    List<SimpleRecord> hostile = new ArrayList<>(List.of(new SimpleRecord(new byte[0], new byte[0]), new SimpleRecord(null, new byte[3]),
        new SimpleRecord(new byte[] {0, 1, 127, -1, 'g'}, new byte[2]), new SimpleRecord(new byte[] {9, 9}, new byte[2]),
        new SimpleRecord(key, new byte[] {0, 4, 1}), new SimpleRecord(key, new byte[0]), new SimpleRecord(key, new byte[] {127, 127, 0})));
    for (int i = 0; i < 200; i++) {
      byte[] start = i % 2 == 0 ? key.clone() : new byte[2 + random.nextInt(40)];
      byte[] value = new byte[random.nextInt(60)];
      random.nextBytes(value);
      if (i % 2 == 0) {
        start[random.nextInt(start.length)] ^= (byte) (1 << random.nextInt(8));
        value = value.length > 1 ? new byte[] {0, 1, value[1]} : value;
      } else {
        random.nextBytes(start);
        start[0] = 0;
        start[1] = (byte) random.nextInt(10);
      }
      hostile.add(new SimpleRecord(start, value));
    }
    MemoryRecords records = MemoryRecords.withRecords(Compression.NONE, hostile.toArray(SimpleRecord[]::new));
    byte[] bytes = new byte[records.sizeInBytes()];
    records.buffer().get(bytes);
    State before = state();
    Member.await(append(raw, before.topicId(), before.end(0), bytes));
    assertEquals(7, member.fetch(topics.get(0), 0));
    assertEquals(7, new Member(open(), "g").fetch(topics.get(0), 0));
    assertEquals(Errors.NONE, member.commit(topics.get(0), 0, 8));
    assertEquals(8, new Member(open(), "g").fetch(topics.get(0), 0));
  }

  /** Each position that was acknowledged is loaded again, by servers of any limit. No commit that takes no more is refused. */
  @Test
  void positionsThatTakeTooMuchMemoryAreRefusedBeforeTheyAreWritten() throws Exception {
    String limit = Integer.toString(20 * (LiveSizes.RECORD_BYTES + 100));
    Groups groups = open(Groups.BYTES_MAX, limit);
    List<String> taken = new ArrayList<>();
    Errors refused = Errors.NONE;
    for (int i = 0; refused == Errors.NONE; i++) {
      refused = new Member(groups, "g" + i).commit(topics.get(0), 0, i);
      if (refused == Errors.NONE) {
        taken.add("g" + i);
      }
    }
    assertEquals(Errors.INVALID_COMMIT_OFFSET_SIZE, refused);
    assertTrue(taken.size() > 10 && taken.size() < 25, taken.size() + " positions were taken");
    assertTrue(groups.bytes() <= groups.bytesMax());
    assertEquals(-1, new Member(groups, "g" + taken.size()).fetch(topics.get(0), 0));
    assertEquals(Errors.GROUP_MAX_SIZE_REACHED.code(), new Member(groups, "new").beat("m", 0, "t0").errorCode());
    for (Groups each : List.of(groups, open(Groups.BYTES_MAX, limit), open(Groups.BYTES_MAX, "1"))) { // The last was over it always.
      for (int i = 0; i < taken.size(); i++) {
        assertEquals(i, new Member(each, taken.get(i)).fetch(topics.get(0), 0));
        assertEquals(Errors.NONE, new Member(each, taken.get(i)).commit(topics.get(0), 0, i));
      }
      assertEquals(groups.bytes(), each.bytes());
      assertEquals(Errors.INVALID_COMMIT_OFFSET_SIZE, new Member(each, "another").commit(topics.get(0), 0, 1));
    }
    // Requests for one partition at the same time: one that is refused fails no other.
    ExecutorService clients = Executors.newFixedThreadPool(32);
    List<Future<Errors>> known = new ArrayList<>();
    List<Future<Errors>> fresh = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      int number = i % taken.size();
      String other = "more" + i;
      known.add(clients.submit(() -> new Member(groups, taken.get(number)).commit(topics.get(0), 0, number)));
      fresh.add(clients.submit(() -> new Member(groups, other).commit(topics.get(0), 0, 1)));
    }
    for (int i = 0; i < known.size(); i++) {
      assertEquals(Errors.NONE, known.get(i).get());
      assertEquals(Errors.INVALID_COMMIT_OFFSET_SIZE, fresh.get(i).get());
    }
    clients.shutdown();
    Member gone = new Member(groups, taken.get(0));
    gone.delete();
    assertEquals(Errors.NONE, new Member(groups, "another").commit(topics.get(0), 0, 1), "a group that is deleted makes room");
    assertEquals(-1, gone.fetch(topics.get(0), 0));
  }

  @Test
  void aServerHasTheShareOfTheLimitThatItHasOfThePartitions() {
    AtomicInteger ours = new AtomicInteger(1);
    RecordMemory memory = new RecordMemory(800, 8, partition -> partition < ours.get());
    assertEquals(100, memory.limit());
    memory.add(0, 90);
    assertFalse(memory.hasRoom(11));
    assertTrue(memory.hasRoom(10));
    ours.set(8); // The other servers have died.
    assertTrue(memory.hasRoom(710));
    memory.add(7, 60);
    ours.set(7);
    assertTrue(memory.hasRoom(610), "the records of a partition that moves do not count, as their share of the limit does not");
    assertEquals(150, memory.bytes());
    ours.set(0);
    assertTrue(memory.hasRoom(0));
    assertFalse(memory.hasRoom(1));
  }

  @Test
  void theMemoryOfRecordsIsThatOfTheNewestOfEachKey() {
    LiveSizes sizes = new LiveSizes();
    Map<ByteBuffer, Integer> model = new HashMap<>();
    for (int round = 0; round < 3000; round++) {
      LiveSizes.Added change = sizes.new Added();
      long before = model.values().stream().mapToLong(size -> size).sum();
      for (int i = random.nextInt(4); i >= 0; i--) {
        ByteBuffer key = ByteBuffer.wrap(("key " + random.nextInt(round < 2000 ? 500 : 20)).getBytes());
        ByteBuffer value = random.nextInt(3) == 0 ? null : ByteBuffer.allocate(random.nextInt(100));
        change.add(key, value);
        model.put(key, value == null ? 0 : key.remaining() + value.remaining() + LiveSizes.RECORD_BYTES);
      }
      long after = model.values().stream().mapToLong(size -> size).sum();
      assertEquals(after - before, change.growth());
      sizes.take(change);
      assertEquals(after, sizes.bytes());
    }
  }

  /**
   * Each program commits greater and greater offsets of its partition, by either of two coordinators, which refuse each other. A refused
   * record that is committed later all the same would take a program back.
   */
  @Test
  void positionsNeverGoBackWhileCoordinatorsRefuseEachOther() throws Exception {
    List<Groups> servers = List.of(open(Groups.PARTITIONS, "1"), open(Groups.PARTITIONS, "1"));
    List<CompletableFuture<Void>> programs = new ArrayList<>();
    for (int program = 0; program < 8; program++) {
      KnownTopic topic = topics.get(program / 4);
      int partition = program % 4;
      List<Groups> order = random.ints(Seed.either(25, 200), 0, 2).mapToObj(servers::get).toList();
      programs.add(CompletableFuture.runAsync(() -> {
        for (int offset = 0; offset < order.size(); offset++) {
          assertEquals(Errors.NONE, new Member(order.get(offset), "g").commit(topic, partition, offset));
        }
      }, task -> new Thread(task).start()));
    }
    programs.forEach(Member::await);
    Map<String, Long> newest = new HashMap<>();
    LiveRecords.read(new Root(Stores.open(directory.toString())), state(), 0, record -> {
      OffsetCommitKey key = (OffsetCommitKey) serde.deserialize(ByteBuffer.wrap(record.key()), ByteBuffer.wrap(record.value())).key();
      long offset = ((OffsetCommitValue) serde.deserialize(ByteBuffer.wrap(record.key()), ByteBuffer.wrap(record.value()))
          .value()
          .message()).offset();
      Long before = newest.put(key.topic() + key.partition(), offset);
      assertTrue(before == null || before <= offset, "after " + before + " came " + offset);
    });
    assertEquals(8, newest.size());
  }

  /** Random commits through coordinators that come and go, some at the same time, beside a model: each answer is the newest position. */
  @Test
  void randomInterleavingsGiveTheNewestPositions() {
    List<Groups> servers = new ArrayList<>(List.of(open(), open(), open()));
    Map<String, Long> model = new HashMap<>();
    int rounds = Seed.either(60, 600);
    for (int round = 0; round < rounds; round++) {
      int server = random.nextInt(servers.size());
      if (random.nextInt(12) == 0) {
        servers.set(server, open()); // The other one is left as it stands, like a process that sleeps.
      }
      List<CompletableFuture<Void>> commits = new ArrayList<>();
      for (int partition = 0; partition < 1 + random.nextInt(3); partition++) {
        String group = "g" + random.nextInt(3);
        long offset = random.nextInt(1000);
        int of = partition;
        Member member = new Member(servers.get(random.nextInt(servers.size())), group);
        commits.add(CompletableFuture.runAsync(() -> assertEquals(Errors.NONE, member.commit(topics.get(0), of, offset))));
        model.put(group + partition, offset);
      }
      commits.forEach(Member::await);
      String group = "g" + random.nextInt(3);
      int partition = random.nextInt(3);
      long found = new Member(servers.get(server), group).fetch(topics.get(0), partition);
      assertEquals(model.getOrDefault(group + partition, -1L), found, "round " + round);
    }
    assertTrue(state().start(0) > 0 || state().start(1) > 0, "nothing was compacted");
  }
}
