package io.sparklog.sim;

import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;

/**
 * The classes that commit, merge, publish, clean up and read, on a disk in memory, with a seeded choice at every act.
 *
 * <p>In one world, on one topic: appenders without an identity; two streaming queries, each with up to three drivers, one after another or
 * beside each other, and a checkpoint that is restored; readers that come to their files late. Every writer merges and tidies.
 * Actors sleep, stop for ever, or hear of a failure where there was none; the power may go. {@link Truth} and {@link Quiet} say what
 * must hold.
 */
final class Simulation {
  private static final int ACTS = 1200;

  /** How a run ended. @param failure null if nothing is wrong */
  record Outcome(long seed, Place place, long acts, long hash, int versions, int merges, int cleaned, String failure, Throwable cause) {}

  private final World world;
  private final List<String> spares = new ArrayList<>(List.of("p1", "p2", "q1", "q2"));

  private Simulation(long seed, Lie lie, Place place, PrintStream trace) {
    world = new World(seed, lie, place, trace);
  }

  static Outcome run(long seed) {
    return run(seed, Lie.NONE, null);
  }

  /** The failure of a seed; null if none. */
  static String failure(long seed) {
    return run(seed).failure();
  }

  static Outcome run(long seed, Place place) {
    return run(seed, Lie.NONE, place, null);
  }

  /** Servers, producers and coordinators beside the writers. @param trace where each act is printed; may be null */
  static Outcome runServed(long seed, PrintStream trace) {
    Place place = Place.values()[(int) (seed % Place.values().length)];
    Simulation simulation = new Simulation(seed, Lie.NONE, place, trace);
    return simulation.run(place, simulation::served);
  }

  /** As {@link #failure}. */
  static String failureOfServed(long seed) {
    return runServed(seed, null).failure();
  }

  /** @param trace where each act is printed; may be null */
  static Outcome run(long seed, Lie lie, PrintStream trace) {
    return run(seed, lie, Place.DISK, trace);
  }

  static Outcome run(long seed, Lie lie, Place place, PrintStream trace) {
    Simulation simulation = new Simulation(seed, lie, place, trace);
    return simulation.run(place, simulation::all);
  }

  private Outcome run(Place place, Runnable acts) {
    try {
      acts.run();
    } catch (RuntimeException e) {
      world.scheduler.fail("the simulation itself: " + e, e); // A seed that ends a thread of Seeds would not be counted.
    }
    if (world.scheduler.failure() == null) {
      world.faulty = false;
      try {
        new Quiet(world).run();
      } catch (Scheduler.Stopped stopped) {
        // The failure says why.
      } catch (IOException | RuntimeException e) {
        world.scheduler.fail("I10: " + e, e);
      }
    }
    Truth truth = world.truth;
    return new Outcome(world.seed, place, world.acts(), world.hash(), truth.count(), truth.merges(), truth.cleaned(),
        world.scheduler.failure(), world.scheduler.cause());
  }

  private void all() {
    start("a", process -> Writers.append(process, 4));
    start("b", process -> Writers.append(process, 3));
    start("p0", process -> Writers.drive(process, "p", 5));
    start("q0", process -> Writers.drive(process, "q", 5));
    start("r0", process -> Readers.read(process, 5, false));
    start("r1", process -> Readers.read(process, 6, true));
    if (world.chance(5)) {
      start("restorer", process -> Writers.restore(process, "p"));
    }
    Operators.start(world);
    world.scheduler.between(this::maybeAnotherDriver);
    act(ACTS);
  }

  private void served() {
    Served served = new Served(world);
    served.start();
    act(2 * ACTS);
    if (world.scheduler.failure() == null) {
      try {
        served.requireOrdered();
      } catch (Truth.Broken e) {
        world.scheduler.fail(e.getMessage(), e);
      }
    }
  }

  private void act(int acts) {
    world.scheduler.run(acts, 3);
    if (world.chance(4) && world.scheduler.failure() == null) {
      losePower();
    }
  }

  private void start(String name, Process.Part part) {
    Process.start(world, name, part);
  }

  /** Another driver of a query, because the first one is dead, or only seems to be. */
  private void maybeAnotherDriver() {
    if (!spares.isEmpty() && world.chance(150)) {
      String name = spares.remove(world.random.nextInt(spares.size()));
      start(name, process -> Writers.drive(process, name.substring(0, 1), 4));
    }
  }

  /** The power goes while all of them are at work; then others come. */
  private void losePower() {
    world.say("the power goes");
    world.disk.losePower(world.random);
    try {
      world.truth.losePower();
    } catch (Truth.Broken e) {
      world.scheduler.fail(e.getMessage(), e);
      return;
    }
    world.powerLost = true;
    start("c", process -> Writers.append(process, 3));
    start("p3", process -> Writers.drive(process, "p", 3));
    start("r2", process -> Readers.read(process, 3, false));
    world.scheduler.run(ACTS / 3, 1);
  }

  /** {@code Simulation <first seed> <seeds>}: runs them, and stops at the first failure; {@code Simulation <seed>} prints its acts. */
  public static void main(String[] words) {
    long first = Long.parseLong(words[0]);
    if (words.length == 1) {
      Outcome outcome = run(first, Lie.NONE, System.out);
      System.out.println(outcome);
      if (outcome.cause() != null) {
        outcome.cause().printStackTrace(System.out);
      }
      return;
    }
    System.out.println(Seeds.run(first, Long.parseLong(words[1]), Simulation::run));
  }
}
