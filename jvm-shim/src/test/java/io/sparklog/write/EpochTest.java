package io.sparklog.write;

import static io.sparklog.storage.FaultyStore.When.AFTER;
import static io.sparklog.storage.FaultyStore.When.BEFORE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.kit.HandmadeVersion;
import io.sparklog.kit.Seed;
import io.sparklog.log.Checkpoint;
import io.sparklog.log.Query;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.Version;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.io.SyncFailedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Writes to a topic that has their epoch or a later one: the table of FORMAT.md section 7. */
final class EpochTest extends CommitsOverFaults {
  private static final String A = "aaaaaaaaaaaaaaaa";
  private static final String B = "bbbbbbbbbbbbbbbb";

  /** A write of query q: {@code txn}, {@code epoch} or the {@code n}-th of an epoch; with the input A, B or none. */
  private static Once once(String kind, long epoch, String input) {
    String of = input == null ? null : input.repeat(16);
    return switch (kind) {
      case "txn" -> Once.transaction("q", epoch);
      case "epoch" -> Once.epoch("q", epoch, of);
      default -> Once.inEpoch("q", 2, epoch, of);
    };
  }

  /** Version 0 applies epoch 7 with 10 records, and version 1 perhaps epoch 8; then epoch 7 is written again, and without records. */
  @ParameterizedTest
  @CsvSource(nullValues = "-", textBlock = """
                                           txn,   -, -, 10, no,  done,    done
                                           txn,   -, -, 12, no,  done,    done
                                           txn,   -, -, 10, yes, done,    done
                                           txn,   -, -, 12, yes, done,    done
                                           epoch, a, a, 10, no,  done,    done
                                           epoch, a, a, 12, no,  done,    done
                                           epoch, a, -, 10, no,  refused, done
                                           epoch, a, -, 12, no,  refused, version 0 applied it with 10 records and the write has 12
                                           epoch, -, a, 12, no,  refused, version 0 applied it with 10 records and the write has 12
                                           epoch, -, -, 10, no,  refused, done
                                           epoch, a, b, 10, no,  refused, version 0 applied it with input A and the write has input B
                                           epoch, a, a, 12, yes, done,    done
                                           epoch, a, -, 10, yes, refused, done
                                           epoch, -, a, 10, yes, refused, done
                                           epoch, -, -, 10, yes, refused, done
                                           epoch, a, -, 12, yes, refused, version 0 applied it with 10 records and the write has 12
                                           epoch, -, a, 12, yes, refused, version 0 applied it with 10 records and the write has 12
                                           epoch, a, b, 10, yes, refused, version 0 applied it with input A and the write has input B
                                           n,     a, a, 10, no,  refused, done
                                           n,     a, a, 12, no,  refused, version 0 applied it with 10 records and the write has 12
                                           n,     -, a, 12, no,  refused, version 0 applied it with 10 records and the write has 12
                                           n,     a, -, 10, no,  refused, done
                                           n,     a, b, 10, no,  refused, version 0 applied it with input A and the write has input B
                                           n,     a, a, 10, yes, refused, done
                                           n,     -, -, 10, yes, refused, done
                                           n,     a, a, 12, yes, refused, version 0 applied it with 10 records and the write has 12
                                           n,     a, b, 10, yes, refused, version 0 applied it with input A and the write has input B
                                           """)
  void anEpochThatIsThere(String kind, String input, String again, int records, String later, String without, String expected)
      throws IOException {
    commitOnce(5, once(kind, 7, input));
    if (later.equals("yes")) {
      commitOnce(5, once(kind, 8, "c"));
    }
    if (expected.equals("done")) {
      requireDone(records / 2, once(kind, 7, again));
    } else {
      String reason = expected.replace(" and", ", and").replace("A", A).replace("B", B);
      requireRefused(records / 2, once(kind, 7, again), later.equals("yes") ? 8 : 7, reason);
    }
    State before = state();
    if (without.equals("done")) {
      assertEquals(Optional.empty(), commitOnce(0, once(kind, 7, again)));
    } else {
      assertEquals("EPOCH_DIFFERS", assertThrows(PartlogException.class, () -> commitOnce(0, once(kind, 7, again))).id());
    }
    assertEquals(before.version(), state().version());
    assertEquals(before.version() + 1, commitOnce(5, once(kind, 9, again)).orElseThrow().version());
  }

