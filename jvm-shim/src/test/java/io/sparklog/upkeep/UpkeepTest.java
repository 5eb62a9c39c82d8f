package io.sparklog.upkeep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.admin.Vacuum;
import io.sparklog.kit.Drivers;
import io.sparklog.kit.Seed;
import io.sparklog.log.Pace;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.FaultyStore.When;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The work that follows a commit. FORMAT.md sections 6, 8 and 12. */
final class UpkeepTest extends Drivers {
  @Test
  void theLogStaysShort() throws IOException {
    Driver driver = new Driver();
    driver.commit(Map.of("file.delete.delay.ms", "0"), 0);
    int most = 0;
    for (int i = 0; i < 60; i++) {
      driver.commit();
      if (i % 7 == 6) {
        driver.replace();
      }
      most = Math.max(most, files("_partlog/t", ".*\\.json").size());
      assertTrue(files("_partlog/t", ".*checkpoint.*").size() <= 3);
    }
    assertTrue(most <= 30, "version files: " + most);
    assertTrue(state().boundary() >= state().version() - 25, "boundary " + state().boundary() + " of " + state().version());
    assertTrue(state().version() - state().boundary() >= 10);
    driver.commit();
    List<String> named = new ArrayList<>();
    state().segments().forEach(live -> live.forEach(segment -> named.add("_partlog/t/" + segment.file())));
    assertEquals(named.stream().distinct().sorted().toList(), data());
    assertEquals(data().size(), new Driver().store.list("_partlog/t/data").size(), "no folder is empty");
    assertViewIsRight();
  }

  /** Each process commits once and ends: no version of its own is there to carry what it cleaned up. */
  @Test
  void theLogOfShortLivedProcessesStaysShortToo() throws IOException {
    pace = new Pace(4, 8, ms -> {});
    for (int i = 0; i < 30; i++) {
      new Driver().commit();
      assertTrue(files("_partlog/t", ".*\\.json").size() <= 14);
    }
    assertTrue(state().boundary() > 16, "boundary " + state().boundary());
  }

  @Test
  void aReplacedFileStaysForAWhile() throws IOException {
    Driver driver = new Driver();
    driver.commit();
    List<String> before = data();
    driver.replace();
    driver.commit();
    assertTrue(data().containsAll(before));
    nowMs += 59_999;
    driver.commit();
    assertTrue(data().containsAll(before));
    nowMs += 1;
    driver.commit();
    assertFalse(data().stream().anyMatch(before::contains));
    assertViewIsRight();
  }

  /** Each process commits once and ends: none is there to delete what it removed itself. */
  @Test
  void anyProcessDeletesWhatOthersHaveReplaced() throws IOException {
    new Driver().commit();
    List<String> before = data();
    new Driver().replace();
    for (int i = 0; i < 5; i++) {
      new Driver().commit();
    }
    nowMs += 59_999;
    new Driver().commit();
    assertTrue(data().containsAll(before));
    nowMs += 1;
    new Driver().commit();
    assertFalse(data().stream().anyMatch(before::contains));
  }

  /** Readers that planned before the second deletion still need it. */
  @Test
  void aSharedFileWaitsForTheLastOfItsSegments() throws IOException {
    Driver driver = new Driver();
    driver.commit();
    String pool = data().get(0);
    int[] used = IntStream.range(0, 4).filter(p -> state().end(p) > 0).toArray();
    assertTrue(used.length > 1);
    for (int p : used) {
      nowMs += 40_000;
      new Administration(new TopicWork(driver.log(), clock(), random)).deleteRecords(new TreeMap<>(Map.of(p, -1L)), new TreeMap<>(), false);
    }
    nowMs += 59_999;
    driver.commit();
    new Driver().commit();
    assertTrue(data().contains(pool), "the first segments were removed longer ago, the last one was not");
    nowMs += 1;
    new Driver().commit();
    assertFalse(data().contains(pool));
  }

  /** A boundary above a version says that what it removed is gone. */
  @Test
  void theBoundaryWaitsForTheFiles() throws IOException {
    Driver driver = new Driver();
    driver.commit();
    List<String> before = data();
    driver.replace();
    for (int i = 0; i < 45; i++) {
      driver.commit();
    }
    assertEquals(1, state().boundary());
    assertTrue(data().containsAll(before));
    nowMs += 60_000;
    for (int i = 0; i < 15; i++) {
      driver.commit();
    }
    assertTrue(state().boundary() > 30, "boundary " + state().boundary());
    assertFalse(data().stream().anyMatch(before::contains));
  }

