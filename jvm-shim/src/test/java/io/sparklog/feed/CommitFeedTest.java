package io.sparklog.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The readers of a process share refreshes, and no reader gets a state of before its call. */
final class CommitFeedTest {
  private static final long WAIT_S = 120;

  @TempDir
  Path directory;

  private WrittenTopic topic;
  private final AtomicInteger refreshes = new AtomicInteger();

  @BeforeEach
  void open() throws Exception {
    topic = new WrittenTopic(directory, "t").with(TopicConfig.KAFKA_VIEW, "none");
    topic.segment(0, 3).commit();
  }

  /** Topics whose newest states a test gives. */
  private ReadableTopics answering(Function<String, Optional<State>> newest) {
    return (ReadableTopics) Proxy.newProxyInstance(ReadableTopics.class.getClassLoader(), new Class<?>[] {ReadableTopics.class},
        (proxy, method, arguments) -> {
          if (method.getName().equals("newest")) {
            refreshes.incrementAndGet();
            if (arguments[0] instanceof String name) {
              return newest.apply(name);
            }
            Map<String, State> states = new HashMap<>();
            ((Collection<?>) arguments[0])
                .forEach(name -> newest.apply((String) name).ifPresent(state -> states.put((String) name, state)));
            return states;
          }
          try {
            return method.invoke(topic.root, arguments);
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
        });
  }

  @Test
  void aRefreshAnswersTheCallsThatBeganBeforeIt() {
    CommitFeed feed = new CommitFeed(answering(topic.root::newest), Clock.systemUTC());
    long first = feed.now();
    long second = feed.now();
    assertEquals(3, feed.newest(List.of("t"), first).get("t").end(0));
    assertEquals(3, feed.newest(List.of("t"), second).get("t").end(0));
    assertEquals(1, refreshes.get());
    feed.newest(List.of("t"), feed.now());
    assertEquals(2, refreshes.get());
    feed.committed("t");
    feed.newest(List.of("t"), second);
    assertEquals(3, refreshes.get(), "the answer of before a commit of this process is not given");
  }

  /** The second caller waits for the refresh of the first, and has its answer. If that fails, the second caller refreshes. */
  @Test
  void callsThatWaitAtTheSameTimeShareARefresh() throws Exception {
    for (boolean fails : new boolean[] {false, true}) {
      refreshes.set(0);
      CountDownLatch isRefreshing = new CountDownLatch(1);
      CountDownLatch mayEnd = new CountDownLatch(1);
      CommitFeed feed = new CommitFeed(answering(name -> {
        isRefreshing.countDown();
        await(mayEnd);
        if (fails) {
          throw new IllegalStateException("damaged");
        }
        return topic.root.newest(name);
      }), Clock.systemUTC());
      long since = feed.now();
      CompletableFuture<Map<String, State>> one = CompletableFuture.supplyAsync(() -> feed.newest(List.of("t"), since),
          CommitFeedTest::start);
      await(isRefreshing);
      CompletableFuture<Map<String, State>> other = CompletableFuture.supplyAsync(() -> feed.newest(List.of("t"), since),
          CommitFeedTest::start);
      mayEnd.countDown();
      for (CompletableFuture<Map<String, State>> each : List.of(one, other)) {
        if (fails) {
          assertTrue(assertThrows(Exception.class, () -> each.get(WAIT_S, TimeUnit.SECONDS)).getMessage().contains("damaged"));
        } else {
          assertEquals(3, each.get(WAIT_S, TimeUnit.SECONDS).get("t").end(0));
        }
      }
      assertTrue(fails || refreshes.get() == 1, refreshes.get() + " refreshes"); // After a failure, a late caller refreshes itself.
    }
  }

  /** Such as by an interrupt of its thread alone. */
  @Test
  void aRefreshThatFailsForItsThreadFailsNoOther() throws Exception {
    CountDownLatch isRefreshing = new CountDownLatch(1);
    CountDownLatch mayFail = new CountDownLatch(1);
    CommitFeed feed = new CommitFeed(answering(name -> {
      if (isRefreshing.getCount() > 0) {
        isRefreshing.countDown();
        await(mayFail);
        throw new IllegalStateException("interrupted");
      }
      return topic.root.newest(name);
    }), Clock.systemUTC());
    long since = feed.now();
    CompletableFuture<Map<String, State>> one = CompletableFuture.supplyAsync(() -> feed.newest(List.of("t"), since),
        CommitFeedTest::start);
    await(isRefreshing);
    CompletableFuture<Map<String, State>> other = CompletableFuture.supplyAsync(() -> feed.newest(List.of("t"), since),
        CommitFeedTest::start);
    mayFail.countDown();
    assertThrows(Exception.class, () -> one.get(WAIT_S, TimeUnit.SECONDS));
    assertEquals(3, other.get(WAIT_S, TimeUnit.SECONDS).get("t").end(0));
  }

  private static void start(Runnable task) {
    new Thread(task).start();
  }

  private static void await(CountDownLatch latch) {
    try {
      assertTrue(latch.await(WAIT_S, TimeUnit.SECONDS));
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** Readers in any order beside a writer, whose commits this process is told of or not: each answer is at least as new as its call. */
  @Test
  void noAnswerIsOlderThanItsCall() throws Exception {
    List<State> states = new ArrayList<>();
    states.add(topic.root.newest("t").orElseThrow());
    for (int i = 0; i < 50; i++) {
      topic.segment(0, 1).commit();
      states.add(topic.root.newest("t").orElseThrow());
    }
    for (long seed = Seed.draw(), last = seed + Seed.either(20, 1_000); seed < last; seed++) {
      AtomicInteger current = new AtomicInteger();
      CommitFeed feed = new CommitFeed(answering(name -> {
        State found = states.get(current.get());
        Thread.yield(); // Others go on between the refresh and its answer.
        return name.equals("t") ? Optional.of(found) : Optional.empty();
      }), Clock.systemUTC());
      List<CompletableFuture<Void>> readers = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        Random random = new Random(seed * 31 + i);
        readers.add(CompletableFuture.runAsync(() -> read(feed, states, current, random), CommitFeedTest::start));
      }
      Random random = new Random(seed);
      while (current.get() < states.size() - 1) {
        current.incrementAndGet();
        if (random.nextBoolean()) {
          feed.committed("t");
        }
        Thread.yield();
      }
      for (CompletableFuture<Void> reader : readers) {
        reader.get(WAIT_S, TimeUnit.SECONDS);
      }
      assertFalse(feed.newest("absent").isPresent());
    }
  }

  private static void read(CommitFeed feed, List<State> states, AtomicInteger current, Random random) {
    for (State seen = states.get(0); seen != states.get(states.size() - 1);) {
      State floor = states.get(current.get());
      long since = feed.now();
      if (random.nextBoolean()) {
        Thread.yield();
      }
      Map<String, State> found = random.nextBoolean() ? feed.newest(List.of("t"), since) : feed.newest(List.of("absent", "t"), since);
      assertEquals(1, found.size());
      State newest = found.get("t");
      seen = newest;
      assertTrue(newest.version() >= floor.version(), () -> newest.version() + " after " + floor.version());
    }
  }
}
