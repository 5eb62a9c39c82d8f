package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Requests are made at once, as far as the limit goes, and answered in order. */
@Timeout(120)
final class RequestsTest {
  private final Requests requests = new Requests(4);

  private static List<Integer> to(int count) {
    return IntStream.range(0, count).boxed().toList();
  }

  private static void await(CountDownLatch latch) throws InterruptedIOException {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new InterruptedIOException("the request was interrupted");
    }
  }

  private static void await(CyclicBarrier barrier) throws IOException {
    try {
      barrier.await();
    } catch (InterruptedException | BrokenBarrierException e) {
      throw new IOException(e);
    }
  }

  /** Each waits until four are under way: with fewer at once, none would end. */
  @Test
  void asManyAsTheLimitAreUnderWayAtOnce() throws Exception {
    CyclicBarrier four = new CyclicBarrier(4);
    AtomicInteger now = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    List<Integer> answers = requests.all(to(12), number -> {
      most.accumulateAndGet(now.incrementAndGet(), Math::max);
      await(four);
      now.decrementAndGet();
      return number * 10;
    });
    assertEquals(IntStream.range(0, 12).mapToObj(number -> number * 10).toList(), answers);
    assertEquals(4, most.get());
  }

  /** The caller takes the answers slowly: the requests do not run away from it. */
  @Test
  void noMoreAnswersAreHeldThanTheLimit() throws Exception {
    AtomicInteger begun = new AtomicInteger();
    int[] taken = {0};
    requests.each(to(40), number -> begun.incrementAndGet(), (number, answer) -> {
      assertTrue(begun.get() - taken[0] <= 4, () -> begun + " were begun when " + taken[0] + " had been taken");
      taken[0]++;
      return true;
    });
    assertEquals(40, taken[0]);
  }

  @Test
  void aCallerEndsWhenItNeedsNoFurtherAnswer() throws Exception {
    AtomicInteger begun = new AtomicInteger();
    List<Integer> taken = new ArrayList<>();
    requests.each(to(40), number -> {
      begun.incrementAndGet();
      return number;
    }, (number, answer) -> {
      taken.add(answer);
      return number < 5;
    });
    assertEquals(to(6), taken);
    assertTrue(begun.get() <= 9, begun::toString);
  }

  /** The first answers are long, and the later ones are short: only then are several asked for. */
  @Test
  void answersThatCameTellHowManyMoreAreAskedFor() throws Exception {
    AtomicInteger begun = new AtomicInteger();
    int[] bytes = {100};
    requests.each(to(8), number -> bytes[0], 100, number -> begun.incrementAndGet(), (number, answer) -> {
      if (number < 3) {
        assertEquals(number + 1, begun.get());
      }
      bytes[0] = number < 2 ? 100 : 25;
      return true;
    });
    assertEquals(8, begun.get());
  }

  /** Threads of HDFS share a connection, which an interrupt of one of them may close. */
  @Test
  void aPlaceCanDoWithoutInterrupts() throws Exception {
    Requests quiet = Requests.ofHdfs(2);
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch closed = new CountDownLatch(1);
    CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
    Requests.Pending<Void> pending = quiet.begin(() -> {
      begun.countDown();
      try {
        closed.await();
        interrupted.complete(Thread.interrupted());
      } catch (InterruptedException e) {
        interrupted.complete(true);
      }
      return null;
    });
    begun.await();
    pending.close();
    closed.countDown();
    assertFalse(interrupted.get());
  }

  /** Number 2 fails, after number 3 has and number 4 has begun: the caller is told of number 2, number 4 is interrupted, and the last
   * ones never begin. */
  @Test
  void theFirstFailureInOrderIsTold() throws Exception {
    CountDownLatch third = new CountDownLatch(1);
    CountDownLatch fourth = new CountDownLatch(1);
    CountDownLatch never = new CountDownLatch(1);
    CountDownLatch interrupted = new CountDownLatch(1);
    List<Integer> begun = Collections.synchronizedList(new ArrayList<>());
    IOException failure = assertThrows(IOException.class, () -> requests.all(to(40), number -> {
      begun.add(number);
      if (number == 2) {
        await(third);
        await(fourth);
        throw new IOException("number 2");
      }
      if (number == 3) {
        third.countDown();
        throw new IOException("number 3");
      }
      if (number > 3) {
        fourth.countDown();
        try {
          await(never);
        } catch (InterruptedIOException e) {
          interrupted.countDown();
        }
      }
      return number;
    }));
    assertEquals("number 2", failure.getMessage());
    interrupted.await();
    assertTrue(Collections.max(begun) <= 5, begun::toString);
  }

  @Test
  void errorsComeAsTheyWereThrown() {
    for (Throwable thrown : List.of(new IOException("x"), new IllegalStateException("x"), new StackOverflowError("x"))) {
      assertSame(thrown, assertThrows(Throwable.class, () -> requests.begin(() -> {
        throw RequestsTest.<RuntimeException>unchecked(thrown);
      }).answer()));
    }
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E unchecked(Throwable thrown) throws E {
    throw (E) thrown;
  }

  @Test
  void anInterruptOfTheCallerEndsItsWaitAndTheRequests() throws Exception {
    CountDownLatch begun = new CountDownLatch(4);
    CountDownLatch never = new CountDownLatch(1);
    CountDownLatch ended = new CountDownLatch(4);
    List<Object> seen = new ArrayList<>();
    Thread caller = new Thread(() -> {
      try {
        requests.all(to(40), number -> {
          begun.countDown();
          try {
            await(never);
          } finally {
            ended.countDown();
          }
          return number;
        });
      } catch (IOException e) {
        seen.add(e);
        seen.add(Thread.currentThread().isInterrupted());
      }
    });
    caller.start();
    begun.await();
    caller.interrupt();
    caller.join();
    assertSame(InterruptedIOException.class, seen.get(0).getClass());
    assertEquals(true, seen.get(1));
    ended.await();
  }

  /** More callers than threads, each of whose requests waits for requests of its own, three deep. */
  @Test
  void requestsThatWaitForRequestsEnd() throws Exception {
    assertEquals(4 * 4 * 4, leaves(3));
  }

  private int leaves(int depth) throws IOException {
    if (depth == 0) {
      return 1;
    }
    return requests.all(to(4), number -> leaves(depth - 1)).stream().mapToInt(Integer::intValue).sum();
  }

  @Test
  void aCallerMakesARequestThatNoThreadHasBegun() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    CountDownLatch begun = new CountDownLatch(4);
    List<Requests.Pending<Integer>> busy = new ArrayList<>();
    for (int number : to(4)) {
      busy.add(requests.begin(() -> {
        begun.countDown();
        await(end);
        return number;
      }));
    }
    begun.await();
    assertSame(Thread.currentThread(), requests.begin(Thread::currentThread).answer());
    end.countDown();
    for (int number : to(4)) {
      assertEquals(number, busy.get(number).answer());
    }
  }

  @Test
  void inTurnTheCallerMakesEachWhenItNeedsIt() throws Exception {
    List<String> acts = new ArrayList<>();
    Requests.IN_TURN.each(to(2), number -> {
      acts.add("made " + number + " " + Thread.currentThread().getName());
      return number;
    }, (number, answer) -> acts.add("taken " + number));
    String here = Thread.currentThread().getName();
    assertEquals(List.of("made 0 " + here, "taken 0", "made 1 " + here, "taken 1"), acts);
    Requests.IN_TURN.begin(() -> acts.add("begun")).close();
    assertEquals(4, acts.size());
  }

  @Test
  void threadsEndWhenNothingIsAsked() throws Exception {
    Requests brief = new Requests(4, true, Long.MAX_VALUE, Duration.ofMillis(1));
    CyclicBarrier four = new CyclicBarrier(4);
    List<Thread> threads = brief.all(to(4), number -> {
      await(four);
      return Thread.currentThread();
    });
    for (Thread thread : threads) {
      if (thread != Thread.currentThread()) {
        assertTrue(thread.isDaemon());
        thread.join();
      }
    }
  }

  @Test
  void aDiskHasNone() {
    assertSame(Requests.IN_TURN, assertInstanceOf(LocalStore.class, Stores.open("/tmp")).requests());
  }
}
