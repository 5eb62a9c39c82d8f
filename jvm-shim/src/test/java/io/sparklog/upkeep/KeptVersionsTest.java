package io.sparklog.upkeep;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.sparklog.admin.Administration;
import io.sparklog.kit.BrokenRule;
import io.sparklog.kit.Drivers;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Segment;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** A version can be built and read until {@code versions.keep.ms} have passed since the next version, and is gone later. */
final class KeptVersionsTest {
  private static final long KEPT_MS = 20_000;

  @TempDir
  Path folder;

  @Test
  void versionsAreKeptForSoLongAndNoLonger() throws IOException {
    for (long seed = 0; seed < 2; seed++) {
      assertEquals("right", run(seed, Files.createDirectory(folder.resolve("right-" + seed))));
    }
  }

  static Stream<BrokenRule> rules() {
    return Stream.of(
        new BrokenRule(0, "replaced files do not wait", "upkeep/ReplacedFiles.isDue", "state.config().isOld(removal.timeMs(), nowMs)",
            "true"),
        new BrokenRule(0, "replaced files never go", "upkeep/ReplacedFiles.isDue", "state.config().isOld(removal.timeMs(), nowMs)",
            "false"),
        new BrokenRule(0, "the boundary does not wait", "upkeep/CommitLogCleaner.lastOld",
            "!state.config().isOld(version.get().head().time(), clock.millis())", "false"),
        new BrokenRule(0, "the boundary never rises", "upkeep/CommitLogCleaner.lastOld",
            "!state.config().isOld(version.get().head().time(), clock.millis())", "true"));
  }

  @ParameterizedTest
  @MethodSource("rules")
  void aBrokenRuleIsFound(BrokenRule rule) throws Throwable {
    rule.requireFound(KeptVersionsTest.class, folder);
  }

  /** The process that found the boundary may not have seen yet that versions are kept for longer. */
  @Test
  void aBoundaryThatWasFoundWithAShorterTimeIsNotCarried() throws IOException {
    History history = new History();
    history.folder = folder;
    History.Driver driver = history.new Driver();
    driver.commit();
    while (driver.log().hints(history.state()).cleanedTo(history.state()) <= history.state().boundary()) {
      driver.commit();
    }
    long boundary = history.state().boundary();
    Administration other = new Administration(new TopicWork(history.new Driver().log(), history.clock(), history.random));
    other.configure(Map.of("versions.keep.ms", Long.toString(KEPT_MS)));
    driver.commit();
    assertEquals(boundary, history.state().boundary());
  }

  private static final class History extends Drivers {
    private final List<State> states = new ArrayList<>();
    private long keptFrom;

    private void keep(Driver driver, long ms) {
      new Administration(new TopicWork(driver.log(), clock(), random)).configure(Map.of("versions.keep.ms", Long.toString(ms)));
      states.add(state());
      keptFrom = state().version();
    }

    private void note() {
      State newest = state();
      if (states.isEmpty() || states.get(states.size() - 1).version() < newest.version()) {
        states.add(newest);
      }
    }

    /** The first version that is kept, and cannot be read; empty without one. */
    private Optional<String> lost() throws IOException {
      State newest = state();
      for (int i = 0; i + 1 < states.size(); i++) {
        State kept = states.get(i);
        if (kept.version() >= keptFrom && nowMs - states.get(i + 1).timeMs() < KEPT_MS) {
          TopicLog log = new TopicLog(Stores.open(folder.toString()), "t");
          Optional<State> found = log.at(newest, kept.version()).filter(state -> state.hash().equals(kept.hash()));
          if (found.isEmpty()) {
            return Optional.of(kept + " is gone at " + newest);
          }
          for (Segment segment : found.get().segments().stream().flatMap(List::stream).toList()) {
            if (!Files.exists(folder.resolve("_partlog/t").resolve(segment.file()))) {
              return Optional.of(segment.file() + " of " + kept + " is gone at " + newest);
            }
          }
        }
      }
      return Optional.empty();
    }
  }

  /** "right", or "wrong" with the fault. */
  static String run(long seed, Path folder) throws IOException {
    History history = new History();
    history.folder = folder;
    Random random = new Random(seed);
    History.Driver driver = history.new Driver();
    driver.commit(Map.of("file.delete.delay.ms", "0", "kafka.view", "none"), 0);
    for (int i = 0; i < 90; i++) {
      history.nowMs += 1000L * random.nextInt(2);
      if (i == 35) {
        history.keep(driver, KEPT_MS);
      } else if (random.nextInt(5) == 0) {
        driver.replace();
      } else {
        driver.commit();
      }
      history.note();
      Optional<String> lost = i > 35 && i % 4 == 0 ? history.lost() : Optional.empty();
      if (lost.isPresent()) {
        return "wrong: " + lost.get();
      }
    }
    history.nowMs += KEPT_MS;
    long before = history.state().version();
    for (int i = 0; i < 45; i++) {
      driver.commit();
    }
    TreeSet<String> live = new TreeSet<>();
    history.state().segments().forEach(all -> all.forEach(segment -> live.add("_partlog/t/" + segment.file())));
    if (history.state().boundary() < before - 20 || !List.copyOf(live).equals(history.data())) {
      return "wrong: the boundary is " + history.state().boundary() + " and version " + before + " is old; " + history.data().size()
          + " data files are there, and " + live.size() + " are live";
    }
    return "right";
  }
}