  /** The topic's epoch 3 is not that of the query, which remembers what it read in it: its epoch 4 would hold some records again. */
  @ParameterizedTest
  @CsvSource(nullValues = "-", textBlock = """
                                           a, a, new
                                           a, b, refused
                                           a, -, new
                                           -, b, new
                                           """)
  void anEpochThatFollowsAnotherIsRefused(String applied, String own, String expected) throws IOException {
    for (boolean within : new boolean[] {false, true}) {
      commitOnce(5, once(within ? "n" : "epoch", 3, applied));
      Once next = once(within ? "n" : "epoch", 4, "c").withInputs(epoch -> {
        assertEquals(3, epoch);
        return own == null ? null : own.repeat(16);
      });
      if (expected.equals("new")) {
        assertTrue(commitOnce(5, next).isPresent());
      } else {
        String difference = "epoch 3 was applied with input " + A + ", and this query's own log has input " + B + " for it";
        requireRefused(5, next, 3, difference);
        requireRefused(0, next, 3, difference);
      }
    }
  }

  /** Epochs of a query only rise in a topic: the search for one ends at an earlier one. */
  @Test
  void anEpochWithoutAVersionIsNotSearchedBelowAnEarlierOne() throws IOException {
    commitOnce(5, Once.epoch("q", 0, A));
    commitOnce(5, Once.epoch("q", 1, A));
    commitOnce(5, Once.epoch("q", 3, A));
    Checkpoint.write(store.store(), state(), Names.identity(random));
    Files.writeString(file(0), "damaged, and not read");
    requireRefused(5, Once.epoch("q", 2, A), 3, "no version from 0 on is known to have applied it");
    assertEquals(Optional.empty(), commitOnce(0, Once.epoch("q", 2, A)));
  }

  private void requireDone(int recordsOfTask, Once once) throws IOException {
    long version = state().version();
    assertEquals(Optional.empty(), commitOnce(recordsOfTask, once));
    assertEquals(version, state().version());
    assertFalse(store.calls().stream().anyMatch(call -> call.startsWith("putIfAbsent " + TOPIC_FOLDER + "/0")), store.calls().toString());
    assertTrue(store.calls().contains("flush " + TOPIC_FOLDER), "the process that put that version may have died before its sync");
  }

  private void requireRefused(int recordsOfTask, Once once, long newest, String difference) throws IOException {
    long version = state().version();
    PartlogException e = assertThrows(PartlogException.class, () -> commitOnce(recordsOfTask, once));
    Map<String, String> parameters = new TreeMap<>(Map.of("topic", "t", "root", root.toString(), "query", once.query().id()));
    parameters.putAll(Map.of("newest", Long.toString(newest), "epoch", Long.toString(once.query().epoch()), "difference", difference));
    assertEquals("EPOCH_DIFFERS", e.id());
    assertEquals(parameters, new TreeMap<>(e.parameters()));
    assertTrue(e.getMessage().contains("startingOffsets") && e.getMessage().contains("sparklog.txn_options"), e.getMessage());
    assertEquals(version, state().version());
  }

  @Test
  void oneWithoutRecordsCommitsNothingButTheTopic() throws IOException {
    Version created = commitOnce(0, Once.epoch("q", 0, A)).orElseThrow();
    assertEquals("create", created.operation());
    assertEquals(new Query("q", 0, A), created.query());
    assertEquals(Optional.empty(), commitOnce(0, Once.epoch("q", 1, B)));
    assertEquals(Optional.empty(), commitOnce(0, Once.transaction("job", 1)));
    assertEquals(List.of("q"), List.copyOf(state().queries().keySet()));
    assertEquals(1, commitOnce(5, Once.epoch("q", 1, A)).orElseThrow().version(), "what was not noted can still be applied");
  }

