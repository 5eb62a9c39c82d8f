package io.sparklog.storage;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * A file on a local disk that is being appended to.
 *
 * <p>A background thread syncs the file while the task goes on, one sync of a file at a time: {@link #sync} then has little left to wait
 * for.
 */
class LocalWriter implements FileAppender {
  /** How many bytes are appended before the next sync in the background. */
  static final int BACKGROUND_BYTES = 4 << 20;

  private static final ThreadPoolExecutor BACKGROUND = threads();

  private final String location;
  private final FileChannel channel;
  private final boolean inNewFolder;
  private long position;
  private long askedPosition;
  private Future<?> background;
  private boolean syncFailed;

  /**
   * @param location the path, for messages
   * @param position the length of the file
   */
  LocalWriter(String location, FileChannel channel, boolean inNewFolder, long position) {
    this.location = location;
    this.channel = channel;
    this.inNewFolder = inNewFolder;
    this.position = position;
    this.askedPosition = position;
  }

  @Override
  public void write(byte[] from, int at, int length) throws IOException {
    try {
      writeFully(channel, position, from, at, length);
    } catch (IOException e) {
      // That of a full disk does not say where. Others are told apart by their class.
      throw e.getClass() == IOException.class ? (IOException) new FileSystemException(location, null, e.getMessage()).initCause(e) : e;
    }
    position += length;
    if (position - askedPosition >= BACKGROUND_BYTES && (background == null || background.isDone())) {
      awaitBackground();
      askedPosition = position;
      background = BACKGROUND.submit(() -> {
        force();
        return null;
      });
    }
  }

  static void writeFully(FileChannel channel, long position, byte[] from, int at, int length) throws IOException {
    ByteBuffer bytes = ByteBuffer.wrap(from, at, length);
    int end = bytes.limit();
    long to = position;
    while (bytes.position() < end) {
      bytes.limit(Math.min(end, bytes.position() + LocalStore.PIECE_BYTES));
      to += channel.write(bytes, to);
    }
  }

  @Override
  public boolean inNewFolder() {
    return inNewFolder;
  }

  @Override
  public long position() {
    return position;
  }

  @Override
  public void sync() throws IOException {
    awaitBackground();
    syncFailed = true;
    force();
    syncFailed = false;
  }

  /** The only call that syncs: a test overrides it to fail. */
  void force() throws IOException {
    channel.force(false);
  }

  /** Waits for the sync in the background. The kernel reports a failed sync only once: after one, no later sync can be trusted. */
  private void awaitBackground() throws IOException {
    if (syncFailed) {
      throw new IOException("an earlier sync of the file failed; its bytes may be lost");
    }
    if (background == null) {
      return;
    }
    syncFailed = true;
    try {
      background.get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted while a sync was awaited");
    } catch (ExecutionException e) {
      throw new IOException("a sync in the background failed: " + e.getCause(), e.getCause());
    }
    background = null;
    syncFailed = false;
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }

  /** As many daemon threads as cores; idle ones end. */
  private static ThreadPoolExecutor threads() {
    int threads = Runtime.getRuntime().availableProcessors();
    ThreadPoolExecutor pool = new ThreadPoolExecutor(threads, threads, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> {
      Thread thread = new Thread(task, "partlog-sync");
      thread.setDaemon(true);
      return thread;
    });
    pool.allowCoreThreadTimeOut(true);
    return pool;
  }
}
