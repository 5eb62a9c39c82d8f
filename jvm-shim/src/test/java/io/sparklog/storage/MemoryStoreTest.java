package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** The store that the protocol is simulated on keeps the contract, and a power loss takes from it what it may. */
final class MemoryStoreTest extends LinkingStoreContract {
  private MemoryDisk disk;
  private boolean holdsBack;
  private MemoryStore.Act<Object> late;

  @Override
  LogStore newStore() {
    disk = new MemoryDisk(System::currentTimeMillis);
    return new MemoryStore.Linking(new MemoryStore.Acts() {
      @Override
      public <T> T act(String call, String name, MemoryStore.Act<T> act) throws IOException {
        synchronized (disk) {
          if (holdsBack && act instanceof MemoryStore.Put put) {
            holdsBack = false;
            late = put.late(disk);
            throw new NoAnswerException(name, null);
          }
          return act.on(disk);
        }
      }
    });
  }

  @Override
  Optional<Executable> holdBack() {
    holdsBack = true;
    return Optional.of(() -> {
      try {
        late.on(disk);
      } catch (FileAlreadyExistsException refused) {
        // The caller does not hear of it.
      }
    });
  }

  /** It stays in its process. */
  @Test
  @Override
  void aReferenceOpensTheSameRoot() {
    assertEquals("/memory",
        assertThrows(PartlogException.class, () -> Stores.open("memory:" + store.root())).parameters()
            .get("root")
            .substring("memory:".length()));
  }

  @Test
  void aPutSurvivesAPowerLoss() throws IOException {
    store.createFolder(TOPIC);
    put(FILE, "one");
    assertTrue(disk.isDurable(FILE));
    disk.losePower(new Random(1));
    assertEquals("one", content(FILE));
  }

  @Test
  void thePowerMayGoBeforeAnythingIsThere() {
    MemoryDisk empty = new MemoryDisk(() -> 0);
    empty.losePower(new Random(1));
    assertEquals(List.of(), empty.filesIn(""));
  }

  @Test
  void whatIsNotSyncedMayBeLostInEachWay() throws IOException {
    Random random = new Random(1);
    int absent = 0;
    int part = 0;
    int zeros = 0;
    for (int loss = 0; loss < 100; loss++) {
      begin();
      try (FileAppender file = store.create(FILE)) {
        file.write("0123456789".getBytes(StandardCharsets.UTF_8), 0, 10);
      }
      assertFalse(disk.isDurable(FILE));
      disk.losePower(random);
      if (!store.exists(FILE)) {
        absent++;
      } else if (content(FILE).startsWith("\0")) {
        zeros++;
      } else if ("012345678".startsWith(content(FILE))) {
        part++;
      }
    }
    assertTrue(absent > 20 && part > 10 && zeros > 10, absent + " " + part + " " + zeros);
  }

  @Test
  void aStampThatIsNotSyncedMayBeHalfLost() throws IOException {
    Random random = new Random(1);
    boolean half = false;
    for (int loss = 0; loss < 20; loss++) {
      begin();
      store.createFolder(TOPIC);
      createFile(FILE, "0000");
      store.flush(TOPIC);
      try (FileStamper file = ((LinkingStore) store).stamp(FILE)) {
        file.replace(0, bytes("1111"), 0, 4);
      }
      disk.losePower(random);
      assertEquals(4, content(FILE).length());
      half |= content(FILE).contains("0") && content(FILE).contains("1");
    }
    assertTrue(half);
  }
}
