package io.sparklog.storage;

import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Threads that put the same new files at the same moments. A server that looks first and writes then lets more than one of them win; most
 * such servers do on the first files.
 */
final class PutProbe {
  /** Enough to find servers that let two win on most files. */
  static final int KEYS = 4;

  private static final int THREADS = 8;

  private final LogStore store;
  private final String folder;

  /** @param folder in which to put the files; they are deleted */
  PutProbe(LogStore store, String folder) {
    this.store = store;
    this.folder = folder + "/.probe-" + UUID.randomUUID();
  }

  /**
   * How it went.
   *
   * @param keys the files that were put
   * @param shared those of them that more than one thread was told to have put
   */
  record Result(int keys, int shared) {}

  Result run(int keys) throws IOException {
    ExecutorService threads = Executors.newFixedThreadPool(THREADS, task -> {
      Thread thread = new Thread(task, "partlog-probe");
      thread.setDaemon(true);
      return thread;
    });
    try {
      int shared = 0;
      CyclicBarrier start = new CyclicBarrier(THREADS);
      for (int key = 0; key < keys; key++) {
        String name = folder + "/" + key;
        List<Future<Boolean>> puts = new ArrayList<>();
        for (int thread = 0; thread < THREADS; thread++) {
          byte[] content = ("probe " + thread).getBytes(StandardCharsets.UTF_8);
          puts.add(threads.submit(() -> puts(name, content, start)));
        }
        int won = 0;
        for (Future<Boolean> put : puts) {
          won += put.get() ? 1 : 0;
        }
        shared += won > 1 ? 1 : 0;
      }
      return new Result(keys, shared);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted while " + store.location(folder) + " was put");
    } catch (ExecutionException e) {
      throw e.getCause() instanceof IOException failed ? failed : new IOException(e.getCause());
    } finally {
      threads.shutdownNow();
      delete(keys);
    }
  }

  /** Whether this thread was told that it has put the file. */
  private boolean puts(String name, byte[] content, CyclicBarrier start) throws IOException, InterruptedException {
    try {
      start.await();
      store.putIfAbsent(name, name, content, PutObserver.NONE);
      return true;
    } catch (java.nio.file.FileAlreadyExistsException another) {
      return false;
    } catch (NoAnswerException e) {
      // The first failure says more than that the put may still come: a probe does not matter by then.
      throw e.getCause() instanceof IOException why ? why : e;
    } catch (BrokenBarrierException e) {
      throw new IOException(e);
    }
  }

  private void delete(int keys) {
    for (int key = 0; key < keys; key++) {
      try {
        store.delete(folder + "/" + key);
      } catch (IOException e) {
        Warnings.warn(PutProbe.class, "left {}", store.location(folder), e);
        return;
      }
    }
  }
}
