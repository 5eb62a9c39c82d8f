package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;

import io.sparklog.storage.Stores;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RootTest {
  private static final int ROOTS = 2000;

  /** The first writers to a root make it while the others look at it. */
  @Test
  void aRootThatIsBeingMadeIsNotTakenForAFile(@TempDir Path folder) throws Exception {
    CyclicBarrier start = new CyclicBarrier(2);
    for (int i = 0; i < ROOTS; i++) {
      Path root = folder.resolve("root" + i);
      CompletableFuture<Void> another =
          CompletableFuture.runAsync(
              () ->
                  assertDoesNotThrow(
                      () -> {
                        start.await(10, TimeUnit.SECONDS);
                        Files.createDirectory(root);
                      }));
      start.await(10, TimeUnit.SECONDS);
      assertDoesNotThrow(() -> new Root(Stores.open(root.toString())).requireWritable(), "root " + i);
      another.get(10, TimeUnit.SECONDS);
    }
  }
}