  /** The input of the greatest epoch is kept, across a checkpoint too. */
  @Test
  void aStateKeepsTheGreatestEpochOfEachQuery() throws IOException {
    commitOnce(5, Once.epoch("q", 3, A));
    commitOnce(5, Once.epoch("p", 9, null));
    commitOnce(5, Once.inEpoch("q", 0, 1, B));
    Map<String, Query> expected = Map.of("q", new Query("q", 3, A), "p", new Query("p", 9, null), "q/0", new Query("q/0", 1, B));
    assertEquals(expected, applied());
    Checkpoint.write(store.store(), state(), Names.identity(random));
    for (long version = 0; version < 2; version++) {
      Files.delete(file(version));
    }
    assertEquals(expected, applied());
    assertEquals(2, state().version());
  }

  private Path file(long version) {
    return root.resolve(TOPIC_FOLDER).resolve(Names.versionFile(version));
  }

  /** Epochs 0, 1 and 2 are there; the version of epoch 0 is gone, or counts for nothing. */
  @ParameterizedTest
  @CsvSource({"gone", "below the boundary", "of another topic"})
  void oneWhoseVersionIsNotFoundIsRefused(String how) throws IOException {
    for (int n : new int[] {0, 1}) {
      commitOnce(5, Once.inEpoch("q", n, 0, A));
    }
    commitOnce(5, Once.epoch("q", 0, A));
    commitOnce(5, Once.epoch("q", 1, A));
    commitOnce(5, Once.inEpoch("q", 1, 1, A));
    long boundary = 0;
    if (how.equals("below the boundary")) {
      State state = state();
      boundary = 3;
      HandmadeVersion.after(root, state, Names.identity(random)).boundary(boundary).write();
    } else {
      Checkpoint.write(store.store(), state(), Names.identity(random));
      for (long version = 0; version < 3; version++) {
        Files.delete(file(version));
      }
      if (how.equals("of another topic")) {
        Path other = root.resolve("other");
        Root elsewhere = new Root(Stores.open(other.toString()));
        for (int n = 0; n < 3; n++) {
          commitOnce(elsewhere.store(), 5, n < 2 ? Once.inEpoch("q", n, 0, A) : Once.epoch("q", 0, A));
          Files.copy(other.resolve(TOPIC_FOLDER).resolve(Names.versionFile(n)), file(n));
        }
      }
    }
    String unknown = "no version from " + boundary + " on is known to have applied it";
    requireRefused(5, Once.epoch("q", 0, A), 1, unknown);
    requireRefused(5, Once.inEpoch("q", 1, 0, A), 1, unknown);
    requireDone(5, Once.epoch("q", 1, A));
    requireDone(5, Once.inEpoch("q", 1, 1, A));
    // Its input is in the state, the number of its records is not.
    requireDone(6, Once.inEpoch("q", 0, 0, A));
    requireRefused(5, Once.inEpoch("q", 0, 0, B), 0, "it was applied with input " + A + ", and the write has input " + B);
    assertEquals(Optional.empty(), commitOnce(0, Once.epoch("q", 0, A)), "if it had no records, it had no version either");
  }

  @Test
  void aDamagedVersionFileIsNotTakenForAnAnswer() throws IOException {
    commitOnce(5, Once.epoch("q", 0, A));
    commitOnce(5, Once.epoch("q", 1, A));
    Checkpoint.write(store.store(), state(), Names.identity(random));
    Files.writeString(file(0), "x");
    assertEquals("VERSION_CORRUPT", assertThrows(PartlogException.class, () -> commitOnce(5, Once.epoch("q", 0, A))).id());
    Files.delete(file(0));
    Files.createDirectory(file(0));
    assertEquals("VERSION_CORRUPT", assertThrows(PartlogException.class, () -> commitOnce(5, Once.epoch("q", 0, A))).id());
  }

  /** A second driver of the query comes first, just before the put: with the same input it has done the work, with another it has not. */
  @ParameterizedTest
  @CsvSource({"3, a", "3, b", "4, a", "4, b"})
  @Timeout(300)
  void anotherDriverWasFirst(int upTo, String input) throws IOException {
    commitOnce(5, Once.epoch("q", 2, A));
    boolean[] done = {false};
    store.at((call, name, when) -> {
      if (call.equals("putIfAbsent") && when == BEFORE && name.endsWith(".json") && !done[0]) {
        done[0] = true;
        for (int epoch = 3; epoch <= upTo; epoch++) {
          commitOnce(Stores.open(root.toString()), 5, once("epoch", epoch, input));
        }
      }
    });
    if (input.equals("a")) {
      assertEquals(Optional.empty(), commitOnce(5, Once.epoch("q", 3, A)));
    } else {
      PartlogException e = assertThrows(PartlogException.class, () -> commitOnce(5, Once.epoch("q", 3, A)));
      assertEquals("EPOCH_DIFFERS", e.id());
      assertEquals("version 1 applied it with input " + B + ", and the write has input " + A, e.parameters().get("difference"));
    }
    assertTrue(done[0]);
    assertEquals(upTo - 2, state().version());
  }

