package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Syncs in the background: that they come, that a file is whole, and that one which fails is never passed over. */
final class LocalWriterTest {
  private static final int CHUNK = LocalWriter.BACKGROUND_BYTES;

  @TempDir private Path folder;

  /** A file whose n-th sync fails, once, as a disk's does: the kernel says it one time, and later ones succeed. */
  private static final class FailingDisk extends FileChannel {
    private final FileChannel file;
    private final int failing;
    private final CountDownLatch synced;
    private int syncs;

    private FailingDisk(Path path, int failing, int expected) throws IOException {
      this.file = FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
      this.failing = failing;
      this.synced = new CountDownLatch(expected);
    }

    @Override
    public synchronized void force(boolean metaData) throws IOException {
      synced.countDown();
      if (++syncs == failing) {
        throw new IOException("Input/output error");
      }
      file.force(metaData);
    }

    private synchronized int syncs() {
      return syncs;
    }

    private void awaitSyncs() throws InterruptedException {
      assertTrue(synced.await(30, TimeUnit.SECONDS), "no sync came");
    }

    @Override
    public int write(ByteBuffer from, long position) throws IOException {
      return file.write(from, position);
    }

    @Override
    protected void implCloseChannel() throws IOException {
      file.close();
    }

    @Override
    public int read(ByteBuffer to) {
      throw new UnsupportedOperationException();
    }

    @Override
    public long read(ByteBuffer[] to, int offset, int length) {
      throw new UnsupportedOperationException();
    }

    @Override
    public int read(ByteBuffer to, long position) {
      throw new UnsupportedOperationException();
    }

    @Override
    public int write(ByteBuffer from) {
      throw new UnsupportedOperationException();
    }

    @Override
    public long write(ByteBuffer[] from, int offset, int length) {
      throw new UnsupportedOperationException();
    }

    @Override
    public long position() {
      throw new UnsupportedOperationException();
    }

    @Override
    public FileChannel position(long position) {
      throw new UnsupportedOperationException();
    }

    @Override
    public long size() {
      throw new UnsupportedOperationException();
    }

    @Override
    public FileChannel truncate(long size) {
      throw new UnsupportedOperationException();
    }

    @Override
    public long transferTo(long position, long count, WritableByteChannel target) {
      throw new UnsupportedOperationException();
    }

    @Override
    public long transferFrom(ReadableByteChannel from, long position, long count) {
      throw new UnsupportedOperationException();
    }

    @Override
    public MappedByteBuffer map(MapMode mode, long position, long size) {
      throw new UnsupportedOperationException();
    }

    @Override
    public FileLock lock(long position, long size, boolean shared) {
      throw new UnsupportedOperationException();
    }

    @Override
    public FileLock tryLock(long position, long size, boolean shared) {
      throw new UnsupportedOperationException();
    }
  }

  @Test
  void theFileIsWhole() throws IOException {
    long seed = System.nanoTime();
    System.out.println("seed " + seed);
    byte[] content = new byte[3 * CHUNK + 17];
    new Random(seed).nextBytes(content);
    Path path = folder.resolve("whole");
    try (DataWriter writer = new LocalWriter(FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE))) {
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
    FailingDisk disk = new FailingDisk(folder.resolve("background"), 0, 1);
    try (DataWriter writer = new LocalWriter(disk)) {
      writer.write(new byte[CHUNK - 1], 0, CHUNK - 1);
      assertEquals(0, disk.syncs());
      writer.write(new byte[1], 0, 1);
      disk.awaitSyncs();
      writer.sync();
      assertEquals(2, disk.syncs());
    }
  }

  @Test
  void aSyncThatFailedInTheBackgroundFailsTheFile() throws IOException, InterruptedException {
    FailingDisk disk = new FailingDisk(folder.resolve("failing"), 1, 1);
    try (DataWriter writer = new LocalWriter(disk)) {
      writer.write(new byte[CHUNK], 0, CHUNK);
      disk.awaitSyncs();
      IOException failed = assertThrows(IOException.class, writer::sync);
      assertTrue(failed.getMessage().contains("Input/output error"), failed.getMessage());
      // A second sync would succeed without the bytes.
      assertThrows(IOException.class, writer::sync);
      assertEquals(1, disk.syncs());
    }
  }

  @Test
  void itFailsTheNextWriteToo() throws IOException, InterruptedException {
    FailingDisk disk = new FailingDisk(folder.resolve("failing"), 1, 1);
    try (DataWriter writer = new LocalWriter(disk)) {
      writer.write(new byte[CHUNK], 0, CHUNK);
      disk.awaitSyncs();
      // The file notices when it would ask for its next sync, which may still be under way at the first of these.
      assertThrows(
          IOException.class,
          () -> {
            for (int i = 0; i < 1000; i++) {
              writer.write(new byte[CHUNK], 0, 1);
              writer.write(new byte[CHUNK], 0, CHUNK - 1);
              Thread.sleep(1);
            }
          });
      assertThrows(IOException.class, writer::sync);
      assertEquals(1, disk.syncs());
    }
  }

  @Test
  void aSyncThatFailedIsNotTriedAgain() throws IOException {
    FailingDisk disk = new FailingDisk(folder.resolve("failing"), 1, 1);
    try (DataWriter writer = new LocalWriter(disk)) {
      writer.write(new byte[1], 0, 1);
      assertThrows(IOException.class, writer::sync);
      assertThrows(IOException.class, writer::sync);
      assertEquals(1, disk.syncs());
    }
  }

  @Test
  void anInterruptEndsTheWaiting() throws IOException {
    FailingDisk disk = new FailingDisk(folder.resolve("interrupted"), 0, 1);
    try (DataWriter writer = new LocalWriter(disk)) {
      synchronized (disk) {
        writer.write(new byte[CHUNK], 0, CHUNK);
        Thread.currentThread().interrupt();
        assertThrows(IOException.class, writer::sync);
      }
      assertTrue(Thread.interrupted());
      assertThrows(IOException.class, writer::sync);
      assertFalse(Thread.interrupted());
    }
  }
}
