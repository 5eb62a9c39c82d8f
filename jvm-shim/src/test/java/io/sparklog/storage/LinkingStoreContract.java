package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** The promises of {@link LinkingStore} beyond {@link LogStore}. */
abstract class LinkingStoreContract extends LogStoreContract {
  private static final String DATA = TOPIC + "/data/0.log";
  private static final String VIEW = "t-0/00000000000000000000.log";

  private LinkingStore linking() {
    return (LinkingStore) store;
  }

  @Test
  void aLinkIsTheSameFile() throws IOException {
    createFile(DATA, "data");
    assertFalse(linking().isSameFile(DATA, VIEW));
    linking().link(DATA, VIEW);
    store.flush("t-0");
    assertTrue(linking().isSameFile(DATA, VIEW));
    assertEquals("data", content(VIEW));
    store.delete(DATA);
    assertFalse(linking().isSameFile(DATA, VIEW));
    assertEquals("data", content(VIEW));
  }

  @Test
  void aCopyIsNotTheSameFile() throws IOException {
    createFile(DATA, "data");
    createFile(VIEW, "data");
    assertFalse(linking().isSameFile(DATA, VIEW));
  }

  @Test
  void aLinkNeverReplaces() throws IOException {
    createFile(DATA, "data");
    createFile(VIEW, "another");
    assertThrows(FileAlreadyExistsException.class, () -> linking().link(DATA, VIEW));
    assertEquals("another", content(VIEW));
  }

  @Test
  void anAbsentFileIsNotLinked() throws IOException {
    store.createFolder(TOPIC);
    assertThrows(NoSuchFileException.class, () -> linking().link(DATA, VIEW));
    assertFalse(store.exists(VIEW));
  }

  /** As when a topic is created while a process clears the folders of the deleted one of that name. */
  @Test
  void aFolderThatIsDeletedMeanwhileIsMadeAgain() throws Exception {
    createFile(DATA, "data");
    AtomicBoolean over = new AtomicBoolean();
    CompletableFuture<Void> deletes = CompletableFuture.runAsync(() -> {
      while (!over.get()) {
        assertDoesNotThrow(() -> store.deleteFolderIfEmpty("t-0"));
        LockSupport.parkNanos(5_000_000); // Making a folder durable takes as long: without a pause each one would be deleted.
      }
    });
    try {
      for (int i = 0; i < 1000; i++) {
        linking().link(DATA, VIEW);
        assertTrue(linking().isSameFile(DATA, VIEW));
        store.delete(VIEW);
      }
    } finally {
      over.set(true);
      deletes.get();
    }
  }

  @Test
  void aStampReplacesBytesInPlace() throws IOException {
    createFile(DATA, "0123456789");
    linking().link(DATA, VIEW);
    try (FileStamper file = linking().stamp(DATA)) {
      file.replace(7, bytes("_ab_"), 1, 2);
      file.replace(0, bytes("c"), 0, 1);
      file.sync();
    }
    assertEquals("c123456ab9", content(DATA));
    assertEquals("c123456ab9", content(VIEW));
    assertTrue(linking().isSameFile(DATA, VIEW));
    assertThrows(NoSuchFileException.class, () -> linking().stamp(DATA + "2"));
    assertFalse(store.exists(DATA + "2"));
  }
}
