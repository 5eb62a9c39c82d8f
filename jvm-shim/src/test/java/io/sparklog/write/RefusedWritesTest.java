package io.sparklog.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.admin.Vacuum;
import io.sparklog.kit.Drivers;
import io.sparklog.kit.Writes;
import io.sparklog.log.Committer;
import io.sparklog.log.NextVersion;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FaultyStore.When;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A write that may not commit says why, wherever in it that is found, and leaves no file. FORMAT.md section 7. */
final class RefusedWritesTest extends Drivers {
  /** The last one after a put whose version was deleted before it was looked at. */
  private static final Set<String> NAMED = Set.of("TOPIC_RECREATED", "WRITE_EXPIRED", "COMMIT_UNKNOWN");

  /** An event in the topic while a write is under way. */
  private interface Event {
    void happens() throws IOException;
  }

  private Administration operator() {
    return new Administration(new TopicWork(new Driver().log(), clock(), random));
  }

  private void deleted() {
    operator().delete(false);
  }

  private void created(int partitions) throws IOException {
    new Driver().commit(Map.of("partitions", Integer.toString(partitions)), 0);
  }

  /** All that is there by now is taken for what a dead writer left. */
  private void vacuumed() throws IOException {
    for (String file : data()) {
      Files.setLastModifiedTime(folder.resolve(file), FileTime.fromMillis(nowMs - 3_600_001));
    }
    new Vacuum(new TopicWork(new Driver().log(), clock(), random)).run(Vacuum.OLDER_THAN_MIN, false);
  }

  /** A write of epoch 1, planned before {@code event} and committed after it. @param big whether it has data files before its commit */
  private void assertRefused(String id, boolean big, boolean exists, Event event) throws IOException {
    if (exists) {
      created(4);
    }
    Driver driver = new Driver();
    TopicPlan plan = driver.plan(Map.of());
    String txn = Names.identity(random);
    List<TopicReport> reports = Writes.of("x", 2, 28, big ? 10_000 : 0).reports(driver.store, plan, txn);
    event.happens();
    List<String> before = data().stream().filter(file -> !file.contains(txn)).toList();
    TopicCommits commits = new TopicCommits(driver.root, txn, topic -> Once.epoch("q", 1, "0000000000000001"), clock(), random);
    assertEquals(id, assertThrows(PartlogException.class, () -> commits.commit(plan, reports)).id());
    assertEquals(before, data(), "a write that is refused leaves no file");
    assertTrue(driver.store.list("_partlog/t/data").stream().noneMatch(name -> name.contains(txn)), "nor a folder");
  }

