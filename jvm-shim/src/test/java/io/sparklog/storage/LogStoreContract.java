package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/**
 * The promises of {@link LogStore}. Each store has a test that extends this one; {@link BrokenStoresTest} shows that every check can fail.
 */
@Timeout(300)
abstract class LogStoreContract extends StoreUnderTest {
  private static final int WRITERS = 8;

  @Test
  void aRootExistsOnceAFolderIsCreated() throws IOException {
    assertFalse(store.rootExists());
    assertFalse(store.exists(""));
    store.createFolder(TOPIC);
    store.createFolder(TOPIC);
    if (!store.hasFolders()) {
      assertFalse(store.rootExists());
      put(FILE, "one");
    }
    assertTrue(store.rootExists());
    assertTrue(store.exists(""));
    assertTrue(store.exists("_partlog"));
    assertFalse(store.exists("_partlog/another"));
  }

  @Test
  void whatIsBesideTheRootIsSeen() throws IOException {
    if (!store.hasFolders()) {
      put(FILE, "one");
    }
    store.createFolder(TOPIC);
    String root = store.root().substring(store.root().lastIndexOf('/') + 1);
    assertTrue(store.existsBeside(root));
    assertFalse(store.existsBeside(root + "2"));
    assertFalse(store.existsBeside(TOPIC));
  }

  @Test
  void theInnermostFolderAboveTheRootIsFound() throws IOException {
    if (!store.hasFolders()) {
      put(FILE, "one");
    }
    store.createFolder(TOPIC);
    int slash = store.root().lastIndexOf('/');
    assertEquals(Optional.of(store.root().substring(0, slash)), store.above(store.root().substring(slash + 1)));
    assertEquals(Optional.empty(), store.above("_partlog"));
  }

  @Test
  void aPutCanBeReadAndLeavesNothingElse() throws IOException {
    store.createFolder(TOPIC);
    put(FILE, "one");
    assertEquals("one", content(FILE));
    assertTrue(store.exists(FILE));
    assertEquals(List.of(), store.list(TOPIC + "/tmp"));
  }

  @Test
  void aPutNeverReplaces() throws IOException {
    store.createFolder(TOPIC);
    put(FILE, "one");
    assertThrows(FileAlreadyExistsException.class, () -> put(FILE, "another"));
    assertEquals("one", content(FILE));
    assertEquals(List.of(), store.list(TOPIC + "/tmp"));
    createFile(TOPIC + "/data/0.log", "data");
    assertThrows(FileAlreadyExistsException.class, () -> put(TOPIC + "/data/0.log", "another"));
    assertEquals("data", content(TOPIC + "/data/0.log"));
  }

  @Test
  void whatAnEarlierPutLeftIsReplaced() throws IOException {
    Assumptions.assumeTrue(writesToTheTemporaryName(), "it writes to names of its own");
    store.createFolder(TOPIC);
    createFile(TEMPORARY, "a longer content than that of the put");
    put(FILE, "one");
    assertEquals("one", content(FILE));
    assertFalse(store.exists(TEMPORARY));
  }

  @Test
  void ofEightPutsOneWins() throws Exception {
    store.createFolder(TOPIC);
    for (int race = 0; race < races(); race++) {
      new PutRace(store, TOPIC + "/" + race + ".json", TEMPORARY).run(WRITERS);
    }
    assertEquals(List.of(), store.list(TOPIC + "/tmp"));
  }

  @Test
  void eightCreateOneFolder() throws Exception {
    Assumptions.assumeTrue(store.hasFolders(), "it has no folders");
    List<Callable<Boolean>> writers = new ArrayList<>();
    for (int writer = 0; writer < WRITERS; writer++) {
      writers.add(() -> {
        store.createFolder(TOPIC + "/a/b/c");
        return store.exists(TOPIC + "/a/b/c");
      });
    }
    assertFalse(PutRace.together(writers).contains(false));
  }

  /** A stopped query interrupts its threads. */
  @Test
  void anInterruptedPutIsWholeOrAbsent() throws IOException {
    store.createFolder(TOPIC);
    Thread.currentThread().interrupt();
    boolean done = false;
    try {
      put(FILE, "one");
      done = true;
    } catch (IOException interrupted) {
      // Then it may be there or not.
    }
    Thread.interrupted();
    if (done || store.exists(FILE)) {
      assertEquals("one", content(FILE));
    } else {
      put(FILE, "one");
    }
    assertEquals("one", content(FILE));
  }

  /** A store that cannot tell so throws {@link NoAnswerException}. One that an interrupt does not stop has nothing to show here. */
  @Test
  void aPutThatFailedIsOver() throws IOException {
    store.createFolder(TOPIC);
    Thread.currentThread().interrupt();
    boolean over = false;
    try {
      put(FILE, "one");
    } catch (NoAnswerException open) {
      // It may come.
    } catch (IOException failed) {
      over = true;
    }
    Thread.interrupted();
    if (over && !store.exists(FILE)) {
      put(FILE, "another");
      assertEquals("another", content(FILE));
    }
  }

