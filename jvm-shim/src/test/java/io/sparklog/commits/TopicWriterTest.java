package io.sparklog.commits;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.kit.Drivers;
import io.sparklog.kit.Writes;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.storage.FaultyStore.When;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Batches that wait share a commit, are acknowledged when they are durable, and are added once. FORMAT.md section C.2 and annex B. */
@Timeout(120)
final class TopicWriterTest extends Drivers {
  private final List<TopicWriters> servers = new ArrayList<>();

  @BeforeEach
  void create() throws IOException {
    new Driver().commit(Map.of("kafka.view", "none"), 0);
  }

  @AfterEach
  void close() {
    for (TopicWriters server : servers) {
      server.close();
    }
  }

  /** Shows {@link #nowMs}, or fails so many times. */
  private final class LiveClock extends Clock {
    private final AtomicInteger failures = new AtomicInteger();

    @Override
    public Instant instant() {
      if (failures.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
        throw new OutOfMemoryError("of a test");
      }
      return Instant.ofEpochMilli(nowMs);
    }

    @Override
    public ZoneId getZone() {
      return ZoneOffset.UTC;
    }

    @Override
    public Clock withZone(ZoneId zone) {
      return this;
    }
  }

  /** A server: a process that remembers what it has seen of the topic. */
  private final class WritingServer {
    private final Driver driver;
    private final TopicWriters writers;

    WritingServer() {
      this(Stores.open(folder.toString()), CommitSettings.USUAL);
    }

    WritingServer(LogStore store, CommitSettings settings) {
      driver = new Driver(store);
      writers = new TopicWriters(driver.root, settings, topic -> {}, new LiveClock(), random);
      servers.add(writers);
    }

    CompletableFuture<AppendResult> send(int partition, ClientBatch batch) {
      return writers.append("t", partition, batch.bytes(), CompletableFuture.completedFuture(checked(partition, batch)));
    }

    PreparedAppend checked(int partition, ClientBatch batch) {
      try {
        Intake intake = new Intake(driver.root.state("t"), clock());
        return intake.prepared(partition, batch.bytes());
      } catch (AppendRefused e) {
        throw new AssertionError(e);
      }
    }
  }

  private static AppendResult done(CompletableFuture<AppendResult> future) throws Exception {
    return future.get(60, TimeUnit.SECONDS);
  }

  private static AppendRefused.Reason refusal(CompletableFuture<?> future) {
    ExecutionException failed = assertThrows(ExecutionException.class, () -> future.get(60, TimeUnit.SECONDS));
    return ((AppendRefused) failed.getCause()).refusal();
  }

  private int files() throws IOException {
    return (int) data().stream().filter(file -> file.matches(".*/t0-[0-9]+\\.log")).count();
  }

  @Test
  void batchesThatWaitTogetherShareACommit() throws Exception {
    WritingServer server = new WritingServer();
    State before = state();
    CompletableFuture<PreparedAppend> slow = new CompletableFuture<>();
    List<CompletableFuture<AppendResult>> sent = new ArrayList<>();
    sent.add(server.writers.append("t", 1, ByteBuffer.allocate(100), slow));
    for (int i = 0; i < 50; i++) {
      sent.add(server.send(i % 4, ClientBatch.of(3, "v" + i)));
    }
    slow.complete(server.checked(1, ClientBatch.of(2, "first")));
    long[] ends = before.ends();
    for (int i = 0; i < sent.size(); i++) {
      int partition = i == 0 ? 1 : (i - 1) % 4;
      int records = i == 0 ? 2 : 3;
      assertEquals(new AppendResult(ends[partition], ends[partition] + records, 0, -1), done(sent.get(i)), "batch " + i);
      ends[partition] += records;
    }
    assertTrue(state().version() <= before.version() + 2, "51 batches took " + (state().version() - before.version()) + " versions");
    assertTrue(files() <= 2);
  }

  @Test
  void aBatchThatIsSentAgainHasItsFirstOffset() throws Exception {
    WritingServer server = new WritingServer();
    WritingServer other = new WritingServer();
    AppendResult first = done(server.send(0, ClientBatch.of(3, "a").by(7, 0, 0)));
    assertEquals(first, done(server.send(0, ClientBatch.of(3, "a").by(7, 0, 0))));
    assertEquals(first, done(other.send(0, ClientBatch.of(3, "a").by(7, 0, 0))));
    AppendResult second = done(other.send(0, ClientBatch.of(2, "b").by(7, 0, 3)));
    assertEquals(first.end(), second.base());
    assertEquals(AppendRefused.Reason.OUT_OF_ORDER, refusal(server.send(0, ClientBatch.of(2, "d").by(7, 0, 7))));
    assertEquals(second.end(), done(server.send(0, ClientBatch.of(2, "c").by(7, 1, 0))).base());
    assertEquals(AppendRefused.Reason.OLD_EPOCH, refusal(other.send(0, ClientBatch.of(2, "d").by(7, 0, 5))));
    assertEquals(second.end() + 2, state().end(0));
    assertEquals(3, files(), "a batch that is there already is not written");
  }