  /** CREATE TABLE … AS SELECT, beside a first write and beside another of its kind. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aWriteThatCreatesExtendsNoTopic(boolean big) throws IOException {
    Driver driver = new Driver();
    TopicPlan plan = driver.plan(Map.of());
    String txn = Names.identity(random);
    List<TopicReport> reports = Writes.of("x", 2, 28, big ? 10_000 : 0).reports(driver.store, plan, txn);
    created(plan.config().partitions());
    List<String> before = data().stream().filter(file -> !file.contains(txn)).toList();
    TopicCommits commits = new TopicCommits(driver.root, txn, topic -> Once.NEVER, clock(), random).creating(true);
    assertEquals("TOPIC_EXISTS", assertThrows(PartlogException.class, () -> commits.commit(plan, reports)).id());
    assertEquals(before, data());
    deleted();
    String second = Names.identity(random);
    TopicPlan again = new Driver().plan(Map.of());
    List<TopicReport> other = Writes.of("y", 2, 28, 0).reports(driver.store, again, second);
    new TopicCommits(driver.root, second, topic -> Once.NEVER, clock(), random).creating(true).commit(again, other);
    assertEquals("write", new Driver().log().version(again.plannedVersion()).orElseThrow().operation());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aRefusedWriteLeavesNothing(boolean big) throws IOException {
    nowMs = System.currentTimeMillis();
    assertRefused("ROUTING_CHANGED", big, true, () -> operator().addPartitions(5, Administration.RerouteTime.NOW, false));
    deleted();
    assertRefused("TOPIC_RECREATED", big, true, this::deleted);
    assertRefused("TOPIC_RECREATED", big, true, () -> {
      deleted();
      created(4);
    });
    deleted();
    assertRefused("WRITE_EXPIRED", big, true, () -> {
      new Committer(new Driver().log(), Names.identity(random), clock(), random)
          .commit(newest -> newest.map(state -> new NextVersion(state, "vacuum").raiseHorizon(state.version() + 2)));
    });
    deleted();
    assertRefused("ROUTING_CHANGED", big, false, () -> created(3));
    deleted();
    assertRefused("WRITE_EXPIRED", big, false, () -> {
      created(4);
      deleted();
    });
    assertRefused("EPOCH_DIFFERS", big, true, () -> {
      Driver other = new Driver();
      TopicPlan plan = other.plan(Map.of());
      String txn = Names.identity(random);
      new TopicCommits(other.root, txn, topic -> Once.epoch("q", 1, "0000000000000002"), clock(), random).commit(plan,
          Writes.of("y", 2, 28, 0).reports(other.store, plan, txn));
    });
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aWriteIntoForeignFoldersLeavesNothing(boolean big) throws IOException {
    assertRefused("FOREIGN_SEGMENTS", big, false, () -> {
      Files.createDirectories(folder.resolve("t-0"));
      Files.write(folder.resolve("t-0/00000000000000000007.log"), new byte[7]);
    });
  }

  @Test
  void aCommitThatFailsBeforeItsPutLeavesNothing() throws IOException {
    new Driver().commit();
    List<String> before = data();
    FaultyStore place = FaultyStore.of(Stores.open(folder.toString())).failAll("flush _partlog/t", When.BEFORE, new IOException("no"));
    assertEquals("COMMIT_FAILED", assertThrows(PartlogException.class, () -> new Driver(place.store()).commit()).id());
    assertEquals(before, data());
  }

  /** A version may name them: it may have taken effect, and only the answer been lost. */
  @Test
  void aCommitWhosePutWasTriedLeavesItsFiles() throws IOException {
    new Driver().commit();
    List<String> before = data();
    FaultyStore place = FaultyStore.of(Stores.open(folder.toString())).failAll("putIfAbsent", When.BEFORE, new IOException("no"));
    assertEquals("COMMIT_FAILED", assertThrows(PartlogException.class, () -> new Driver(place.store()).commit()).id());
    assertEquals(before.size() + 1, data().size());
  }

  /**
   * Commits, and lets {@code event} happen before the call of that number.
   *
   * @return the error; null if there was none
   */
  private PartlogException met(int big, int number, Event event, boolean[] reached) throws IOException {
    int[] calls = {0};
    Driver driver = new Driver(FaultyStore.of(Stores.open(folder.toString())).at((method, name, when) -> {
      boolean isCall = when == When.BEFORE && !Set.of("root", "location", "openFilesMax").contains(method);
      calls[0] += method.equals("putIfAbsent") ? 1_000 : 0; // From here on it is committed.
      if (isCall && !reached[0] && ++calls[0] == number) {
        reached[0] = true;
        event.happens();
        if (method.equals("create") && new Driver().log().newest().isEmpty()) {
          throw new NoSuchFileException(name); // Its folder went just after it was made.
        }
      }
    }).store());
    try {
      driver.commit(Map.of(), big);
      return null;
    } catch (PartlogException e) {
      return e;
    }
  }

  /** Nothing but the true reason is told, whichever step of the task or of the driver meets it. */
  @ParameterizedTest
  @ValueSource(ints = {0, 10_000})
  void aWriteThatMeetsADeletionSaysSo(int big) throws IOException {
    nowMs = System.currentTimeMillis();
    List<String> seen = new ArrayList<>();
    for (Event event : List.<Event>of(this::deleted, this::vacuumed)) {
      boolean[] reached = {true};
      for (int call = 1; reached[0]; call++) {
        if (new Driver().log().newest().isPresent()) {
          deleted(); // So that each write makes the same calls.
        }
        created(4);
        reached[0] = false;
        PartlogException e = met(big, call, event, reached);
        if (e != null) {
          assertTrue(NAMED.contains(e.id()), "call " + call + ": " + e.getMessage());
          seen.add(e.id());
        }
      }
    }
    assertTrue(seen.containsAll(List.of("TOPIC_RECREATED", "WRITE_EXPIRED")), seen.toString());
  }
}
