package io.sparklog.sim;

import static org.junit.jupiter.api.Assertions.assertAll;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.sparklog.kit.MutatedClasses;
import java.io.PrintStream;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.FieldSource;

/** The production code keeps the invariants in every order of acts that was tried, and the simulation finds each rule that is broken. */
final class SimulationTest {
  /**
   * The same seeds each time, so that what fails is what was changed; {@code make sim} takes new ones, and more. Behind a network, versions
   * are read before they are looked at, and puts without an answer are waited for.
   */
  @ParameterizedTest
  @EnumSource
  void theInvariantsHold(Place place) {
    assumeTrue(System.getProperty("sim.place", place.name()).equals(place.name()));
    Long replayed = Long.getLong("sim.seed");
    if (replayed != null) {
      assertNull(Simulation.run(replayed, Lie.NONE, place, System.out).failure());
      return;
    }
    Long count = Long.getLong("sim.seeds");
    long first = count == null ? 0 : new Random().nextInt(1 << 30);
    Seeds seeds = Seeds.run(first, count == null ? 30 : count, seed -> Simulation.run(seed, place));
    System.out.println("from seed " + first + ", " + place + ": " + seeds);
    assertNull(seeds.failed(), seeds::toString);
  }

  /** Servers of Kafka's protocol, idempotent producers and coordinators of groups. */
  @Test
  void theInvariantsHoldForServers() {
    Long replayed = Long.getLong("sim.seed");
    if (replayed != null) {
      assertNull(Simulation.runServed(replayed, System.out).failure());
      return;
    }
    Long count = Long.getLong("sim.seeds");
    long first = count == null ? 0 : new Random().nextInt(1 << 30);
    Seeds seeds = Seeds.run(first, count == null ? 12 : count, seed -> Simulation.runServed(seed, null));
    System.out.println("from seed " + first + ", served: " + seeds);
    assertNull(seeds.failed(), () -> seeds + " SERVED=1");
  }

  @ParameterizedTest
  @EnumSource
  @Tag("slow")
  void theInvariantsHoldForMoreSeeds(Place place) {
    Seeds seeds = Seeds.run(30, 50, seed -> Simulation.run(seed, place));
    assertNull(seeds.failed(), seeds::toString);
  }

  @Test
  void aSeedIsOneOrderOfActs() {
    for (long seed = 0; seed < 5; seed++) {
      assertEquals(Simulation.run(seed), Simulation.run(seed));
    }
  }

  @ParameterizedTest
  @FieldSource("io.sparklog.sim.Mutants#FOUND")
  @Tag("slow")
  void aBrokenRuleIsFound(Mutant mutant) throws Exception {
    assertNotNull(mutant.finder().apply(mutant.seed()), "seed " + mutant.seed() + " does not find it: make sim-mutants finds another");
  }

  @Test
  void theMethodOfEachMutantHasItsTextOnce() {
    assertAll(Stream.of(Mutants.FOUND, Mutants.SOUGHT)
        .flatMap(List::stream)
        .map(mutant -> () -> MutatedClasses.changed(mutant.method(), mutant.from(), mutant.to())));
  }

  @ParameterizedTest
  @FieldSource("io.sparklog.sim.Mutants#SOUGHT")
  @Tag("slow")
  void aMutantThatIsSoughtCompiles(Mutant mutant) throws Exception {
    assertNotNull(mutant.finder());
  }

  /** {@code make sim-mutants} */
  @Test
  @EnabledIfSystemProperty(named = "sim.rounds", matches = "[0-9]+")
  void seedsToFindEachBrokenRule() throws Exception {
    MutantSearch.main(new String[] {System.getProperty("sim.seeds"), System.getProperty("sim.rounds")});
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
  @Tag("slow")
  void aStoreThatLiesIsFound(Lie lie) {
    PrintStream nowhere = null;
    assertNotNull(LongStream.range(0, 1_000)
        .mapToObj(seed -> Simulation.run(seed, lie, nowhere).failure())
        .filter(found -> found != null)
        .findFirst()
        .orElse(null));
  }
}