  @Test
  void aFileStaysWhileOneOfItsSegmentsIsLive() throws IOException {
    Driver driver = new Driver();
    driver.commit(Map.of("file.delete.delay.ms", "0"), 0);
    String pool = data().get(0);
    List<Integer> used = IntStream.range(0, 4).filter(p -> state().end(p) > 0).boxed().toList();
    for (int p : used) {
      assertTrue(data().contains(pool), "partition " + p + " of " + used);
      new Administration(new TopicWork(driver.log(), clock(), random)).deleteRecords(new TreeMap<>(Map.of(p, -1L)), new TreeMap<>(), false);
    }
    assertFalse(data().contains(pool));
    assertTrue(used.size() > 1);
  }

  /** Also one that was put by a process that died, and whose clock was a year ahead. */
  @Test
  void aClockThatWasWrongStopsNothing() throws IOException {
    nowMs += 365L * 86_400_000;
    Driver dead = new Driver();
    dead.commit();
    List<String> before = data();
    dead.replace();
    nowMs -= 365L * 86_400_000;
    Driver driver = new Driver();
    for (int i = 0; i < 45; i++) {
      driver.commit();
    }
    assertFalse(data().stream().anyMatch(before::contains));
    assertTrue(state().boundary() > 10, "boundary " + state().boundary());
  }

  /** The boundary does not rise above a version whose files are there, and another process finds them. */
  @Test
  void whatCannotBeDeletedKeepsTheBoundary() throws IOException {
    Driver first = new Driver();
    first.commit(Map.of("file.delete.delay.ms", "0"), 0);
    String removed = data().get(0);
    first.replace();
    FaultyStore place = FaultyStore.of(Stores.open(folder.toString())).failAll("delete " + removed, When.BEFORE, new IOException("no"));
    Driver driver = new Driver(place.store());
    for (int i = 0; i < 45; i++) {
      driver.commit();
    }
    assertTrue(data().contains(removed));
    assertEquals(0, state().boundary());
    Driver next = new Driver();
    for (int i = 0; i < 25; i++) {
      next.commit();
    }
    assertFalse(data().contains(removed));
    assertTrue(state().boundary() > 40, "boundary " + state().boundary());
  }

  @Test
  void aDamagedCheckpointKeepsTheBoundary() throws IOException {
    Driver driver = new Driver();
    for (int i = 0; i < 15; i++) {
      driver.commit();
    }
    for (String checkpoint : files("_partlog/t", ".*checkpoint.*")) {
      byte[] bytes = Files.readAllBytes(folder.resolve(checkpoint));
      bytes[bytes.length / 2] ^= 1;
      Files.write(folder.resolve(checkpoint), bytes);
    }
    for (int i = 0; i < 14; i++) {
      driver.commit();
    }
    assertEquals(0, state().boundary(), "the one before the newest cannot be read");
    for (int i = 0; i < 10; i++) {
      driver.commit();
    }
    assertEquals(20, state().boundary());
  }

  /** The boundary rises to a checkpoint that can be read. One that the store fails to give stops neither the commit nor the clean-up. */
  @Test
  void aCheckpointThatCannotBeReadIsPassedOver() throws IOException {
    FaultyStore place = FaultyStore.of(Stores.open(folder.toString()));
    Driver driver = new Driver(place.store());
    while (files("_partlog/t", ".*checkpoint.*").isEmpty()) {
      driver.commit();
    }
    String unreadable = files("_partlog/t", ".*checkpoint.*").get(0);
    place.failAll("open " + unreadable, When.BEFORE, new IOException("no answer"));
    long version = state().version();
    while (state().version() < version + 9) {
      driver.commit();
      assertEquals(0, state().boundary());
    }
    while (state().boundary() == 0) {
      assertTrue(state().version() < version + 40, "the boundary stays");
      driver.commit();
    }
    assertTrue(place.calls().contains("open " + unreadable));
    assertTrue(state().boundary() > version, "boundary " + state().boundary());
  }

  /** The names of a segment in the view, up to their kind. @param own whether it has a data file of its own */
  private String viewed(boolean own) {
    Segment segment = state().segments()
        .stream()
        .flatMap(List::stream)
        .filter(each -> Names.isOwnFile(each.file()) == own && each.batches() > 1)
        .findFirst()
        .orElseThrow();
    return Names.viewFolder("t", segment.partition()) + "/" + Names.viewFile(segment.base(), "");
  }

