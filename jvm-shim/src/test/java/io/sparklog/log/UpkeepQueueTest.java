package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Runs of upkeep, handed over by several threads, by order of events. */
@Timeout(120)
final class UpkeepQueueTest {
  private final UpkeepQueue queue = new UpkeepQueue();
  /** The commits that each run followed, in the order of the runs. */
  private final List<List<String>> done = Collections.synchronizedList(new ArrayList<>());

  private class Followed implements UpkeepQueue.Run {
    private final String kind;
    private final List<String> commits = new ArrayList<>();
    private Followed by = this;

    Followed(String kind, String commit) {
      this.kind = kind;
      commits.add(commit);
    }

    @Override
    public boolean takes(UpkeepQueue.Run later) {
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
}
