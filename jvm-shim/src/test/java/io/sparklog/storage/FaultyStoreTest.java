package io.sparklog.storage;

import static io.sparklog.storage.FaultyStore.When.AFTER;
import static io.sparklog.storage.FaultyStore.When.BEFORE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Without a fault it is a store like any other; with one, exactly that call fails. */
final class FaultyStoreTest extends LinkingStoreContract {
  private static final IOException LOST = new IOException("lost");

  @TempDir
  private Path folder;

  private FaultyStore faulty;

  @Override
  LogStore newStore() {
    faulty = FaultyStore.of(new LocalStore(folder.resolve("root")));
    return faulty.store();
  }

  @Override
  Optional<Executable> holdBack() {
    faulty.holdBack(1);
    return Optional.of(faulty::land);
  }

  @Test
  void aCallFailsBeforeItTakesEffectOrAfter() throws IOException {
    store.createFolder(TOPIC);
    faulty.fail("putIfAbsent", 1, BEFORE, LOST).fail("putIfAbsent", 1, AFTER, LOST);
    assertSame(LOST, assertThrows(IOException.class, () -> put(FILE, "one")));
    assertFalse(store.exists(FILE));
    assertSame(LOST, assertThrows(IOException.class, () -> put(FILE, "another")));
    assertEquals("another", content(FILE));
    put(FILE + "2", "third");
  }

  @Test
  void onlyTheCallThatIsCountedFails() throws IOException {
    store.createFolder("_partlog/other");
    store.createFolder(TOPIC);
    faulty.calls().clear();
    faulty.fail("flush " + TOPIC, 2, BEFORE, LOST);
    store.flush(TOPIC);
    store.flush("_partlog/other");
    assertSame(LOST, assertThrows(IOException.class, () -> store.flush(TOPIC)));
    store.flush(TOPIC);
    assertEquals(List.of("flush " + TOPIC, "flush _partlog/other", "flush " + TOPIC, "flush " + TOPIC), faulty.calls());
  }

  @Test
  void everyCallFails() throws IOException {
    store.createFolder(TOPIC);
    faulty.failAll("flush", AFTER, LOST);
    for (int i = 0; i < 3; i++) {
      assertSame(LOST, assertThrows(IOException.class, () -> store.flush(TOPIC)));
    }
  }

  @Test
  void aFaultInAnUnknownCallIsRefused() {
    assertThrows(IllegalArgumentException.class, () -> faulty.fail("sync", 1, BEFORE, LOST));
    assertThrows(IllegalArgumentException.class, () -> faulty.failAll("putQuietly", BEFORE, LOST));
    assertThrows(IllegalArgumentException.class, () -> faulty.answer("lists", (real, arguments) -> null));
  }
}
