package io.sparklog.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.MillisClock;
import io.sparklog.kit.RemoteReads;
import io.sparklog.kit.Seed;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.Root;
import io.sparklog.log.TopicConfig;
import io.sparklog.storage.Stores;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Clock;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Requests that wait are woken by commits, and by nothing else. */
final class CommitWaitsTest {
  private static final long LONG_MS = TimeUnit.MINUTES.toMillis(10);
  private static final long WAIT_S = 120;

  @TempDir
  Path directory;

  private final ExecutorService work = Executors.newFixedThreadPool(2);
  private final AtomicInteger refreshes = new AtomicInteger();

  /** Runs once, when the next refresh has its answer, and before the caller has it. */
  private final AtomicReference<Runnable> afterRefresh = new AtomicReference<>(() -> {});
  private WrittenTopic topic;
  private CommitWaits commits;

  @BeforeEach
  void open() throws Exception {
    topic = new WrittenTopic(directory, "t").with(TopicConfig.KAFKA_VIEW, "none");
    topic.segment(0, 3).commit();
    commits = new CommitWaits(counted(topic.root), work, Clock.systemUTC());
  }

  @AfterEach
  void close() {
    commits.close();
    work.shutdownNow();
  }

  /** Counts refreshes at topics. */
  private ReadableTopics counted(ReadableTopics topics) {
    return (ReadableTopics) Proxy.newProxyInstance(ReadableTopics.class.getClassLoader(), new Class<?>[] {ReadableTopics.class},
        (proxy, method, arguments) -> {
          if (method.getName().equals("newest")) {
            refreshes.incrementAndGet();
          }
          try {
            Object found = method.invoke(topics, arguments);
            if (method.getName().equals("newest")) {
              afterRefresh.getAndSet(() -> {}).run();
            }
            return found;
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
        });
  }

  private CompletableFuture<Boolean> until(long end, long ms) {
    return commits.await(Set.of("t"), () -> commits.recent("t").orElseThrow().end(0) >= end, ms);
  }

  @Test
  void aWaitEndsWithACommitOfAnotherProcess() throws Exception {
    CompletableFuture<Boolean> wait = until(6, LONG_MS);
    assertFalse(wait.isDone());
    assertEquals(1, commits.waiting("t"));
    topic.segment(0, 3).commit();
    assertTrue(wait.get(WAIT_S, TimeUnit.SECONDS));
    requireForgotten();
  }

  /** A wait is forgotten a moment after its end. */
  private void requireForgotten() throws InterruptedException {
    for (int i = 0; i < WAIT_S * 100 && commits.waiting("t") > 0; i++) {
      Thread.sleep(10);
    }
    assertEquals(0, commits.waiting("t"));
  }

  /** As of a topic whose commits no refresh has shown yet. */
  @Test
  void aCommitOfThisProcessEndsAWaitAtOnce() throws Exception {
    AtomicBoolean isThere = new AtomicBoolean();
    commits.recent("t");
    CompletableFuture<Boolean> wait = commits.await(Set.of("t"), isThere::get, LONG_MS);
    isThere.set(true);
    for (int before = refreshes.get(); refreshes.get() < before + 3;) {
      Thread.onSpinWait();
    }
    assertFalse(wait.isDone(), "refreshes that show nothing new wake nobody");
    commits.committed("t");
    assertTrue(wait.get(WAIT_S, TimeUnit.SECONDS));
  }

  @Test
  void aWaitForRecordsThatAreThereTakesNoTime() throws Exception {
    assertTrue(until(3, LONG_MS).getNow(false));
    assertEquals(0, commits.waiting("t"));
  }

  @Test
  void aWaitEndsAfterItsTime() throws Exception {
    assertFalse(until(6, 1).get(WAIT_S, TimeUnit.SECONDS));
    requireForgotten();
  }

  @Test
  void aWaitThatIsCancelledIsForgotten() {
    until(6, LONG_MS).cancel(false);
    assertEquals(0, commits.waiting("t"));
  }

  @Test
  void aServerThatClosesEndsAllWaits() throws Exception {
    CompletableFuture<Boolean> wait = until(6, LONG_MS);
    commits.close();
    assertFalse(wait.get(WAIT_S, TimeUnit.SECONDS));
    assertFalse(until(6, LONG_MS).get(WAIT_S, TimeUnit.SECONDS));
  }

  /** Clients may ask for any name. */
  @Test
  void aTopicThatDoesNotExistIsForgottenAfterItsWait() {
    for (int i = 0; i < 100; i++) {
      String name = "absent" + i;
      commits.await(Set.of(name), () -> commits.recent(name).isPresent(), LONG_MS).cancel(false);
    }
    assertEquals(0, commits.topics());
  }

  @Test
  void aFaultEndsAWait() {
    CompletableFuture<Boolean> wait = commits.await(Set.of("t"), () -> {
      throw new IllegalStateException("damaged");
    }, LONG_MS);
    Exception failure = assertThrows(ExecutionException.class, () -> wait.get(WAIT_S, TimeUnit.SECONDS));
    assertEquals("damaged", failure.getCause().getMessage());
  }

  /** A refresh that finds no topic forgets it, also while a wait for it begins. */
  @Test
  void aWaitForATopicThatComesIsFoundBesideRefreshesThatFindNoTopic() throws Exception {
    AtomicBoolean isOver = new AtomicBoolean();
    CompletableFuture<Void> others = CompletableFuture.runAsync(() -> {
      while (!isOver.get()) {
        commits.newest("absent");
      }
    }, task -> new Thread(task).start());
    try {
      for (int i = 0; i < Seed.either(2_000, 20_000); i++) {
        AtomicBoolean isThere = new AtomicBoolean();
        CompletableFuture<Boolean> wait = commits.await(Set.of("absent"), isThere::get, LONG_MS);
        isThere.set(true);
        commits.committed("absent");
        assertTrue(wait.get(WAIT_S, TimeUnit.SECONDS));
      }
    } finally {
      isOver.set(true);
      others.join();
    }
  }

  /** Where each refresh is a request, many consumers of a topic share a refresh. */
  @Test
  void refreshesThatTakeRequestsAreShared() {
    Root root = new Root(new RemoteReads(Stores.open(directory.toString())).store());
    MillisClock clock = new MillisClock(() -> 1_000_000);
    CommitWaits remote = new CommitWaits(counted(root), work, clock);
    refreshes.set(0);
    for (int i = 0; i < 100; i++) {
      assertEquals(3, remote.recent("t").orElseThrow().end(0));
    }
    assertEquals(1, refreshes.get());
    remote.committed("t");
    remote.recent("t");
    assertEquals(2, refreshes.get(), "after a commit of this process, a state may be old");
    remote.newest("t");
    assertEquals(3, refreshes.get());
    remote.close();
  }

  /** The answer of the refresh is older than the commit, and comes after it. */
  @Test
  void aRefreshThatBeganBeforeACommitDoesNotHideIt() {
    Root root = new Root(new RemoteReads(Stores.open(directory.toString())).store());
    CommitWaits remote = new CommitWaits(counted(root), work, new MillisClock(() -> 1_000_000));
    afterRefresh.set(() -> {
      append();
      remote.committed("t");
    });
    assertEquals(3, remote.recent("t").orElseThrow().end(0));
    assertEquals(6, remote.recent("t").orElseThrow().end(0));
    afterRefresh.set(() -> {
      append();
      assertEquals(9, remote.newest("t").orElseThrow().end(0));
    });
    remote.newest("t");
    assertEquals(9, remote.recent("t").orElseThrow().end(0), "nor does it hide a later refresh");
    remote.close();
  }

  private void append() {
    try {
      topic.segment(0, 3).commit();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }
}