  /** Gives the next put no answer; what it returns lets that put take effect. Empty for a store that always answers. */
  Optional<Executable> holdBack() {
    return Optional.empty();
  }

  private Executable heldBack() {
    return holdBack().orElseGet(() -> Assumptions.abort("it always answers"));
  }

  @Test
  void aPutWithoutAnAnswerTakesEffectLater() throws Throwable {
    store.createFolder(TOPIC);
    Executable landing = heldBack();
    assertThrows(NoAnswerException.class, () -> put(FILE, "one"));
    assertThrows(NoSuchFileException.class, () -> content(FILE));
    landing.execute();
    assertEquals("one", content(FILE));
    assertThrows(FileAlreadyExistsException.class, () -> put(FILE, "another"));
  }

  @Test
  void aPutThatTakesEffectLaterNeverReplaces() throws Throwable {
    store.createFolder(TOPIC);
    Executable landing = heldBack();
    assertThrows(NoAnswerException.class, () -> put(FILE, "one"));
    put(FILE, "another");
    landing.execute();
    assertEquals("another", content(FILE));
  }

  @Test
  void aFolderIsListed() throws IOException {
    assertEquals(List.of(), store.list(TOPIC), "of a root that does not exist");
    store.createFolder(TOPIC);
    assertEquals(List.of(), store.list(TOPIC));
    assertEquals(List.of(), store.list(TOPIC + "/absent"));
    put(FILE, "one");
    createFile(TOPIC + "/data/a/0.log", "data");
    List<String> names = store.list(TOPIC).stream().filter(name -> !name.equals("tmp")).sorted().toList();
    assertEquals(List.of("00000000000000000000.json", "data"), names);
    assertEquals(List.of(), store.list(FILE));
  }

  @Test
  void readIsLimited() throws IOException {
    store.createFolder(TOPIC);
    put(FILE, "12345");
    assertArrayEquals(bytes("12345"), store.read(FILE, 5));
    UnfitFileException tooLarge = assertThrows(UnfitFileException.class, () -> store.read(FILE, 4));
    assertTrue(tooLarge.getReason().contains("5 bytes"), tooLarge.getReason());
    assertTrue(tooLarge.getReason().contains("the 4"), tooLarge.getReason());
  }

  @Test
  void anAbsentFileIsNoSuchFile() throws IOException {
    assertThrows(NoSuchFileException.class, () -> store.read(FILE, 10));
    assertThrows(NoSuchFileException.class, () -> store.open(FILE));
    store.createFolder(TOPIC);
    assertThrows(NoSuchFileException.class, () -> store.read(FILE, 10));
    assertThrows(NoSuchFileException.class, () -> store.open(FILE));
  }

  /** Where a look is spared, the first read finds out. */
  @Test
  void aFileOfAKnownLengthIsRead() throws IOException {
    createFile(FILE, "12345");
    byte[] to = new byte[3];
    try (FileReader file = store.open(FILE, 4)) {
      file.read(1, to, 0, 3);
      assertArrayEquals(bytes("234"), to);
    }
    EOFException shorter = assertThrows(EOFException.class, () -> {
      try (FileReader file = store.open(FILE, 7)) {
        file.read(4, to, 0, 3);
      }
    });
    assertTrue(shorter.getMessage().contains("ends at byte 5"), shorter.getMessage());
    assertThrows(NoSuchFileException.class, () -> {
      try (FileReader file = store.open(FILE + "2", 7)) {
        file.read(4, to, 0, 3);
      }
    });
  }

  @Test
  void aFileIsToldFromTheOneAfterIt() throws IOException, InterruptedException {
    assertEquals(Optional.empty(), store.tag(FILE));
    store.createFolder(TOPIC);
    assertEquals(Optional.empty(), store.tag(FILE));
    put(FILE, "one");
    Optional<String> first = store.tag(FILE);
    assertTrue(first.isPresent());
    content(FILE);
    assertThrows(FileAlreadyExistsException.class, () -> put(FILE, "another"));
    assertEquals(first, store.tag(FILE));
    store.delete(FILE);
    assertEquals(Optional.empty(), store.tag(FILE));
    Thread.sleep(clockStepMs());
    put(FILE, "two");
    assertNotEquals(first, store.tag(FILE), "of the same length, and often of the same inode");
  }

  @Test
  void deletingIsRepeatable() throws IOException {
    store.delete(FILE);
    store.createFolder(TOPIC);
    put(FILE, "one");
    store.delete(FILE);
    assertFalse(store.exists(FILE));
    assertFalse(store.list(TOPIC).contains("00000000000000000000.json"));
    store.delete(FILE);
    put(FILE, "another");
    assertEquals("another", content(FILE));
  }

  @Test
  void onlyAnEmptyFolderIsDeleted() throws IOException {
    String name = TOPIC + "/data/f/0.log";
    store.deleteFolderIfEmpty(TOPIC + "/data/f");
    createFile(name, "data");
    store.deleteFolderIfEmpty(TOPIC + "/data/f");
    store.deleteFolderIfEmpty(name);
    assertEquals("data", content(name));
    store.delete(name);
    store.deleteFolderIfEmpty(TOPIC + "/data/f");
    assertFalse(store.exists(TOPIC + "/data/f"));
    createFile(name, "again");
    assertEquals("again", content(name));
  }

