package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.MillisClock;
import io.sparklog.kit.Seed;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.FaultyStore.When;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.StoreRef;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.lang.reflect.Proxy;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

class RootTest {
  private static final int ROOTS = Seed.either(500, 2000);

  /** Ways to give the wrong directory, each told apart; tests/unit/test_log_arguments.py has them of the other reader. */
  @Test
  void aDirectoryThatIsNotARootIsToldApart(@TempDir Path folder) throws Exception {
    for (String made : List.of("_partlog/t", "t-1", "broker/t-0", "plain-7")) {
      Files.createDirectories(folder.resolve(made));
    }
    Files.writeString(folder.resolve("broker/meta.properties"), "");
    assertRefused("ROOT_WITHOUT_LOG", "plain-7 exists, but it is not a root", () -> root(folder, "plain-7").requireReadable());
    assertRefused("PARTITION_DIRECTORY", "Give the directory above it, " + folder + ",", () -> root(folder, "t-1").requireReadable());
    assertRefused("PARTITION_DIRECTORY", "partition 1 of topic t", () -> root(folder, "t-1").requireWritable());
    for (String within : List.of("_partlog", "_partlog/t", "_partlog/new/er")) {
      assertRefused("LOG_DIRECTORY", "Give the root, " + folder + ",", () -> root(folder, within).requireWritable());
    }
    assertRefused("LOG_DIRECTORY", "_partlog/t is not a root: it is the folder _partlog of a root, or a folder inside it",
        () -> root(folder, "_partlog/t").requireReadable());
    Files.createDirectories(folder.resolve("_partlog/t/inner/_partlog"));
    root(folder, "_partlog/t/inner").requireReadable();
    assertRefused("BROKER_DIRECTORY", "meta.properties there: reading it is not supported yet.",
        () -> root(folder, "broker").requireReadable());
    assertRefused("BROKER_DIRECTORY", "../meta.properties there: reading it", () -> root(folder, "broker/t-0").requireReadable());
    assertRefused("BROKER_DIRECTORY", "there: partlog never writes to it.", () -> root(folder, "broker").requireWritable());
    root(folder, "").requireReadable();
  }

  /** The clients of a server may ask for any name. */
  @Test
  void aNameWithoutATopicIsForgottenWhenNothingUsesIt(@TempDir Path folder) throws Exception {
    Root root = root(folder, "");
    WeakReference<TopicLog> unused = new WeakReference<>(root.topic("unused"));
    TopicLog used = root.topic("used");
    for (int i = 0; i < 3000; i++) {
      root.newest("name" + i);
    }
    for (int i = 0; i < 50 && unused.get() != null; i++) {
      System.gc();
      Thread.sleep(20);
    }
    assertNull(unused.get());
    assertSame(used, root.topic("used"));
  }

  /** Its files would be in the way of the other's, which finds no use for them. One that is there stays readable, and is written. */
  @Test
  void aRootIsNotMadeInARoot(@TempDir Path folder) throws Exception {
    Path outer = folder.resolve("logs");
    Files.createDirectories(outer.resolve("_partlog/t"));
    Files.createDirectories(outer.resolve("t-0"));
    Files.createSymbolicLink(folder.resolve("link"), outer);
    Files.createSymbolicLink(outer.resolve("out"), folder);
    for (String within : List.of("logs/inner", "logs/in/ner", "logs/t-0/inner", "logs/u-1", "link/inner", "link/in/ner", "logs/out/x")) {
      assertRefused("ROOT_IN_ROOT", "inside the root " + folder + "/logs.", () -> root(folder, within).requireWritable());
    }
    assertRefused("ROOT_IN_ROOT", "such as " + outer + "-inner; or write the topics to " + outer + " itself",
        () -> root(folder, "logs/inner").requireWritable());
    root(folder, "logs-inner").requireWritable();
    Files.createDirectories(outer.resolve("old/_partlog"));
    root(folder, "logs/old").requireWritable();
    root(folder, "logs/old").requireReadable();
    assertRefused("ROOT_IN_ROOT", "inside the root " + outer + "/old.", () -> root(folder, "logs/old/x").requireWritable());
  }

