package io.sparklog.view;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.kit.Drivers;
import io.sparklog.log.Committers;
import io.sparklog.merge.Merging;
import io.sparklog.segment.Names;
import io.sparklog.storage.FaultyStore.When;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The Kafka view beside processes that sleep, and by the setting of the topic. FORMAT.md section 8. */
final class KafkaViewTest extends Drivers {
  /**
   * A process sleeps before it gives a segment a name. Another process merges the segment away. The first wakes, names it, and dies.
   *
   * @param commits that come before the one of that process
   * @param names that it gives, the last one late; the first partition that has records takes three
   */
  @ParameterizedTest
  @CsvSource({"0, 1", "0, 2", "0, 3", "0, 5", "0, 6", "1, 1", "1, 2", "1, 3", "1, 6"})
  void whatASleeperPutsIsGoneAfterTheNextCheckpoint(int commits, int names) throws IOException {
    Driver longLived = new Driver();
    for (int i = 0; i < commits; i++) {
      longLived.commit(Map.of("index.interval.bytes", "100"), 0);
    }
    int[] given = {0};
    boolean[] dead = {false};
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString())).at((method, name, when) -> {
      if (dead[0] && !method.equals("root") && !method.equals("location")) {
        throw new IOException("dead");
      }
      if (method.equals("link") && when == When.BEFORE && ++given[0] == names) {
        longLived.commit();
        new Merging(new Committers(longLived.log(), clock(), random)).all();
        longLived.commit();
      } else if (method.equals("link") && when == When.AFTER && given[0] >= names) {
        dead[0] = true;
      }
    });
    Driver sleeper = new Driver(store.store());
    sleeper.commit(Map.of("index.interval.bytes", "100"), 0);
    assertTrue(dead[0]);
    long checkpoint = state().checkpointVersion();
    while (state().checkpointVersion() == checkpoint) {
      longLived.commit();
    }
    assertViewIsRight();
  }

  private List<String> viewFolders() throws IOException {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.map(entry -> entry.getFileName().toString()).filter(name -> name.startsWith("t-")).sorted().toList();
    }
  }

  private Administration administration(LogStore store) {
    return new Administration(new TopicWork(new Driver(store).log(), clock(), random));
  }

  @Test
  void aDeletedTopicLeavesNoFolderThatIsEmpty() throws IOException {
    LogStore store = Stores.open(folder.toString());
    new Driver().commit();
    Path notes = folder.resolve("t-1/notes.txt");
    Files.write(notes, new byte[1]);
    assertTrue(viewFolders().size() > 2);
    administration(store).delete(false);
    assertEquals(List.of("t-1"), viewFolders());
    assertEquals(List.of("t-1/notes.txt"), files("t-1"));
    // Files of a process that slept through the deletion.
    Files.createDirectory(folder.resolve("t-2"));
    Files.write(folder.resolve("t-2/00000000000000000000.log"), new byte[1]);
    Files.delete(notes);
    administration(store).delete(false);
    assertEquals(List.of(), viewFolders());
  }

  /** @param call of the deletion, before which another process creates a topic of that name and writes to it */
  @ParameterizedTest
  @ValueSource(strings = {"delete t-0/00000000000000000000.log", "deleteFolderIfEmpty t-0", "deleteFolderIfEmpty t-2"})
  void aTopicOfThatNameMayBeginMeanwhile(String call) throws IOException {
    new Driver().commit();
    boolean[] begun = {false};
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString())).at((method, name, when) -> {
      if (when == When.BEFORE && !begun[0] && call.equals(method + " " + name)) {
        begun[0] = true;
        new Driver().commit();
      }
    });
    administration(store.store()).delete(false);
    assertTrue(begun[0]);
    new Driver().commit();
    assertEquals(4, state().partitions());
    assertViewIsRight();
  }

  /**
   * A process sleeps before it gives a segment a name; by then the topic is another one, of a single partition.
   *
   * @param names that it gives, the last one late and in a partition that is gone
   */
  @ParameterizedTest
  @CsvSource({"publish, 1", "publish, 3", "commit, 4", "commit, 6"})
  void whatASleeperPutsForADeletedTopicIsNotForeignLater(String by, int names) throws IOException {
    Driver driver = new Driver();
    driver.commit();
    if (by.equals("publish")) {
      for (String name : files("", "t-[1-3]/.*")) {
        Files.delete(folder.resolve(name));
      }
    }
    int[] given = {0};
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString())).at((method, name, when) -> {
      if (when == When.BEFORE && method.equals("link") && ++given[0] == names) {
        administration(Stores.open(folder.toString())).delete(false);
        new Driver().commit(Map.of("partitions", "1"), 0);
      }
    });
    if (by.equals("publish")) {
      KafkaView.publish(new Driver(store.store()).log(), Names.identity(random));
    } else {
      new Driver(store.store()).commit();
    }
    assertTrue(given[0] >= names);
    assertEquals(List.of("t-0"), viewFolders());
    administration(Stores.open(folder.toString())).addPartitions(4, Administration.RerouteTime.NOW, false);
    assertViewIsRight();
  }

  private List<String> viewed() throws IOException {
    return files("", "t-[0-9]+/.*\\.log");
  }

  private void requireView(String setting, int live) throws IOException {
    assertEquals(setting, state().config().get("kafka.view"));
    assertViewIsRight();
    assertEquals(live, viewed().size());
    for (String log : viewed()) {
      assertTrue(!setting.equals("merged") || (int) Files.getAttribute(folder.resolve(log), "unix:nlink") == 2, log);
    }
  }

  /** @param knows whether the process that changes it has made the view itself, and so touches only what changes */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void theSettingSaysWhatIsInTheView(boolean knows) throws IOException {
    Driver first = new Driver();
    first.commit(Map.of("kafka.view", "merged"), 300_000); // Task 0 writes files of its own, what task 1 writes travels to the driver.
    long all = state().liveSegments();
    int own = viewed().size();
    assertTrue(own > 0 && own < all, own + " of " + all);
    requireView("merged", own);
    for (String setting : List.of("all", "none", "merged", "none", "all", "merged")) {
      Driver driver = knows ? first : new Driver();
      new Administration(new TopicWork(driver.log(), clock(), random)).configure(Map.of("kafka.view", setting));
      requireView(setting, setting.equals("all") ? (int) all : setting.equals("none") ? 0 : own);
      assertEquals(setting.equals("none"), viewFolders().isEmpty());
    }
    first.commit();
    new Driver().commit();
    requireView("merged", own);
    new Merging(new Committers(first.log(), clock(), random)).all();
    first.commit();
    requireView("merged", (int) state().segments().stream().filter(live -> !live.isEmpty()).count());
  }

  @Test
  void publishBringsTheViewToTheSetting() throws IOException {
    Driver driver = new Driver();
    driver.commit(Map.of("kafka.view", "none"), 300_000);
    for (int i = 0; i < 12; i++) { // A checkpoint is among them.
      driver.commit();
    }
    assertEquals(List.of(), viewFolders());
    Files.createDirectory(folder.resolve("t-3"));
    Files.write(folder.resolve("t-3/00000000000000000000.log"), new byte[10]);
    Files.createDirectory(folder.resolve("t-2"));
    assertEquals(0, KafkaView.publish(driver.log(), Names.identity(random)));
    assertEquals(List.of(), viewFolders());
  }
}
