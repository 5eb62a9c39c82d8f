package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.FaultyStore.When;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** How the newest state of a topic is found while others commit, and while version files are deleted. FORMAT.md section 9. */
final class TopicLogTest extends CommitsOverFaults {
  @Test
  void nothingNewCostsTwoLooks() throws IOException {
    commit(1, null);
    commit(1, null);
    TopicLog log = new TopicLog(store.store(), "t");
    State known = log.newest().orElseThrow();
    store.calls().clear();
    assertSame(known, log.newest().orElseThrow());
    assertEquals(List.of("tag " + version(2), "tag " + version(1)), store.calls());
  }

  /** The syncs of two commits can end in the other order. */
  @Test
  void aDurableVersionStaysDurable() throws IOException {
    commit(1, null);
    TopicLog log = new TopicLog(store.store(), "t");
    State known = log.newest().orElseThrow();
    log.noteDurable(known.topicId(), known.version());
    log.noteDurable(known.topicId(), known.version() - 1);
    assertTrue(log.isDurable(known));
  }

  @Test
  void oneCommitCostsOneRead() throws IOException {
    commit(1, null);
    TopicLog log = new TopicLog(store.store(), "t");
    log.newest();
    commit(1, null);
    store.calls().clear();
    assertEquals(1, log.newest().orElseThrow().version());
    List<String> calls = store.calls().stream().filter(call -> !call.startsWith("location ")).toList();
    assertEquals(List.of("tag " + version(1), "read " + version(1), "tag " + version(2), "tag " + version(0)), calls);
  }

  /** A query is stopped by an interrupt: to replay all versions would delay its end, and each would fail likewise. */
  @Test
  void anInterruptIsNotADamagedCheckpoint() throws IOException {
    commit(1, null);
    commit(1, null);
    Checkpoint.write(Stores.open(root.toString()), state(), Names.identity(random));
    TopicLog log = new TopicLog(store.store(), "t");
    for (IOException interrupt : List.of(new InterruptedIOException(), new ClosedByInterruptException())) {
      store.fail("open", 1, When.BEFORE, interrupt);
      store.calls().clear();
      assertSame(interrupt, assertThrows(PartlogException.class, log::newest).getCause());
      assertEquals(List.of(), store.calls().stream().filter(call -> call.startsWith("read ")).toList());
    }
    store.fail("open", 1, When.BEFORE, new IOException("the disk fails at the open after that one"));
    store.calls().clear();
    assertEquals(1, log.newest().orElseThrow().version());
    assertEquals(List.of("read " + version(0), "read " + version(1)),
        store.calls().stream().filter(call -> call.startsWith("read ")).toList());
  }