  /** A place that does not answer has not said that the root is absent: a new one would be made, or an empty result believed. */
  @Test
  void aLookThatFailsIsNoAnswer(@TempDir Path folder) throws Exception {
    Files.createDirectories(folder.resolve("_partlog"));
    for (boolean reads : new boolean[] {true, false}) {
      FaultyStore place = FaultyStore.of(Stores.open(folder.toString()));
      place.failAll("rootExists", FaultyStore.When.BEFORE, new IOException("cut"));
      Root root = new Root(place.store());
      PartlogException e = assertThrows(PartlogException.class, reads ? root::requireReadable : root::requireWritable);
      assertEquals("PARTLOG_IO", e.condition());
    }
  }

  @Test
  void aRootIsPreparedUntilItIsDeleted(@TempDir Path folder) throws Exception {
    Root root = root(folder, "root");
    assertFalse(root.isPrepared());
    for (int n = 0; n < 2; n++) {
      root.prepare();
      assertTrue(root.isPrepared());
      Files.delete(folder.resolve("root/_partlog"));
      assertFalse(root.isPrepared());
    }
    root.prepare();
    assertFalse(root(folder, "root").isPrepared(), "the process that made it may have died before its sync");
  }

  private static Root root(Path folder, String name) {
    return new Root(Stores.open(folder.resolve(name).toString()));
  }

  private static void assertRefused(String id, String says, Executable call) {
    PartlogException error = assertThrows(PartlogException.class, call);
    assertEquals(id, error.id());
    assertTrue(error.getMessage().contains(says), error.getMessage());
  }

  /** The first writers to a root make it while the others look at it. */
  @Test
  void aRootThatIsBeingMadeIsNotTakenForAFile(@TempDir Path folder) throws Exception {
    CyclicBarrier start = new CyclicBarrier(2);
    for (int i = 0; i < ROOTS; i++) {
      Path root = folder.resolve("root" + i);
      CompletableFuture<Void> another = CompletableFuture.runAsync(() -> assertDoesNotThrow(() -> {
        start.await(100, TimeUnit.SECONDS);
        Files.createDirectory(root);
      }));
      start.await(100, TimeUnit.SECONDS);
      assertDoesNotThrow(() -> new Root(Stores.open(root.toString())).requireWritable(), "root " + i);
      another.get(100, TimeUnit.SECONDS);
    }
  }

  @Test
  void oneRootAPathInAProcess(@TempDir Path folder) {
    Root root = Root.of(folder.toString());
    assertSame(root, Root.of("file:" + folder));
    assertSame(root, Root.of(folder + "/a/.."));
    assertSame(root.topic("t"), Root.of(folder.toString()).topic("t"));
    assertNotSame(root, Root.of(folder + "/a"));
  }

  /** A store that is made from settings too, as that of a bucket will be. */
  private static LogStore with(Path folder, Map<String, String> settings) {
    LogStore real = Stores.open(folder.toString());
    StoreRef ref = new StoreRef(real.root(), new TreeMap<>(settings));
    return (LogStore) Proxy.newProxyInstance(LogStore.class.getClassLoader(), new Class<?>[] {LogStore.class}, (proxy, method,
        arguments) -> method.getName().equals("ref") || method.getName().equals("identity") ? ref : method.invoke(real, arguments));
  }

  @Test
  void rootsWhoseStoresHaveOtherSettingsAreOthers(@TempDir Path folder) throws Exception {
    Root mine = Root.of(with(folder, Map.of("user", "mine", "zone", "a")));
    assertSame(mine, Root.of(with(folder, Map.of("zone", "a", "user", "mine"))));
    assertNotSame(mine, Root.of(with(folder, Map.of("user", "yours", "zone", "a"))));
    assertNotSame(mine, Root.of(folder.toString()));
    assertNotEquals(mine.reference(), Root.of(folder.toString()).reference());
    // No settings make a local store another one.
    assertSame(Root.of(folder.toString()), Root.of(Stores.open(new StoreRef(folder.toString(), new TreeMap<>(Map.of("user", "mine"))))));
    assertSame(Root.of(folder.toString()), Root.of(folder.toString()).reference().open());
  }