  /** The work that a commit of another process left undone, also on files that a power loss left half written. */
  @Test
  void theNextCommitOfAnyoneMakesTheViewRight() throws IOException {
    Driver first = new Driver();
    first.commit(Map.of("index.interval.bytes", "100"), 4000);
    String copied = viewed(false);
    first.commit(Map.of(), 300_000);
    String linked = viewed(true);
    assertEquals(2, Files.getAttribute(folder.resolve(linked + "log"), "unix:nlink"));
    assertEquals(1, Files.getAttribute(folder.resolve(copied + "log"), "unix:nlink"));
    for (String name : List.of(copied + "log", copied + "index", copied + "timeindex", linked + "log", linked + "index")) {
      Path file = folder.resolve(name);
      byte[] whole = Files.readAllBytes(file);
      for (int length : new int[] {-1, 0, whole.length / 24 * 12}) {
        Files.delete(file);
        if (length >= 0) {
          Files.write(file, Arrays.copyOf(whole, length));
        }
        new Driver().commit();
        assertEquals(whole.length, Files.size(file), name + " of " + length + " bytes");
      }
    }
    Files.write(folder.resolve("t-0/00000000000000009999.log"), new byte[10]);
    Files.write(folder.resolve("t-0/notes.txt"), new byte[10]);
    new Driver().commit();
    assertFalse(Files.exists(folder.resolve("t-0/00000000000000009999.log")));
    Files.delete(folder.resolve("t-0/notes.txt"));
    assertViewIsRight();
  }

  /** The processes after one that dies do what it left undone. */
  @Test
  void aProcessMayEndAnywhere() throws IOException {
    long seed = Seed.draw();
    System.out.println("aProcessMayEndAnywhere: seed " + seed);
    Random deaths = new Random(seed);
    pace = new Pace(4, 8, ms -> {});
    new Driver().commit(Map.of("file.delete.delay.ms", "0"), 0);
    for (int life = 0; life < 25; life++) {
      int calls = deaths.nextInt(300);
      int[] called = {0};
      Driver dies = new Driver(FaultyStore.of(Stores.open(folder.toString())).at((method, name, when) -> {
        if (++called[0] > calls) {
          throw new IOException("dead");
        }
      }).store());
      try {
        for (int i = 0; i < 6; i++) {
          dies.commit();
          dies.replace();
        }
      } catch (IOException | PartlogException | NoSuchElementException e) {
        continue; // So it died in a commit, and not after one.
      }
    }
    Driver driver = new Driver();
    for (int i = 0; i < 15; i++) {
      driver.commit();
    }
    assertViewIsRight();
    assertTrue(files("_partlog/t", ".*\\.json").size() <= 12);
    assertTrue(files("_partlog/t", ".*checkpoint.*").size() <= 3);
    assertTrue(state().boundary() > 5, "boundary " + state().boundary());
    // All that any version named and that is not live is gone; what no version named waits for a vacuum.
    Path data = folder.resolve("_partlog/t/data");
    for (String file : data()) {
      Files.setLastModifiedTime(folder.resolve(file), FileTime.fromMillis(0));
    }
    nowMs = System.currentTimeMillis();
    new Vacuum(new TopicWork(driver.log(), clock(), random)).run(Vacuum.OLDER_THAN_MIN, false);
    List<String> named = state().segments().stream().flatMap(List::stream).map(segment -> "_partlog/t/" + segment.file()).toList();
    assertEquals(named.stream().distinct().sorted().toList(), data());
    assertTrue(Files.isDirectory(data));
  }

  /** A writer that knows the view touches only what it added: it does not list. */
  @Test
  void aSmallCommitDoesNotListTheView() throws IOException {
    FaultyStore place = FaultyStore.of(Stores.open(folder.toString()));
    Driver driver = new Driver(place.store());
    driver.commit();
    driver.commit();
    place.calls().clear();
    driver.commit();
    assertEquals(List.of(), place.calls().stream().filter(call -> call.startsWith("list")).toList());
    new Driver().commit();
    driver.commit();
    assertTrue(place.calls().contains("list t-0"), "another has committed in between");
    assertViewIsRight();
  }

  /** The view is listed before a checkpoint. It follows the version that retention puts with it without another look. */
  @Test
  void theViewIsListedOnceForACheckpoint() throws IOException {
    FaultyStore place = FaultyStore.of(Stores.open(folder.toString()));
    Driver driver = new Driver(place.store());
    driver.commit(Map.of("retention.bytes", "1"), 0);
    while (state().checkpointVersion() < 0) {
      place.calls().clear();
      driver.commit();
    }
    assertTrue(IntStream.range(0, 4).anyMatch(p -> state().start(p) > 0), "retention came with the checkpoint");
    assertEquals(1, place.calls().stream().filter("list t-0"::equals).count());
    assertViewIsRight();
  }
}
