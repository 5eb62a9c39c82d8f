package io.sparklog.sim;

import io.sparklog.kit.MillisClock;
import io.sparklog.kit.Warned;
import io.sparklog.log.Pace;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.MemoryStore;
import io.sparklog.storage.NoAnswerException;
import java.io.IOException;
import java.io.SyncFailedException;
import java.time.Clock;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;

/** A process: its view of the store, where acts may fail or their answers be lost, its clock, and what it remembers of the topic. */
final class Process implements MemoryStore.Acts {
  /** Errors that no order of acts and no fault excuses. */
  private static final Set<String> NEVER = Set.of("VERSION_CORRUPT", "VERSION_MISSING", "FORMAT_TOO_NEW", "SEGMENT_CORRUPT",
      "BATCH_CORRUPT", "FOREIGN_SEGMENTS", "FILE_LENGTH", "COMMIT_TOO_LARGE");

  private static final Duration LATE_LIMIT = Duration.ofSeconds(1);

  final World world;
  final String name;
  final MemoryStore store;
  final Clock clock;
  private final long skewMs;
  /** Whether it sleeps long and meets faults at the moments of the world. */
  private final boolean unlucky;
  private final Scheduler.Actor actor;
  private Root root;
  private int faults;

  /** The acts of an actor in its process. */
  interface Part {
    void run(Process process) throws Exception;
  }

  private Process(World world, String name, Part part) {
    this.world = world;
    this.name = name;
    store = world.place.isFar() ? new MemoryStore(this) : new MemoryStore.Linking(this);
    skewMs = world.chance(3) ? world.random.nextInt(7_200_000) - 3_600_000 : 0;
    unlucky = part != null && world.isUnlucky();
    clock = new MillisClock(() -> world.nowMs() + skewMs); // It may be an hour off.
    forget();
    if (part == null) {
      actor = null;
      Warned.listen(this::swallowed);
    } else {
      actor = world.scheduler.start(name, () -> {
        Warned.listen(this::swallowed);
        part.run(this);
      });
    }
  }

  /** Starts a process that does {@code part} among others. */
  static Process start(World world, String name, Part part) {
    return new Process(world, name, part);
  }

  /** A process that acts alone, in the thread of the caller. */
  static Process alone(World world, String name) {
    return new Process(world, name, null);
  }

  /** Forgets what it knows of the topic, as a process that starts. */
  void forget() {
    root = new Root(store, new Pace(world.checkpointVersions, world.mergedSegments, ms -> sleep(ms / 4), clock));
  }

  Root root() {
    return root;
  }

  TopicLog log() {
    return root.topic(Truth.TOPIC);
  }

  void sleep(long acts) {
    if (actor != null && acts > 0) {
      actor.sleep(acts);
    } else if (actor == null) {
      world.pass(acts);
    }
  }

  /** How many faults this process has met. */
  int faults() {
    return faults;
  }

  /** The newest state, also of a deleted topic, checked to be that. */
  Optional<State> latest() {
    int since = world.truth.count();
    Optional<State> found = log().latest();
    check(() -> world.truth.requireNewest(since, found));
    return found;
  }

  void check(Runnable that) {
    try {
      that.run();
    } catch (Truth.Broken e) {
      throw world.scheduler.fail(name + ": " + e.getMessage(), e);
    }
  }

  /**
   * Checks that an error was one to be expected.
   *
   * @param before how many faults the process had met when the call began
   * @param expected ids that need no fault
   */
  void excuse(PartlogException e, int before, Set<String> expected) {
    world.say(name + " gets " + e.getMessage());
    if (isWrong(e) || faults == before && !expected.contains(e.id())) {
      throw world.scheduler.fail("I7: " + name + " gets " + e.getMessage(), e);
    }
  }

  private boolean isWrong(PartlogException e) {
    return NEVER.contains(e.id());
  }

  /** Checks an error that the code under test does not pass on, as what follows a commit cannot fail it. */
  private void swallowed(Throwable e) {
    if (e instanceof Scheduler.Stopped || world.scheduler.isOver()) {
      return;
    }
    world.say(name + " warns of " + e);
    boolean expected = e instanceof PartlogException partlog ? !isWrong(partlog) : e instanceof IOException;
    if (!expected) {
      world.scheduler.fail("I10: " + name + " warns of " + e, e);
    }
  }

  void excuse(IOException e, int before) {
    if (faults == before) {
      throw world.scheduler.fail("I7: " + name + " gets " + e, e);
    }
  }

  @Override
  public <T> T act(String call, String what, MemoryStore.Act<T> act) throws IOException {
    boolean isMoment = unlucky && world.isMoment(call, what);
    if (isMoment && world.chance(4)) {
      actor.sleep((long) Math.pow(2, 6 + world.random.nextDouble() * 4.5));
    } else if (actor != null) {
      // Acts beside the commit log may be in any order: they are often done together, so that more happens in a run.
      if (what.startsWith(Truth.FOLDER) && !what.startsWith(Truth.FOLDER + "tmp/") || world.chance(6)) {
        actor.act();
      }
    } else if (world.scheduler.failure() != null) {
      throw world.scheduler.fail("", null);
    }
    world.note(name, call, what);
    try {
      world.unanswered.act();
      world.lied.act();
      boolean isFault = !call.equals("look") && (world.isFault() || isMoment && world.faulty && world.chance(4));
      if (act instanceof MemoryStore.Put put && world.unanswered.isLate(put, isFault && world.chance(3))) {
        takesEffectLate(put, world.unanswered);
        throw new NoAnswerException(put.name(), null);
      }
      if (isFault) {
        faults++;
        boolean before = world.chance(2);
        world.say(name + "   fails " + (before ? "before" : "after"));
        if (!before) {
          effect(call, what, act);
        }
        throw call.equals("flush") && world.chance(2) ? new SyncFailedException("a fault") : new IOException("a fault");
      }
      return effect(call, what, act);
    } catch (Truth.Broken e) {
      throw world.scheduler.fail(name + ": " + e.getMessage(), e);
    }
  }

  @Override
  public boolean isRemote() {
    return world.place.isFar();
  }

  @Override
  public boolean listsInOrder() {
    return world.place == Place.FAR_IN_ORDER;
  }

  @Override
  public Duration lateLimit() {
    return world.place.isFar() ? LATE_LIMIT : Duration.ZERO;
  }

  @Override
  public boolean isSeen(String what) {
    return world.chance(2);
  }

  private <T> T effect(String call, String what, MemoryStore.Act<T> act) throws IOException {
    if (call.equals("delete")) {
      world.truth.deletes(what);
    }
    T result = world.lie.effect(this, call, what, act);
    if (call.equals("link")) {
      linked(what);
    }
    return result;
  }

  private void linked(String what) throws IOException {
    if (Truth.isVersion(what)) {
      world.say(name + "   LINKED");
      world.truth.linked(what);
    } else if (Truth.isNote(what)) {
      world.truth.noted(what);
    }
  }

  /** The put takes effect at a later act, if at all; its caller does not hear of that. */
  void takesEffectLate(MemoryStore.Put put, LatePuts puts) throws IOException {
    faults++;
    world.say(name + "   hears no more of its put");
    MemoryStore.Act<Object> late = put.late(world.disk);
    puts.add(() -> {
      late.on(world.disk);
      world.say(name + "   LATE " + put.name());
      linked(put.name());
    });
  }
}