  @Test
  void aFileTellsItsLengthAndWhenItWasWritten() throws IOException, InterruptedException {
    assertThrows(NoSuchFileException.class, () -> store.bytes(FILE));
    assertThrows(NoSuchFileException.class, () -> store.modifiedMs(FILE));
    createFile(TOPIC + "/data/0.log", "01234");
    assertEquals(5, store.bytes(TOPIC + "/data/0.log"));
    long first = store.modifiedMs(TOPIC + "/data/0.log");
    assertTrue(Math.abs(first - System.currentTimeMillis()) < 600_000, "a time in ms: " + first);
    Thread.sleep(clockStepMs());
    createFile(TOPIC + "/data/1.log", "");
    assertEquals(0, store.bytes(TOPIC + "/data/1.log"));
    assertTrue(store.modifiedMs(TOPIC + "/data/1.log") > first, "a later file");
  }

  @Test
  void aCreatedFileIsAppendedTo() throws IOException {
    String name = TOPIC + "/data/f/0.log";
    try (FileAppender file = store.create(name)) {
      assertEquals(0, file.position());
      file.write(bytes("_abc_"), 1, 3);
      file.write(bytes("def"), 0, 3);
      assertEquals(6, file.position());
      file.sync();
    }
    store.flush(TOPIC + "/data/f");
    assertEquals("abcdef", content(name));
    if (looksBeforeItCreates()) {
      assertThrows(FileAlreadyExistsException.class, () -> store.create(name));
      assertEquals("abcdef", content(name));
    }
    if (store.openFilesMax() < Integer.MAX_VALUE) {
      try (FileAppender file = store.append(name)) {
        assertEquals(6, file.position());
        file.write(bytes("gh"), 0, 2);
        file.sync();
      }
      assertEquals("abcdefgh", content(name));
      assertThrows(NoSuchFileException.class, () -> store.append(name + "2"));
    }
    assertTrue(store.openFilesMax() >= 8, "files at once: " + store.openFilesMax());
  }

  @Test
  void anOpenFileIsReadAnywhere() throws IOException {
    createFile(TOPIC + "/data/0.log", "0123456789");
    try (FileReader file = store.open(TOPIC + "/data/0.log")) {
      assertEquals(10, file.bytes());
      byte[] to = bytes("______");
      file.read(7, to, 1, 3);
      assertArrayEquals(bytes("_789__"), to);
      ByteBuffer direct = ByteBuffer.allocateDirect(4);
      file.read(2, direct);
      assertEquals("2345", StandardCharsets.UTF_8.decode(direct.flip()).toString());
      assertThrows(EOFException.class, () -> file.read(8, new byte[3], 0, 3));
      assertThrows(EOFException.class, () -> file.read(11, new byte[1], 0, 1));
    }
  }

  @Test
  void namesAreTakenLiterally() throws IOException {
    for (String topic : List.of("...", "-", "_", "a..b", ".hidden", "UPPER", "upper", "~", "n".repeat(249))) {
      String name = "_partlog/" + topic + "/0.json";
      store.createFolder("_partlog/" + topic);
      store.putIfAbsent(name, "_partlog/" + topic + "/tmp/x", bytes(topic), PutObserver.NONE);
      assertEquals(topic, content(name));
      assertTrue(store.list("_partlog").contains(topic), topic);
      assertEquals(store.root() + "/" + name, store.location(name));
    }
  }

  @Test
  void noNameLeadsOutOfTheRoot() throws IOException {
    store.createFolder(TOPIC);
    for (String name : List.of("../outside", "_partlog/../../outside", "/outside")) {
      List<Executable> calls = List.of(() -> store.read(name, 10), () -> store.open(name), () -> store.list(name), () -> store.exists(name),
          () -> store.tag(name), () -> store.bytes(name), () -> store.modifiedMs(name), () -> store.create(name), () -> store.delete(name),
          () -> store.deleteFolderIfEmpty(name), () -> store.createFolder(name), () -> store.flush(name), () -> put(name, "one"));
      calls.forEach(call -> assertThrows(IllegalStateException.class, call, name));
    }
    assertFalse(store.existsBeside("outside"));
  }

  /** The reference that a task is sent opens the same root, in a process that has nothing else. */
  @Test
  void aReferenceOpensTheSameRoot() throws IOException, ClassNotFoundException {
    store.createFolder(TOPIC);
    put(FILE, "one");
    ByteArrayOutputStream sent = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(sent)) {
      out.writeObject(store.ref());
    }
    LogStore opened;
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(sent.toByteArray()))) {
      opened = Stores.open((StoreRef) in.readObject());
    }
    assertEquals(store.root(), opened.root());
    assertArrayEquals(bytes("one"), opened.read(FILE, 10));
    assertEquals(store.root(), Stores.open(new StoreRef(store.root(), store.ref().settings())).root());
  }
}
