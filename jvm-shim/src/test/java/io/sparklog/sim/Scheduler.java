package io.sparklog.sim;

import io.sparklog.spec.Invariant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

/**
 * Runs actors, each in a thread, one at a time: at each of its acts a seeded choice says which goes on, which sleeps while the others act
 * hundreds of times, and which stops for ever.
 */
final class Scheduler {
  private static final ExecutorService THREADS = Executors.newCachedThreadPool(task -> {
    Thread thread = new Thread(task, "actor");
    thread.setDaemon(true);
    return thread;
  });

  /** Ends an actor that has stopped for ever, from its next act on. */
  @SuppressWarnings("serial")
  static final class Stopped extends Error {
    private Stopped() {
      super("stopped", null, false, false);
    }
  }

  private static final Stopped STOPPED = new Stopped();

  /** The acts of an actor. */
  interface Part {
    void run() throws Exception;
  }

  /** One actor: a process with one thread. */
  final class Actor implements Runnable {
    private final String name;
    private final Part part;
    private volatile Thread thread;
    private long wakesAt;
    private boolean stopped;
    private boolean ended;

    private Actor(String name, Part part) {
      this.name = name;
      this.part = part;
    }

    @Override
    public void run() {
      thread = Thread.currentThread();
      await(this);
      try {
        if (!over) {
          part.run();
        }
      } catch (Stopped stop) {
        // As it should.
      } catch (Throwable e) {
        fail(name + (e instanceof Invariant.Broken ? " breaks an invariant: " : " failed: ") + e, e);
      }
      ended = true;
      pass(over ? null : choose());
    }

    String name() {
      return name;
    }

    boolean hasEnded() {
      return ended || stopped;
    }

    /** An act: others may act before it. */
    void act() {
      sleep(0);
    }

    /** Lets the others act so often. */
    void sleep(long acts) {
      if (over) {
        throw STOPPED;
      }
      wakesAt = acts == 0 ? 0 : step + acts;
      step++;
      Actor next = acts == 0 && random.nextInt(3) > 0 ? this : choose();
      if (next != this) {
        pass(next);
        await(this);
      }
      if (over) {
        throw STOPPED;
      }
    }
  }

  private final Random random;
  private final List<Actor> actors = new ArrayList<>();
  private final Thread main = Thread.currentThread();
  private long step;
  private long stepsMax;
  private int deaths;
  private String failure;
  private Throwable cause;
  private Runnable between = () -> {};

  /** The actor whose turn it is; null for the thread that made this. */
  private volatile Actor turn;
  private volatile boolean over;

  Scheduler(Random random) {
    this.random = random;
  }

  /** Adds an actor; it may do so while others run. */
  Actor start(String name, Part part) {
    Actor actor = new Actor(name, part);
    actors.add(actor);
    THREADS.execute(actor);
    return actor;
  }

  /** @param action is done between two acts, now and then, by the actor that has the turn */
  void between(Runnable action) {
    between = action;
  }

  /**
   * Runs all actors, until they have ended or have acted so often; what still runs then has stopped for ever.
   *
   * @param deathsMax how many may stop for ever before
   */
  void run(long acts, int deathsMax) {
    over = false;
    stepsMax = step + acts;
    deaths = deathsMax;
    pass(choose());
    await(null);
    over = true;
    for (Actor actor : List.copyOf(actors)) {
      if (!actor.ended) {
        pass(actor);
        await(null);
      }
    }
    actors.clear();
    over = false;
  }

  /** Notes what went wrong, if nothing has before, and ends the run. */
  Stopped fail(String what, Throwable why) {
    if (!over) {
      failure = failure == null ? what : failure;
      cause = cause == null ? why : cause;
      stepsMax = 0;
    }
    return STOPPED;
  }

  /** The failure of the run; null if it has none. */
  String failure() {
    return failure;
  }

  Throwable cause() {
    return cause;
  }

  boolean isOver() {
    return over;
  }

  long step() {
    return step;
  }

  /** The actor that acts next; null if all have ended. */
  private Actor choose() {
    between.run();
    while (step < stepsMax) {
      List<Actor> awake = new ArrayList<>();
      long next = Long.MAX_VALUE;
      for (Actor actor : actors) {
        if (!actor.ended && !actor.stopped) {
          if (actor.wakesAt <= step) {
            awake.add(actor);
          } else {
            next = Math.min(next, actor.wakesAt);
          }
        }
      }
      if (awake.isEmpty()) {
        if (next == Long.MAX_VALUE) {
          return null;
        }
        step = next;
        continue;
      }
      Actor actor = awake.get(random.nextInt(awake.size()));
      int what = random.nextInt(1000);
      if (what < 30) {
        actor.wakesAt = step + (long) Math.pow(2, 2 + random.nextDouble() * 7.5);
      } else if (what < 32 && deaths > 0) {
        deaths--;
        actor.stopped = true;
      } else {
        return actor;
      }
    }
    return null;
  }

  private void pass(Actor next) {
    turn = next;
    // A thread that has not begun yet looks whose turn it is when it does.
    LockSupport.unpark(next == null ? main : next.thread);
  }

  private void await(Actor me) {
    while (turn != me) {
      LockSupport.park(this);
    }
  }
}