  @Test
  void topicsAreListedOnceASecondAndLookedIntoOnce(@TempDir Path folder) throws Exception {
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString()));
    Root root = new Root(store.store());
    AtomicLong ms = new AtomicLong();
    Clock clock = new MillisClock(ms::get);
    assertEquals(List.of(), root.recentTopics(clock));
    for (String topic : List.of("b", "a")) {
      Files.createDirectories(folder.resolve("_partlog/" + topic));
      Files.writeString(folder.resolve("_partlog/" + topic + "/00000000000000000000.json"), "");
    }
    ms.set(999);
    assertEquals(List.of(), root.recentTopics(clock));
    ms.set(1000);
    assertEquals(List.of("a", "b"), root.recentTopics(clock));
    store.calls().clear();
    Files.createDirectories(folder.resolve("_partlog/c"));
    ms.set(2000);
    assertEquals(List.of("a", "b"), root.recentTopics(clock));
    assertEquals(List.of("list _partlog", "list _partlog/c", "list _partlog/c"), store.calls());
    Files.writeString(folder.resolve("_partlog/c/00000000000000000000.json"), "");
    Files.delete(folder.resolve("_partlog/a/00000000000000000000.json"));
    Files.delete(folder.resolve("_partlog/a"));
    ms.set(1500); // set back
    assertEquals(List.of("b", "c"), root.recentTopics(clock));
    Files.createDirectories(folder.resolve("_partlog/d"));
    Files.writeString(folder.resolve("_partlog/d/00000000000000000000.json"), "");
    assertEquals(List.of("b", "c"), root.recentTopics(clock));
    root.listAgain();
    assertEquals(List.of("b", "c", "d"), root.recentTopics(clock));
  }

  @Test
  void deletedTopicsAreToldByTheirMarkers(@TempDir Path folder) throws Exception {
    Root root = new Root(Stores.open(folder.toString()));
    AtomicLong ms = new AtomicLong();
    Clock clock = new MillisClock(ms::get);
    Files.createDirectories(folder.resolve("_partlog/a"));
    for (String name : List.of("00000000000000000003.deleted", "00000000000000000003.json", "00000000000000000002.json")) {
      Files.writeString(folder.resolve("_partlog/a/" + name), "");
    }
    assertEquals(List.of(), root.topics());
    assertEquals(List.of("a"), root.names());
    assertEquals(List.of(), root.recentTopics(clock));
    assertEquals(List.of("a"), root.recentNames(clock));
    Files.writeString(folder.resolve("_partlog/a/00000000000000000004.checkpoint-0123456789abcdef.jsonl"), "");
    ms.set(1000);
    assertEquals(List.of("a"), root.recentTopics(clock), "it is looked into again");
    assertEquals(List.of("a"), root.topics());
    Files.delete(folder.resolve("_partlog/a/00000000000000000004.checkpoint-0123456789abcdef.jsonl"));
    Files.delete(folder.resolve("_partlog/a/00000000000000000003.json"));
    Files.delete(folder.resolve("_partlog/a/00000000000000000002.json"));
    assertEquals(List.of(), root.names(), "a marker alone is of no topic");
  }

  /** As a policy by prefix in S3 does. */
  @Test
  void aRootWhoseOwnNameMayNotBeLookedAtCanBeBegun(@TempDir Path folder) throws IOException {
    FaultyStore bucket = FaultyStore.of(Stores.open(folder.toString()));
    for (String look : List.of("exists ", "rootExists")) {
      bucket.failAll(look, When.BEFORE, new AccessDeniedException("the policy"));
    }
    Root root = new Root(bucket.withoutLinks());
    assertEquals("IO", assertThrows(PartlogException.class, root::requireWritable).id(), "where there are folders");
    bucket.answer("hasFolders", (real, with) -> false);
    root.requireWritable();
    assertEquals("ROOT_NOT_FOUND", assertThrows(PartlogException.class, root::requireReadable).id());
    root.prepare();
    Files.createDirectories(folder.resolve("_partlog/t"));
    root.requireReadable();
  }
}