  /** This server has made its data file, and then the other server commits the same batch, after another batch. */
  @Test
  void theStateThatTheVersionExtendsDecides() throws Exception {
    WritingServer other = new WritingServer();
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString()));
    WritingServer server = new WritingServer(store.store(), CommitSettings.USUAL);
    ClientBatch batch = ClientBatch.of(3, "a").by(7, 0, 0);
    long end = state().end(0);
    AtomicInteger times = new AtomicInteger();
    List<AppendResult> others = new ArrayList<>();
    store.at((call, name, when) -> {
      if (call.equals("putIfAbsent") && when == When.BEFORE && times.getAndIncrement() == 0) {
        done(other.send(0, ClientBatch.of(5, "x")));
        others.add(done(other.send(0, batch)));
      }
    });
    AppendResult own = done(server.send(0, batch));
    assertEquals(others.get(0), own);
    assertEquals(end + 5, own.base());
    assertEquals(end + 8, state().end(0));
    assertEquals(2, files(), "the file that no version names is deleted");
  }

  /** Another program is first: the same data file has other offsets. */
  @Test
  void aLostRaceWritesNothingAgain() throws Exception {
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString()));
    WritingServer server = new WritingServer(store.store(), CommitSettings.USUAL);
    AtomicInteger times = new AtomicInteger();
    store.at((call, name, when) -> {
      if (call.equals("putIfAbsent") && when == When.BEFORE && times.getAndIncrement() < 3) {
        new Driver().commit();
      }
    });
    AppendResult own = done(server.send(0, ClientBatch.of(3, "a").by(7, 0, 0)));
    assertEquals(state().end(0), own.end());
    assertEquals(1, files());
    assertEquals(4, times.get());
  }

  @Test
  void anAcknowledgementComesAfterTheVersionIsDurable() throws Exception {
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString()));
    WritingServer server = new WritingServer(store.store(), CommitSettings.USUAL);
    List<CompletableFuture<AppendResult>> sent = new ArrayList<>();
    List<Boolean> early = new ArrayList<>();
    store.at((call, name, when) -> {
      if (call.equals("putIfAbsent")) {
        early.add(sent.get(0).isDone());
      }
    });
    CompletableFuture<PreparedAppend> later = new CompletableFuture<>();
    sent.add(server.writers.append("t", 0, ByteBuffer.allocate(100), later));
    later.complete(server.checked(0, ClientBatch.of(3, "a")));
    done(sent.get(0));
    assertEquals(List.of(false, false), early);
  }

  @Test
  void aLostAnswerIsFoundOut() throws Exception {
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString())).fail("putIfAbsent", 1, When.AFTER, new IOException("no answer"));
    WritingServer server = new WritingServer(store.store(), CommitSettings.USUAL);
    long end = state().end(0);
    assertEquals(end, done(server.send(0, ClientBatch.of(3, "a").by(7, 0, 0))).base());
    assertEquals(end + 3, state().end(0));
  }

  /** The client learns that the outcome is unknown. It sends the batch again, and the next state shows whether the put came late. */
  @Test
  void aPutThatComesLateAddsNothingTwice() throws Exception {
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString()));
    WritingServer server = new WritingServer(store.store(), CommitSettings.USUAL);
    long end = state().end(0);
    ClientBatch batch = ClientBatch.of(3, "a").by(7, 0, 0);
    store.holdBack(5);
    assertEquals(AppendRefused.Reason.UNKNOWN_OUTCOME, refusal(server.send(0, batch)));
    assertTrue(files() > 0, "a version may name the file still");
    store.land();
    assertEquals(end, done(server.send(0, batch)).base());
    assertEquals(end + 3, state().end(0));
  }

  @Test
  void aFullDiskLeavesNothingAndLosesNothing() throws Exception {
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString()));
    WritingServer server = new WritingServer(store.store(), CommitSettings.USUAL);
    long end = state().end(0);
    AtomicInteger full = new AtomicInteger(3);
    store.at((call, name, when) -> {
      if (call.equals("flush") && name.contains("/data/") && when == When.BEFORE && full.getAndDecrement() > 0) {
        throw new IOException("No space left on device");
      }
    });
    for (int i = 0; i < 3; i++) {
      assertEquals(AppendRefused.Reason.STORAGE, refusal(server.send(0, ClientBatch.of(3, "a").by(7, 0, 0))));
      assertEquals(0, files());
    }
    assertEquals(end, done(server.send(0, ClientBatch.of(3, "a").by(7, 0, 0))).base());
  }

  @Test
  void batchesForAnotherTopicOfTheNameAreRefused() throws Exception {
    WritingServer server = new WritingServer();
    CompletableFuture<PreparedAppend> old = CompletableFuture.completedFuture(server.checked(0, ClientBatch.of(3, "a")));
    Administration operator = new Administration(new TopicWork(new Driver().log(), clock(), random));
    operator.delete(false);
    assertEquals(AppendRefused.Reason.UNKNOWN_TOPIC, refusal(server.writers.append("t", 0, ByteBuffer.allocate(100), old)));
    new Driver().commit(Map.of(), 0);
    assertEquals(AppendRefused.Reason.TOPIC_RECREATED, refusal(server.writers.append("t", 0, ByteBuffer.allocate(100), old)));
    done(server.send(0, ClientBatch.of(3, "b")));
  }

  /** @param config of the new topic, as key and value */
  private void createAgain(String... config) throws IOException {
    new Administration(new TopicWork(new Driver().log(), clock(), random)).delete(false);
    new Driver().commit(config.length == 0 ? Map.of() : Map.of(config[0], config[1]), 0);
  }

  /** The topic is deleted and created again between the check of a batch and the put of its version. */
  @Test
  void noBatchGoesToATopicThatTookTheNameDuringItsCommit() throws Exception {
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString()));
    WritingServer server = new WritingServer(store.store(), CommitSettings.USUAL);
    AtomicInteger times = new AtomicInteger();
    store.at((call, name, when) -> {
      if (call.equals("putIfAbsent") && when == When.BEFORE && times.getAndIncrement() == 0) {
        createAgain();
      }
    });
    assertEquals(AppendRefused.Reason.TOPIC_RECREATED, refusal(server.send(0, ClientBatch.of(3, "a").by(7, 0, 0))));
    long end = state().end(0);
    assertEquals(0, files());
    assertEquals(end, done(server.send(0, ClientBatch.of(3, "a").by(7, 0, 0))).base());
    assertEquals(end + 3, state().end(0));
  }

  /** Batches for both topics of the name wait for one commit, while the commit before it waits for the check of a batch. */
  @Test
  void aCommitAddsTheBatchesForTheNewTopicAloneAndNoneBeforeARefusedBatchOfItsProducer() throws Exception {
    WritingServer server = new WritingServer();
    CompletableFuture<PreparedAppend> slow = new CompletableFuture<>();
    CompletableFuture<AppendResult> before = server.writers.append("t", 1, ByteBuffer.allocate(100), slow);
    ClientBatch first = ClientBatch.of(3, "first").by(7, 0, 4);
    ClientBatch second = ClientBatch.of(2, "second").by(7, 0, 7);
    CompletableFuture<AppendResult> old = server.send(0, first);
    createAgain();
    long[] ends = state().ends();
    CompletableFuture<AppendResult> early = server.send(0, second);
    CompletableFuture<AppendResult> alsoEarly = server.send(0, ClientBatch.of(1, "third").by(7, 0, 9));
    CompletableFuture<AppendResult> elsewhere = server.send(1, second);
    CompletableFuture<AppendResult> ofOther = server.send(0, ClientBatch.of(5, "other").by(8, 0, 0));
    slow.completeExceptionally(new AppendRefused(AppendRefused.Reason.CORRUPT, "it is damaged"));
    assertEquals(AppendRefused.Reason.CORRUPT, refusal(before));
    assertEquals(AppendRefused.Reason.TOPIC_RECREATED, refusal(old));
    assertEquals(AppendRefused.Reason.OUT_OF_ORDER, refusal(early));
    assertEquals(AppendRefused.Reason.OUT_OF_ORDER, refusal(alsoEarly));
    assertEquals(ends[1], done(elsewhere).base());
    assertEquals(ends[0], done(ofOther).base());
    assertEquals(ends[0] + 5, done(server.send(0, first)).base());
    assertEquals(ends[0] + 8, done(server.send(0, second)).base());
    assertEquals(ends[0] + 10, state().end(0));
  }

  @Test
  void aRefusedBatchHoldsUpNoOther() throws Exception {
    WritingServer server = new WritingServer();
    CompletableFuture<PreparedAppend> bad = new CompletableFuture<>();
    CompletableFuture<AppendResult> refused = server.writers.append("t", 0, ByteBuffer.allocate(100), bad);
    CompletableFuture<AppendResult> good = server.send(0, ClientBatch.of(3, "b"));
    bad.completeExceptionally(new AppendRefused(AppendRefused.Reason.CORRUPT, "it is damaged"));
    assertEquals(AppendRefused.Reason.CORRUPT, refusal(refused));
    done(good);
  }

  /** The queue is full at the first batch of a producer, and has room for the second. */
  @Test
  void noBatchIsAddedBeforeARefusedBatchOfItsProducer() throws Exception {
    WritingServer server = new WritingServer(Stores.open(folder.toString()), new CommitSettings(0, 0, 1000, 0, false));
    CompletableFuture<PreparedAppend> slow = new CompletableFuture<>();
    CompletableFuture<AppendResult> full = server.writers.append("t", 1, ByteBuffer.allocate(800), slow);
    ClientBatch first = ClientBatch.of(20, "first").by(7, 0, 0);
    ClientBatch second = ClientBatch.of(1, "second").by(7, 0, 20);
    assertEquals(AppendRefused.Reason.BUSY, refusal(server.send(0, first)));
    CompletableFuture<AppendResult> early = server.send(0, second);
    CompletableFuture<AppendResult> other = server.send(0, ClientBatch.of(1, "other").by(8, 0, 20));
    slow.complete(server.checked(1, ClientBatch.of(1, "v")));
    done(full);
    done(other);
    assertEquals(AppendRefused.Reason.OUT_OF_ORDER, refusal(early));
    assertEquals(done(server.send(0, first)).end(), done(server.send(0, second)).base());
  }

  /** The first batch came damaged, and shares its commit with the second. */
  @Test
  void noBatchIsAddedBeforeADamagedBatchOfItsProducer() throws Exception {
    WritingServer server = new WritingServer();
    CompletableFuture<PreparedAppend> bad = new CompletableFuture<>();
    ClientBatch first = ClientBatch.of(3, "first").by(7, 0, 0);
    ClientBatch second = ClientBatch.of(1, "second").by(7, 0, 3);
    CompletableFuture<AppendResult> damaged = server.writers.append("t", 0, first.bytes(), bad);
    CompletableFuture<AppendResult> early = server.send(0, second);
    bad.completeExceptionally(new AppendRefused(AppendRefused.Reason.CORRUPT, "it is damaged"));
    assertEquals(AppendRefused.Reason.CORRUPT, refusal(damaged));
    assertEquals(AppendRefused.Reason.OUT_OF_ORDER, refusal(early));
    done(server.send(0, ClientBatch.of(1, "new").by(7, 1, 0)));
  }

  @Test
  void noBatchIsAddedBeforeABatchWhoseCommitFailed() throws Exception {
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString()));
    WritingServer server = new WritingServer(store.store(), CommitSettings.USUAL);
    AtomicInteger full = new AtomicInteger(1);
    store.at((call, name, when) -> {
      if (call.equals("flush") && name.contains("/data/") && when == When.BEFORE && full.getAndDecrement() > 0) {
        throw new IOException("No space left on device");
      }
    });
    assertEquals(AppendRefused.Reason.STORAGE, refusal(server.send(0, ClientBatch.of(3, "first").by(7, 0, 0))));
    assertEquals(AppendRefused.Reason.OUT_OF_ORDER, refusal(server.send(0, ClientBatch.of(1, "second").by(7, 0, 3))));
    nowMs += 300_000; // The client gave up.
    done(server.send(0, ClientBatch.of(1, "second").by(7, 0, 3)));
  }

  @Test
  void aBatchThatIsRefusedForGoodHoldsUpNoOther() throws Exception {
    WritingServer server = new WritingServer();
    CompletableFuture<PreparedAppend> bad = new CompletableFuture<>();
    CompletableFuture<AppendResult> refused = server.writers.append("t", 0, ClientBatch.of(3, "first").by(7, 0, 0).bytes(), bad);
    bad.completeExceptionally(new AppendRefused(AppendRefused.Reason.INVALID_RECORD, "it has no records"));
    assertEquals(AppendRefused.Reason.INVALID_RECORD, refusal(refused));
    done(server.send(0, ClientBatch.of(1, "second").by(7, 0, 3)));
  }

  /** The topic has the batch with the time of its first commit, which is not known any more. */
  @Test
  void aBatchThatIsSentAgainHasNoNewLogAppendTime() throws Exception {
    createAgain("message.timestamp.type", "LogAppendTime");
    WritingServer server = new WritingServer();
    ClientBatch batch = ClientBatch.of(3, "a").by(7, 0, 0);
    AppendResult first = done(server.send(0, batch));
    assertEquals(nowMs, first.time());
    nowMs += 1000;
    assertEquals(new AppendResult(first.base(), first.end(), 0, -1), done(server.send(0, batch)));
  }

  @Test
  void aTopicWithSlotsTakesKeysInTheirPartitionsAlone() throws Exception {
    Administration operator = new Administration(new TopicWork(new Driver().log(), clock(), random));
    operator.addPartitions(5, Administration.RerouteTime.NEXT_WRITE, false);
    WritingServer server = new WritingServer();
    done(server.send(0, ClientBatch.of(2, "v")));
    assertEquals(5, state().partitions(), "the re-route that waited is done before the write");
    int home = state().partition("k".getBytes(StandardCharsets.UTF_8)).orElseThrow();
    int other = (home + 1) % 5;
    ClientBatch keyed = ClientBatch.of(2, "v").keyed("k");
    AppendResult first = done(server.send(home, keyed.by(7, 0, 0)));
    assertEquals(AppendRefused.Reason.POLICY, refusal(server.send(other, keyed)));
    operator.closePartitions(Set.of(home), Administration.RerouteTime.NOW, false);
    assertEquals(first.base(), done(server.send(home, keyed.by(7, 0, 0))).base(), "the topic has the batch since before the re-route");
    assertEquals(AppendRefused.Reason.POLICY, refusal(server.send(home, keyed.by(7, 0, 2))));
    WritingServer lenient = new WritingServer(Stores.open(folder.toString()), new CommitSettings(0, 0, 1 << 20, 0, true));
    done(lenient.send(other, keyed));
    List<Segment> segments = state().segments(other);
    assertFalse(segments.get(segments.size() - 1).routed());
  }

  @Test
  void theQueueIsBounded() throws Exception {
    WritingServer server = new WritingServer(Stores.open(folder.toString()), new CommitSettings(0, 0, 1000, 0, false));
    CompletableFuture<PreparedAppend> slow = new CompletableFuture<>();
    CompletableFuture<AppendResult> first = server.writers.append("t", 0, ByteBuffer.allocate(900), slow);
    assertEquals(AppendRefused.Reason.BUSY, refusal(server.writers.append("t", 0, ByteBuffer.allocate(200), slow)));
    slow.complete(server.checked(0, ClientBatch.of(1, "v")));
    done(first);
    done(server.writers.append("t", 0, ByteBuffer.allocate(900), slow));
  }

  private GroupCommit.Arrival arrival(CompletableFuture<PreparedAppend> checked) {
    return new GroupCommit.Arrival(0, 100, checked, new CompletableFuture<>(), nowMs);
  }

  private static AppendRefused.Reason refused(TopicWriter writer, GroupCommit.Arrival arrival) {
    writer.queue(arrival);
    writer.start();
    return refusal(arrival.done());
  }

  @Test
  void withoutAThreadBatchesAreRefused() {
    CommitThreads none = new CommitThreads();
    none.end();
    TopicWriter.Context context = new TopicWriter.Context(CommitSettings.USUAL, none, topic -> {}, clock(), random, new Resends(clock()));
    TopicWriter writer = new TopicWriter(context, new Driver().log(), () -> {});
    assertEquals(AppendRefused.Reason.STORAGE, refused(writer, arrival(new CompletableFuture<>())));
    assertEquals(AppendRefused.Reason.STORAGE, refused(writer, arrival(new CompletableFuture<>())), "the next arrival tries again");
  }

  @Test
  void anErrorBetweenTwoCommitsLeavesNoTopicWithoutAWriter() throws Exception {
    WritingServer server = new WritingServer();
    LiveClock clock = new LiveClock();
    TopicWriter.Context context = new TopicWriter.Context(CommitSettings.USUAL, new CommitThreads(), topic -> {}, clock, random,
        new Resends(clock));
    TopicWriter writer = new TopicWriter(context, new Driver().log(), () -> {});
    clock.failures.set(1);
    CompletableFuture<PreparedAppend> checked = CompletableFuture.completedFuture(server.checked(0, ClientBatch.of(3, "v")));
    assertEquals(AppendRefused.Reason.STORAGE, refused(writer, arrival(checked)));
    GroupCommit.Arrival next = arrival(checked);
    writer.queue(next);
    writer.start();
    done(next.done());
    context.threads().end();
  }

  @Test
  void aTopicThatDoesNotExistKeepsNoWriter() throws Exception {
    WritingServer server = new WritingServer();
    done(server.send(0, ClientBatch.of(1, "v")));
    CompletableFuture<PreparedAppend> checked = CompletableFuture.completedFuture(server.checked(0, ClientBatch.of(1, "v")));
    assertEquals(AppendRefused.Reason.UNKNOWN_TOPIC, refusal(server.writers.append("absent", 0, ByteBuffer.allocate(100), checked)));
    while (server.writers.serves("absent")) {
      Thread.sleep(1); // The writer ends after its answers.
    }
    assertTrue(server.writers.serves("t"));
  }

  /** A small commit syncs its data file, the data folder, the version file and the topic's folder. */
  @Test
  void commitsShareADataFolder() throws Exception {
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString()));
    WritingServer server = new WritingServer(store.store(), CommitSettings.USUAL);
    done(server.send(0, ClientBatch.of(1, "v")));
    List<String> opening = List.copyOf(store.calls());
    store.calls().clear();
    for (int i = 0; i < 20; i++) {
      done(server.send(0, ClientBatch.of(1, "v")));
    }
    TreeSet<String> folders = new TreeSet<>();
    data().stream().filter(file -> file.contains("/t0-")).forEach(file -> folders.add(file.replaceAll("/[^/]*$", "")));
    assertEquals(1, folders.size());
    List<String> calls = List.copyOf(store.calls());
    assertEquals(20, calls.stream().filter(call -> call.startsWith("create _partlog/t/data/")).count());
    assertEquals(20, calls.stream().filter(call -> call.startsWith("putIfAbsent ")).count());
    assertEquals(20, calls.stream().filter(call -> call.startsWith("flush ")).count(), "the data folder alone: " + calls);
    assertTrue(opening.contains("flush _partlog/t/data"), "the name of a new data folder: " + opening);
  }

  /** The records of a small commit share a file. So a Kafka view of links gets them when they are merged. */
  @Test
  void aViewOfLinksCostsASmallCommitNothing() throws Exception {
    Map<String, Long> without = callsOfSmallCommits("none");
    without.remove("deleteFolderIfEmpty"); // At a checkpoint, of a view that there may have been before.
    assertEquals(without, callsOfSmallCommits("merged"));
    assertTrue(without.get("putIfAbsent") >= 20 && !without.containsKey("link"), without.toString());
    assertTrue(callsOfSmallCommits("all").get("create") > without.get("create"), "copies, which a view of all segments has");
  }

  /** The calls of the store by 20 commits and their upkeep, by their names. @param view of a new topic, which has its name */
  private Map<String, Long> callsOfSmallCommits(String view) throws Exception {
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString()));
    Root root = new Driver(store.store()).root;
    Map<String, String> config = Writes.config();
    config.put("kafka.view", view);
    new Administration(new TopicWork(root.topic(view), clock(), random)).create(TopicConfig.of(config), Names.identity(random));
    SteppedWriters writers = new SteppedWriters(root, clock(), random);
    for (int i = 0; i <= 20; i++) {
      if (i == 1) {
        store.calls().clear(); // A process looks at the whole view once.
      }
      CompletableFuture<AppendResult> sent = writers.append(view, Optional.of(root.state(view)), i % 3, 7, i / 3, 1, "v");
      writers.commit();
      done(sent);
      writers.keepUp();
    }
    return List.copyOf(store.calls())
        .stream()
        .collect(Collectors.groupingBy(call -> call.split(" ")[0], TreeMap::new, Collectors.counting()));
  }

  @Test
  void aFolderThatWasDeletedIsMadeAgain() throws Exception {
    WritingServer server = new WritingServer();
    done(server.send(0, ClientBatch.of(1, "v")));
    new Driver().replace();
    for (String file : data()) {
      if (file.contains("/t0-")) {
        Files.delete(folder.resolve(file));
        Files.delete(folder.resolve(file).getParent());
      }
    }
    long end = state().end(0);
    assertEquals(end, done(server.send(0, ClientBatch.of(1, "v"))).base());
  }
}
