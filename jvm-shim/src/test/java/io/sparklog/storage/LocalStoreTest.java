package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Writes;
import io.sparklog.log.Root;
import io.sparklog.segment.Names;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.io.SyncFailedException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.function.Executable;

/** A local disk: what every store promises, what is synced and when, and what else may be at a name. */
final class LocalStoreTest extends LinkingStoreContract {
  @TempDir
  private Path folder;

  /** The writes and syncs that the disk was asked for; those named in {@code failing} fail. */
  private final List<String> events = new ArrayList<>();
  private String failing = "none";

  @Override
  LogStore newStore() {
    // None of this may be an escape, a pattern or the end of a path.
    return new Watched(folder.resolve("odd %41 ü+:?#*"));
  }

  /** A disk that tells what it is asked to write and sync, and whether the put file is by then a second name of what was synced. */
  private final class Watched extends LocalStore {
    private final Path root;

    private Watched(Path root) {
      super(root);
      this.root = root;
    }

    @Override
    FileChannel channel(Path path, OpenOption... options) throws IOException {
      String name = path.equals(root) ? "." : path.startsWith(root) ? root.relativize(path).toString() : "..";
      return new WatchedChannel(super.channel(path, options), event -> {
        events.add(event + " " + name + (isLinked() ? " linked" : ""));
        if (failing.equals(event + " " + name)) {
          throw new IOException("Input/output error");
        }
      });
    }

    private boolean isLinked() throws IOException {
      return Files.exists(root.resolve(FILE)) && Files.exists(root.resolve(TEMPORARY)) && isSameFile(FILE, TEMPORARY);
    }
  }

  @Test
  void aPutIsDurableBeforeItsLinkAndAfterIt() throws IOException {
    store.createFolder(TOPIC + "/tmp");
    events.clear();
    put(FILE, "one");
    assertEquals(List.of("write " + TEMPORARY, "sync " + TEMPORARY, "sync " + TOPIC + " linked"), events);
  }

  @Test
  void aPutThatCannotWriteLeavesNothing() throws IOException {
    store.createFolder(TOPIC);
    for (String fault : List.of("write " + TEMPORARY, "sync " + TEMPORARY)) {
      failing = fault;
      IOException failed = assertThrows(IOException.class, () -> put(FILE, "one"));
      assertTrue(failed.getMessage().endsWith("Input/output error"), failed.getMessage());
      assertFalse(store.exists(FILE), fault);
    }
    failing = "none";
    put(FILE, "another");
    assertEquals("another", content(FILE));
    assertEquals(List.of(), store.list(TOPIC + "/tmp"));
  }

  @Test
  void aFolderThatCannotBeSyncedIsToldApart() throws IOException {
    store.createFolder(TOPIC + "/tmp");
    failing = "sync " + TOPIC;
    List<Executable> calls = List.of(() -> put(FILE, "one"), () -> store.flush(TOPIC), () -> store.createFolder(TOPIC + "/a"),
        () -> store.create(TOPIC + "/b/c/0.log"));
    calls.forEach(call -> assertThrows(SyncFailedException.class, call));
    assertEquals("one", content(FILE), "a put whose folder is not synced may be seen");
    assertEquals(List.of(), store.list(TOPIC + "/tmp"));
  }

  @Test
  void everyNewFolderAboveThatOfAFileIsDurable() throws IOException {
    createFile(TOPIC + "/data/0.log", "data");
    assertEquals(List.of("sync ..", "sync .", "sync _partlog"), events.subList(0, 3));
    assertEquals(List.of("write " + TOPIC + "/data/0.log", "sync " + TOPIC + "/data/0.log"), events.subList(3, events.size()));
  }

  /** Its file, its data folder, `data/`, the version file, the topic's folder: each once. */
  @Test
  void aCommitHasFiveSyncs() throws IOException {
    Root root = new Root(store);
    Random random = new Random(58);
    for (int tasks = 0; tasks < 3; tasks++) { // Without a task, it creates the topic. Two tasks do not let their records travel.
      TopicPlan plan = TopicPlan.of("t", root.topic("t").latest(), Writes.config());
      String txn = Names.identity(random);
      events.clear();
      List<TopicReport> reports = Writes.of("x", tasks, tasks == 1 ? 100 : 20_000, 0).reports(store, plan, txn);
      new TopicCommits(root, txn, topic -> Once.NEVER, Clock.systemUTC(), random).commit(plan, reports);
      String data = TOPIC + "/" + plan.folder(txn);
      List<String> files = tasks == 1 ? List.of("pool.log") : List.of("t0-100.log", "t1-101.log");
      List<String> expected = new ArrayList<>();
      for (String file : files) {
        expected.addAll(List.of("sync " + data + "/" + file, "sync " + data));
      }
      expected.addAll(List.of("sync " + TOPIC + "/data", "sync " + TOPIC + "/tmp", "sync " + TOPIC));
      List<String> syncs = events.stream()
          .filter(event -> event.startsWith("sync " + TOPIC))
          .map(event -> event.replaceAll("(/tmp)/.*", "$1"))
          .toList();
      if (tasks == 0) {
        assertTrue(events.indexOf("sync " + TOPIC) < events.lastIndexOf("sync " + TOPIC), "`data/` is durable before the put: " + events);
      } else {
        assertEquals(expected, syncs);
      }
    }
  }

  /** Another process may have created them, and died before it synced them. */
  @Test
  void existingFoldersAreSyncedToo() throws IOException {
    store.createFolder(TOPIC);
    events.clear();
    store.createFolder(TOPIC);
    assertEquals(List.of("sync .", "sync ..", "sync _partlog"), events.stream().sorted().toList());
  }

  @Test
  void aStampIsSynced() throws IOException {
    createFile(TOPIC + "/data/0.log", "data");
    events.clear();
    try (FileStamper file = ((LinkingStore) store).stamp(TOPIC + "/data/0.log")) {
      file.replace(0, bytes("x"), 0, 1);
      file.sync();
    }
    assertEquals(List.of("write " + TOPIC + "/data/0.log", "sync " + TOPIC + "/data/0.log"), events);
  }

  @Test
  void whatIsNotARegularFileIsUnfit() throws Exception {
    store.createFolder(TOPIC);
    put(FILE, "one");
    Path topic = Path.of(store.location(TOPIC));
    Files.createSymbolicLink(topic.resolve("link"), topic.resolve("00000000000000000000.json"));
    Files.createSymbolicLink(topic.resolve("dangling"), topic.resolve("absent"));
    Files.createSymbolicLink(topic.resolveSibling("t2"), topic);
    Files.createDirectory(topic.resolve("folder"));
    assertEquals(0, new ProcessBuilder("mkfifo", topic.resolve("pipe").toString()).start().waitFor());
    for (String name : List.of("t/link", "t/dangling", "t/folder", "t/pipe", "t2/00000000000000000000.json")) {
      List<Executable> calls = List.of(() -> store.read("_partlog/" + name, 10), () -> store.open("_partlog/" + name),
          () -> store.append("_partlog/" + name), () -> ((LinkingStore) store).stamp("_partlog/" + name));
      calls.forEach(call -> assertThrows(UnfitFileException.class, call, name));
    }
    assertThrows(UnfitFileException.class, () -> store.list("_partlog/t2"));
    assertThrows(UnfitFileException.class, () -> store.create("_partlog/t2/data/0.log"));
    assertThrows(UnfitFileException.class, () -> store.createFolder("_partlog/t2/data"));
    assertTrue(store.exists(TOPIC + "/dangling"));
    store.delete(TOPIC + "/link");
    assertEquals("one", content(FILE));
  }
}
