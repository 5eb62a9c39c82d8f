package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Syncs in the background: they happen, a file is whole, and a failed one is never ignored. */
@Timeout(120)
final class LocalWriterTest {
  private static final int CHUNK = LocalWriter.BACKGROUND_BYTES;

  @TempDir
  private Path folder;

  /** A file whose n-th sync fails, once, as a disk's does: the kernel says it one time, and later ones succeed. */
  private static final class FailingDisk extends LocalWriter {
    private final int failing;
    private final CountDownLatch synced = new CountDownLatch(1);
    private int syncs;

    private FailingDisk(Path path, int failing) throws IOException {
      super(path.toString(), FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), false, 0);
      this.failing = failing;
    }

    @Override
    synchronized void force() throws IOException {
      synced.countDown();
      if (++syncs == failing) {
        throw new IOException("Input/output error");
      }
      super.force();
    }

    private synchronized int syncs() {
      return syncs;
    }

    private void awaitSync() throws InterruptedException {
      assertTrue(synced.await(100, TimeUnit.SECONDS), "no sync came");
    }
  }

  @Test
  void theFileIsWhole() throws IOException {
    long seed = Seed.draw();
    System.out.println("seed " + seed);
    byte[] content = new byte[3 * CHUNK + 17];
    new Random(seed).nextBytes(content);
    Path path = folder.resolve("whole");
    try (FileAppender writer = new LocalWriter(path.toString(),
        FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), false, 0)) {
      for (int at = 0; at < content.length; at += 100_003) {
        writer.write(content, at, Math.min(100_003, content.length - at));
      }
      writer.sync();
      assertEquals(content.length, writer.position());
    }
    assertArrayEquals(content, Files.readAllBytes(path));
  }

  @Test
  void syncsInTheBackgroundAsBytesCome() throws IOException, InterruptedException {
    try (FailingDisk disk = new FailingDisk(folder.resolve("background"), 0)) {
      disk.write(new byte[CHUNK - 1], 0, CHUNK - 1);
      assertEquals(0, disk.syncs());
      disk.write(new byte[1], 0, 1);
      disk.awaitSync();
      disk.sync();
      assertEquals(2, disk.syncs());
    }
  }

  @Test
  void aSyncThatFailedInTheBackgroundFailsTheFile() throws IOException, InterruptedException {
    try (FailingDisk disk = new FailingDisk(folder.resolve("failing"), 1)) {
      disk.write(new byte[CHUNK], 0, CHUNK);
      disk.awaitSync();
      IOException failed = assertThrows(IOException.class, disk::sync);
      assertTrue(failed.getMessage().contains("Input/output error"), failed.getMessage());
      // A second sync would succeed without the bytes.
      assertThrows(IOException.class, disk::sync);
      assertEquals(1, disk.syncs());
    }
  }

  @Test
  void itFailsTheNextWriteToo() throws IOException, InterruptedException {
    try (FailingDisk disk = new FailingDisk(folder.resolve("failing"), 1)) {
      disk.write(new byte[CHUNK], 0, CHUNK);
      disk.awaitSync();
      // The file notices when it would ask for its next sync, which may still be under way at the first of these.
      assertThrows(IOException.class, () -> {
        while (true) {
          disk.write(new byte[CHUNK], 0, 1);
          disk.write(new byte[CHUNK], 0, CHUNK - 1);
          Thread.sleep(10);
        }
      });
      assertThrows(IOException.class, disk::sync);
      assertEquals(1, disk.syncs());
    }
  }

  @Test
  void aSyncThatFailedIsNotTriedAgain() throws IOException {
    try (FailingDisk disk = new FailingDisk(folder.resolve("failing"), 1)) {
      disk.write(new byte[1], 0, 1);
      assertThrows(IOException.class, disk::sync);
      assertThrows(IOException.class, disk::sync);
      assertEquals(1, disk.syncs());
    }
  }

  @Test
  void anInterruptEndsTheWaiting() throws IOException {
    try (FailingDisk disk = new FailingDisk(folder.resolve("interrupted"), 0)) {
      synchronized (disk) {
        disk.write(new byte[CHUNK], 0, CHUNK);
        Thread.currentThread().interrupt();
        assertThrows(IOException.class, disk::sync);
      }
      assertTrue(Thread.interrupted());
      assertThrows(IOException.class, disk::sync);
      assertFalse(Thread.interrupted());
    }
  }
}