  /** A driver dies between its put and the answer: the version is there, its folder was not synced, and nothing was published. */
  @Test
  void aPutWithoutAnAnswerIsFinishedByTheRetry() throws IOException {
    commitOnce(5, Once.epoch("q", 0, A));
    long before = viewed();
    store.failAll("putIfAbsent", AFTER, new SyncFailedException("EIO"));
    assertEquals("COMMIT_UNKNOWN", assertThrows(PartlogException.class, () -> commitOnce(5, Once.epoch("q", 1, A))).id());
    assertEquals(before, viewed());
    openStore();
    requireDone(5, Once.epoch("q", 1, A));
    assertEquals(2 * before, viewed());
    openStore();
    requireRefused(5, Once.epoch("q", 1, B), 1, "version 1 applied it with input " + A + ", and the write has input " + B);
    assertEquals(2 * before, viewed());
  }

  /** The work after a commit cannot fail a write that is found to be done. */
  @Test
  void aRetryThatCannotPublishIsDone() throws IOException {
    commitOnce(5, Once.epoch("q", 0, A));
    try (Stream<Path> view = Files.walk(root, 2)) {
      for (Path file : view.filter(each -> each.getParent().getFileName().toString().startsWith("t-")).toList()) {
        Files.delete(file);
      }
    }
    store.failAll("link", BEFORE, new OutOfMemoryError("thrown by the test"));
    requireDone(5, Once.epoch("q", 0, A));
    assertEquals(0, viewed());
    openStore();
    requireDone(5, Once.epoch("q", 0, A));
    assertTrue(viewed() > 0);
  }

  /** Drivers of one query go on from whatever checkpoint they find, while version files are cleaned up. */
  @Test
  void driversWithOldCheckpoints() throws IOException {
    long seed = Seed.draw();
    System.out.println("driversWithOldCheckpoints: seed " + seed);
    Random choices = new Random(seed);
    Map<Long, String> applied = new TreeMap<>();
    Map<Long, Long> versions = new TreeMap<>();
    long newest = -1;
    long kept = 0;
    Map<String, Integer> found = new TreeMap<>();
    for (int step = 0; step < 120; step++) {
      long epoch = Math.max(0, newest + 2 - choices.nextInt(6));
      String input = choices.nextInt(4) == 0 ? B : A;
      String expected;
      if (epoch > newest) {
        expected = "applied";
      } else if (input.equals(applied.get(epoch)) && (epoch == newest || versions.get(epoch) >= kept)) {
        expected = "done";
      } else {
        expected = "refused";
      }
      String outcome;
      try {
        Optional<Version> version = commitOnce(1 + choices.nextInt(3), Once.epoch("q", epoch, input));
        outcome = version.isPresent() ? "applied" : "done";
        version.ifPresent(put -> versions.put(epoch, put.version()));
      } catch (PartlogException e) {
        outcome = e.id().equals("EPOCH_DIFFERS") ? "refused" : e.toString();
      }
      assertEquals(expected, outcome, "step " + step + ": epoch " + epoch + " with " + input);
      found.merge(outcome, 1, Integer::sum);
      if (outcome.equals("applied")) {
        applied.put(epoch, input);
        newest = epoch;
      }
      if (choices.nextInt(20) == 0) {
        Checkpoint.write(store.store(), state(), Names.identity(random));
        for (long until = choices.nextLong(kept, state().version() + 1); kept < until; kept++) {
          Files.delete(file(kept));
        }
      }
    }
    assertEquals(applied.size() - 1, state().version());
    assertEquals(3, found.size(), found.toString());
  }

  private Map<String, Query> applied() {
    Map<String, Query> applied = new TreeMap<>();
    state().queries().forEach((id, each) -> applied.put(id, each.query()));
    return applied;
  }
}
