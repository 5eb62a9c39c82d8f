package io.sparklog.storage;

import io.sparklog.spec.PartlogException;
import io.sparklog.spec.QuietLoggers;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Threads that put the same new files at the same moments. A server that looks first and writes then lets more than one put win; most such
 * servers do so on the first files.
 */
final class PutProbe {
  /** Enough to find servers that let two win on most files. */
  static final int KEYS = 4;

  private static final int THREADS = 8;

  /** S3A warns of each put that comes too late, with a stack trace. */
  private static final String[] WARN_OF_LOSERS = {"org.apache.hadoop.fs.s3a.S3ABlockOutputStream",
      "org.apache.hadoop.fs.s3a.S3AInstrumentation"};

  private static final int CONTENT_BYTES_MAX = 64;

  private final LogStore store;
  private final String folder;

  /** @param folder in which to put the files; they are deleted, and so are folders of the root that were made for them */
  PutProbe(LogStore store, String folder) {
    this.store = store;
    this.folder = folder + "/" + UUID.randomUUID();
  }

  /** How a thread's put ended. */
  private enum Ended {
    WON, REFUSED, UNANSWERED
  }

  /**
   * How it went.
   *
   * @param keys the files that were put, by each thread
   * @param won the puts that were told to have taken effect
   * @param refused the puts that were told to have come too late
   * @param unanswered the puts that were told neither
   * @param shared the files with more than one put that won
   * @param lost the files whose content is not the content of the put that won
   * @param failure why the first put without an answer has no answer; null if all puts had an answer
   * @param atMs when the last file was written, as {@link ReadStore#modifiedMs}; -1 if it is not there
   */
  record Result(LogStore store, int keys, long won, long refused, long unanswered, int shared, int lost, IOException failure, long atMs) {
    /** @throws PartlogException STORE_UNSAFE if more than one put of a file won, or the content of a put that won is lost */
    void requireSafe() {
      if (shared > 0 || lost > 0) {
        String reason = "of " + keys + " files that " + THREADS + " threads put at once, " + shared
            + " were put by more than one of them, and " + lost + " do not hold what was put";
        throw PartlogException.of("STORE_UNSAFE", "root", store.root(), "endpoint", store.endpoint(), "reason", reason);
      }
    }
  }

  /** Counts the outcomes of the puts. */
  private final class Counts {
    private final long[] ended = new long[Ended.values().length];
    private int shared;
    private int lost;
    private IOException failure;

    private void count(Ended how) {
      ended[how.ordinal()]++;
    }

    private Result result(int keys, long atMs) {
      return new Result(store, keys, ended[Ended.WON.ordinal()], ended[Ended.REFUSED.ordinal()], ended[Ended.UNANSWERED.ordinal()], shared,
          lost, failure, atMs);
    }
  }

  /**
   * Puts files one after another, each by all threads at once.
   *
   * @throws IOException if a put ends in another way than a store promises, such as without permission
   */
  Result run(int keys) throws IOException {
    ExecutorService threads = Executors.newFixedThreadPool(THREADS, task -> {
      Thread thread = new Thread(task, "partlog-probe");
      thread.setDaemon(true);
      return thread;
    });
    Deque<String> made = new ArrayDeque<>();
    Counts counts = new Counts();
    int[] put = {0};
    QuietLoggers quiet = QuietLoggers.of(WARN_OF_LOSERS);
    try {
      makeFolder(made);
      CyclicBarrier start = new CyclicBarrier(THREADS);
      for (int key = 0; key < keys; key++) {
        put[0] = key + 1;
        race(folder + "/" + key, threads, start, counts);
      }
      return counts.result(keys, atMs(folder + "/" + (keys - 1)));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted while " + store.location(folder) + " was put");
    } finally {
      threads.shutdownNow();
      quiet.close();
      clear(put[0], counts.failure != null, made);
    }
  }

  /** Makes the folder of the files. @param made takes the folders of the root that are missing, the innermost last */
  private void makeFolder(Deque<String> made) throws IOException {
    if (!store.hasFolders()) {
      return;
    }
    for (String at = folder; !at.isEmpty() && !store.exists(at); at = at.substring(0, Math.max(0, at.lastIndexOf('/')))) {
      made.push(at);
    }
    store.createFolder(folder);
  }

  private void race(String name, ExecutorService threads, CyclicBarrier start, Counts counts) throws IOException, InterruptedException {
    List<Future<Ended>> puts = new ArrayList<>();
    for (int thread = 0; thread < THREADS; thread++) {
      String content = "probe " + thread;
      String temporary = folder + "/tmp-" + thread;
      puts.add(threads.submit(() -> put(name, temporary, content, start, counts)));
    }
    List<String> winners = new ArrayList<>();
    for (int thread = 0; thread < THREADS; thread++) {
      Ended how;
      try {
        how = puts.get(thread).get();
      } catch (ExecutionException e) {
        throw e.getCause() instanceof IOException failed ? failed : new IOException(e.getCause());
      }
      counts.count(how);
      if (how == Ended.WON) {
        winners.add("probe " + thread);
      }
    }
    counts.shared += winners.size() > 1 ? 1 : 0;
    counts.lost += winners.size() == 1 && !winners.get(0).equals(content(name)) ? 1 : 0;
  }

  private long atMs(String name) throws IOException {
    try {
      return store.modifiedMs(name);
    } catch (NoSuchFileException absent) {
      return -1;
    }
  }

  /** Empty if it is absent. */
  private String content(String name) throws IOException {
    try {
      return new String(store.read(name, CONTENT_BYTES_MAX), StandardCharsets.UTF_8);
    } catch (NoSuchFileException absent) {
      return "";
    }
  }

  private Ended put(String name, String temporary, String content, CyclicBarrier start, Counts counts)
      throws IOException, InterruptedException {
    try {
      start.await();
      store.putIfAbsent(name, temporary, content.getBytes(StandardCharsets.UTF_8), PutObserver.NONE);
      return Ended.WON;
    } catch (FileAlreadyExistsException another) {
      return Ended.REFUSED;
    } catch (NoAnswerException e) {
      synchronized (counts) {
        // The cause says more than that the put may still come: a probe does not matter by then.
        counts.failure = counts.failure != null ? counts.failure : e.getCause() instanceof IOException why ? why : e;
      }
      return Ended.UNANSWERED;
    } catch (BrokenBarrierException e) {
      throw new IOException(e);
    }
  }

  /** @param late whether a put may have taken effect after all */
  private void clear(int keys, boolean late, Deque<String> made) {
    try {
      for (int key = 0; key < keys; key++) {
        store.delete(folder + "/" + key);
      }
      if (late || store.hasFolders()) {
        for (String left : store.list(folder)) {
          store.delete(folder + "/" + left);
        }
      }
      while (!made.isEmpty()) {
        store.deleteFolderIfEmpty(made.pollLast());
      }
    } catch (IOException e) {
      Warnings.warn(PutProbe.class, "left {}", store.location(folder), e);
    }
  }
}
