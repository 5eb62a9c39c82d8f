package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Runs of upkeep, handed over by several threads, by order of events. */
@Timeout(120)
final class UpkeepQueueTest {
  private final UpkeepQueue queue = new UpkeepQueue();
  /** The commits that each run followed, in the order of the runs. */
  private final List<List<String>> done = new CopyOnWriteArrayList<>();

  private class Followed implements UpkeepQueue.UpkeepRun {
    private final String kind;
    private final List<String> commits = new ArrayList<>();
    private Followed by = this;

    Followed(String kind, String commit) {
      this.kind = kind;
      commits.add(commit);
    }

    @Override
    public boolean takes(UpkeepQueue.UpkeepRun later) {
      Followed taken = (Followed) later;
      if (!taken.kind.equals(kind)) {
        return false;
      }
      commits.addAll(taken.commits);
      taken.by = this;
      return true;
    }

    @Override
    public void run() {
      done.add(List.copyOf(commits));
    }
  }

  /** A run that is at work until a test lets it end. */
  private final class Held extends Followed {
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch end = new CountDownLatch(1);

    Held() {
      super("held", "held");
    }

    @Override
    public void run() {
      begun.countDown();
      try {
        end.await();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
      super.run();
    }
  }

  private Followed added(String kind, String commit) {
    Followed run = new Followed(kind, commit);
    queue.add(run);
    return run;
  }

  private Thread started(Runnable body) {
    Thread thread = new Thread(body);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private Held held() throws InterruptedException {
    Held held = new Held();
    queue.add(held);
    started(() -> queue.await(held));
    held.begun.await();
    return held;
  }

  private static void untilItWaits(Thread thread) {
    while (thread.getState() != Thread.State.WAITING) {
      assertTrue(thread.isAlive(), "it ended, and should wait");
      Thread.onSpinWait();
    }
  }

  @Test
  void commitsThatComeMeanwhileShareARun() throws InterruptedException {
    Held held = held();
    List<Followed> runs = List.of(added("write", "1"), added("write", "2"), added("write", "3"));
    List<Thread> waiting = runs.stream().map(run -> started(() -> queue.await(run.by))).toList();
    waiting.forEach(UpkeepQueueTest::untilItWaits);
    assertEquals(List.of(), done, "nobody works beside the first");
    held.end.countDown();
    for (Thread thread : waiting) {
      thread.join();
    }
    assertEquals(List.of(List.of("held"), List.of("1", "2", "3")), done);
  }

  @Test
  void aRunThatNobodyWaitsForIsDoneByTheNextCaller() {
    added("call", "1");
    added("write", "2");
    added("write", "3");
    assertEquals(List.of(), done, "to hand over is not to work");
    queue.await(added("call", "4"));
    assertEquals(List.of(List.of("1"), List.of("2", "3"), List.of("4")), done);
  }

  @Test
  void aCallerDoesNoMoreThanItsOwnRunAndThoseBefore() {
    Followed first = added("write", "1");
    added("call", "2");
    queue.await(first);
    assertEquals(List.of(List.of("1")), done);
    queue.await(first);
    assertEquals(List.of(List.of("1")), done, "it is done");
  }

  @Test
  void anInterruptEndsNoWaiting() throws InterruptedException {
    Held held = held();
    AtomicBoolean interrupted = new AtomicBoolean();
    Followed run = new Followed("write", "1") {
      @Override
      public void run() {
        interrupted.set(Thread.currentThread().isInterrupted());
        super.run();
      }
    };
    queue.add(run);
    AtomicBoolean afterwards = new AtomicBoolean();
    Thread thread = started(() -> {
      queue.await(run);
      afterwards.set(Thread.interrupted());
    });
    untilItWaits(thread);
    thread.interrupt();
    assertEquals(List.of(), done);
    held.end.countDown();
    thread.join();
    assertEquals(List.of(List.of("held"), List.of("1")), done);
    assertTrue(interrupted.get() && afterwards.get());
  }

  @Test
  void aRunThatThrowsAnErrorKeepsNobodyWaiting() {
    Followed broken = new Followed("write", "1") {
      @Override
      public void run() {
        throw new StackOverflowError();
      }
    };
    queue.add(broken);
    assertThrows(StackOverflowError.class, () -> queue.await(broken));
    queue.await(added("write", "2"));
    assertEquals(List.of(List.of("2")), done);
    assertFalse(Thread.currentThread().isInterrupted());
  }

  /**
   * Threads hand over runs, wait for most of these, throw in some, and interrupt one another. The model is a list: each commit is followed
   * once, in the order in which the commits were handed over, by one thread at a time, and before its caller returns.
   */
  @Test
  void eachCommitIsFollowedOnceAndInOrderOverRandomInterleavings() throws InterruptedException {
    long first = Seed.draw();
    for (long seed = first; seed < first + Seed.either(40, 4_000); seed++) {
      interleave(seed);
    }
  }

  private void interleave(long seed) throws InterruptedException {
    done.clear();
    List<String> handedOver = new ArrayList<>();
    List<String> faults = Collections.synchronizedList(new ArrayList<>());
    AtomicInteger working = new AtomicInteger();
    List<Thread> threads = new ArrayList<>();
    for (int number = 0; number < 4; number++) {
      Random random = new Random(seed * 4 + number);
      String name = number + ".";
      threads.add(new Thread(() -> {
        for (int act = 0; act < 25; act++) {
          boolean throwing = random.nextInt(8) == 0;
          Followed run = new Followed(random.nextInt(3) == 0 ? "call" : "write", name + act) {
            @Override
            public void run() {
              if (working.incrementAndGet() != 1) {
                faults.add("two runs at a time");
              }
              Thread.yield();
              super.run();
              working.decrementAndGet();
              if (throwing) {
                throw new StackOverflowError();
              }
            }
          };
          synchronized (handedOver) {
            queue.add(run);
            handedOver.add(name + act);
          }
          if (random.nextInt(4) == 0) {
            threads.get(random.nextInt(threads.size())).interrupt();
          }
          if (random.nextInt(4) > 0) {
            try {
              queue.await(run.by);
            } catch (StackOverflowError expected) {
              continue; // The thread that does a run gets its Error, also in place of its own run.
            }
            if (done.stream().noneMatch(commits -> commits.contains(run.commits.get(0)))) {
              faults.add("a caller returned before its run was done");
            }
          }
        }
      }));
    }
    threads.forEach(thread -> thread.setUncaughtExceptionHandler((of, fault) -> faults.add(fault.toString())));
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      thread.join();
    }
    for (boolean left = true; left;) {
      try {
        queue.await(added("end", "end").by);
        left = false;
      } catch (StackOverflowError owed) {
        handedOver.add("end");
      }
    }
    handedOver.add("end");
    assertEquals(List.of(), faults, "seed " + seed);
    assertEquals(handedOver, done.stream().flatMap(List::stream).toList(), "seed " + seed);
  }
}