  /** With as many versions, each as long as the one before: an inode is used again at once. */
  @Test
  void aTopicThatWasMadeAgainIsAnotherOne() throws IOException, InterruptedException {
    LogStore place = Stores.open(root.toString());
    commit(place, 1, null);
    TopicLog log = new TopicLog(place, "t");
    State known = log.newest().orElseThrow();
    Thread.sleep(20); // A file's time goes in steps of the kernel's.
    try (Stream<Path> files = Files.walk(root)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
    assertEquals(Optional.empty(), log.newest());
    commit(place, 1, null);
    State another = log.newest().orElseThrow();
    assertEquals(known.version(), another.version());
    assertNotEquals(known.topicId(), another.topicId());
  }

  /** Where a reader begins: at no checkpoint, at a checkpoint of version 1, or with a state of version 1 that it kept. */
  enum Begin {
    NOTHING, CHECKPOINT, STATE
  }

  private TopicLog begun(Begin begin) throws IOException {
    commit(1, null);
    commit(1, null);
    TopicLog log = new TopicLog(store.store(), "t");
    if (begin == Begin.CHECKPOINT) {
      Checkpoint.write(Stores.open(root.toString()), state(), Names.identity(random));
    } else if (begin == Begin.STATE) {
      log.newest();
    }
    return log;
  }

  /** The versions 2 to 4 are committed, and gone when the reader comes to 3: it must not take 2 for the newest. */
  @ParameterizedTest
  @EnumSource
  void versionsAreDeletedBeneathAReader(Begin begin) throws IOException {
    TopicLog log = begun(begin);
    LogStore place = Stores.open(root.toString());
    for (int i = 2; i <= 5; i++) {
      commit(place, 1, null);
    }
    State fifth = state();
    commit(place, 1, null);
    before("tag " + version(3), 1, () -> cleanUp(place, fifth));
    assertEquals(6, log.newest().orElseThrow().version());
  }

  /** Between the two looks of a reader that kept a state. The other way round it would see its own version still there, and no next one. */
  @Test
  void aReaderLooksForTheNextVersionFirst() throws IOException {
    TopicLog log = begun(Begin.STATE);
    LogStore place = Stores.open(root.toString());
    for (int i = 2; i <= 5; i++) {
      commit(place, 1, null);
    }
    State fifth = state();
    int[] looks = {0};
    store.at((method, name, when) -> {
      if (method.equals("tag") && when == When.BEFORE && ++looks[0] == 2) {
        cleanUp(place, fifth);
      }
    });
    assertEquals(5, log.newest().orElseThrow().version());
    assertTrue(looks[0] > 2, looks[0] + " looks");
  }

  /** A writer that slept puts version 2 where the one that counts was deleted: it follows version 1, and counts for nothing. */
  @ParameterizedTest
  @EnumSource
  void aStrayVersionCountsForNothing(Begin begin, @TempDir Path other) throws IOException {
    TopicLog log = begun(begin);
    Path copy = Files.createDirectories(other.resolve(TOPIC_FOLDER));
    for (int i = 0; i < 2; i++) {
      Files.copy(root.resolve(version(i)), copy.resolve(Names.versionFile(i)));
    }
    assertEquals(2, commit(Stores.open(other.toString()), 3, null).orElseThrow().version());
    before("tag " + version(2), 1, () -> {
      overtakeAndCleanUp(null);
      Files.copy(other.resolve(version(2)), root.resolve(version(2)));
    });
    State found = log.newest().orElseThrow();
    assertEquals(state().hash(), found.hash());
    assertEquals(6, found.version());
  }

  /** A writer that slept begins the topic where its first version was deleted. A reader that saw no checkpoint begins at that file. */
  @Test
  void aStrayFirstVersionCountsForNothing(@TempDir Path other) throws IOException {
    commit(1, null);
    Files.createDirectories(other.resolve(TOPIC_FOLDER));
    assertEquals(0, commit(Stores.open(other.toString()), 3, null).orElseThrow().version());
    before("tag " + version(0), 1, () -> {
      overtakeAndCleanUp(null);
      Files.copy(other.resolve(version(0)), root.resolve(version(0)));
    });
    State found = new TopicLog(store.store(), "t").newest().orElseThrow();
    assertEquals(state().hash(), found.hash());
    assertEquals(6, found.version());
  }

  /** The only checkpoint cannot be read for a moment; when it is read again, it has been deleted, as a newer one is there. */
  @Test
  void aCheckpointThatIsDeletedMeanwhileIsNotDamaged() throws IOException {
    overtakeAndCleanUp(null);
    LogStore place = Stores.open(root.toString());
    State sixth = state();
    String checkpoint = place.list(TOPIC_FOLDER).stream().filter(name -> name.contains(".checkpoint-")).findFirst().orElseThrow();
    before("open " + TOPIC_FOLDER + "/" + checkpoint, 2, () -> cleanUp(place, sixth));
    store.fail("open", 1, When.BEFORE, new IOException("a fault"));
    assertEquals(6, new TopicLog(store.store(), "t").newest().orElseThrow().version());
  }

  /** A listing that takes as long as writers take to replace all that was there when it began need not show any of it. */
  @Test
  void oneListingWithoutAVersionProvesNothing() throws IOException {
    commit(1, null);
    Path folder = root.resolve(TOPIC_FOLDER);
    Path hidden = root.resolve("hidden");
    int[] listings = {0};
    store.at((method, name, when) -> {
      if (method.equals("list") && name.equals(TOPIC_FOLDER) && listings[0] < 2) {
        listings[0]++;
        Files.move(when == When.BEFORE ? folder : hidden, when == When.BEFORE ? hidden : folder);
      }
    });
    assertEquals(0, new TopicLog(store.store(), "t").newest().orElseThrow().version());
    listings[0] = 0;
    assertEquals(List.of("t"), new Root(store.store()).topics());
  }

  /** As above, but the newer files show in part: a version, and not the checkpoint to begin with. */
  @Test
  void aListingThatToldOfALaterVersionProvesNothingEither() throws IOException {
    commit(1, null);
    Path folder = root.resolve(TOPIC_FOLDER);
    Path hidden = root.resolve("hidden");
    Path[] checkpoint = new Path[1];
    int[] listings = {0};
    store.at((method, name, when) -> {
      if (!method.equals("list") || !name.equals(TOPIC_FOLDER)) {
        return;
      }
      listings[0] += when == When.BEFORE ? 1 : 0;
      if (listings[0] == 1 && when == When.AFTER) {
        overtakeAndCleanUp(null);
        String left = Stores.open(root.toString()).list(TOPIC_FOLDER).stream().filter(it -> it.contains("checkpoint")).findFirst().get();
        checkpoint[0] = folder.resolve(left);
      } else if (listings[0] == 2) {
        Files.move(when == When.BEFORE ? checkpoint[0] : hidden, when == When.BEFORE ? hidden : checkpoint[0]);
      }
    });
    assertEquals(6, new TopicLog(store.store(), "t").newest().orElseThrow().version());
    assertEquals(3, listings[0]);
  }

  private PartlogException refused() {
    store.calls().clear();
    PartlogException error = assertThrows(PartlogException.class, () -> new TopicLog(store.store(), "t").newest());
    assertEquals(2, store.calls().stream().filter(("list " + TOPIC_FOLDER)::equals).count(), "attempts");
    return error;
  }

  @Test
  void whatIsMissingTwiceIsMissing() throws IOException {
    overtakeAndCleanUp(null);
    Files.delete(root.resolve(version(5)));
    PartlogException error = refused();
    assertEquals("VERSION_MISSING", error.id());
    assertEquals("5", error.parameters().get("version"), "that of the checkpoint");
    Files.delete(root.resolve(version(6)));
    assertEquals("VERSION_MISSING", refused().id());
  }

  /** A disk that fails is not a topic that is damaged. */
  @Test
  void aCheckpointThatCannotBeReadTwiceIsAnErrorOfTheStore() throws IOException {
    overtakeAndCleanUp(null);
    store.at((method, name, when) -> {
      if (name.contains(".checkpoint-") && !method.equals("exists")) {
        throw new IOException("thrown by the test");
      }
    });
    PartlogException error = refused();
    assertEquals("IO", error.id());
    assertEquals("thrown by the test", error.getCause().getMessage());
  }

  @Test
  void aVersionThatFollowsAnotherOneIsCorrupt(@TempDir Path other) throws IOException {
    LogStore place = Stores.open(other.toString());
    for (int i = 0; i < 3; i++) {
      commit(1, null);
      commit(place, 1, null);
    }
    Files.copy(other.resolve(version(2)), root.resolve(version(2)), StandardCopyOption.REPLACE_EXISTING);
    PartlogException error = refused();
    assertEquals("VERSION_CORRUPT", error.id());
    assertTrue(error.getMessage().contains("does not follow version 1"), error.getMessage());
  }

  @Test
  void aVersionOfWhichOnlyAPartCameIsNotCorrupt() throws IOException {
    commit(1, null);
    FaultyStore place = FaultyStore.of(Stores.open(root.toString()));
    place.answer("read " + version(0), (real, with) -> Arrays.copyOf(real.read(version(0), (int) with[1]), 100));
    PartlogException error = assertThrows(PartlogException.class, () -> new TopicLog(place.store(), "t").newest());
    assertEquals("IO", error.id());
    assertTrue(error.getMessage().contains("only 100 of "), error.getMessage());
  }

  @Test
  void aCheckpointOfAnotherVersionIsNotBegunAt(@TempDir Path other) throws IOException {
    commit(1, null);
    commit(Stores.open(other.toString()), 1, null);
    Checkpoint.write(Stores.open(root.toString()), state(), Names.identity(random));
    Files.copy(other.resolve(version(0)), root.resolve(version(0)), StandardCopyOption.REPLACE_EXISTING);
    PartlogException error = refused();
    assertEquals("VERSION_CORRUPT", error.id());
    assertTrue(error.getMessage().contains("it is not the version that 00000000000000000000.checkpoint-"), error.getMessage());
  }
}
