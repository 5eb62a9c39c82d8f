package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Writers that put one name at the same time, each with a content of its own, while a reader watches. */
record PutRace(LogStore store, String name, String temporary) {
  /** More than a disk writes at once, so that a put that is not atomic can be seen. */
  private static final int BYTES = 300_000;

  /** Races, and checks that one writer won, and that nothing but its whole content was ever seen. */
  void run(int count) throws Exception {
    List<Callable<Boolean>> writers = new ArrayList<>();
    for (int writer = 0; writer < count; writer++) {
      int mine = writer;
      writers.add(() -> wins(mine));
    }
    AtomicBoolean over = new AtomicBoolean();
    ExecutorService watching = Executors.newSingleThreadExecutor();
    Future<Set<Integer>> seen = watching.submit(() -> watch(over));
    watching.shutdown();
    List<Boolean> won;
    try {
      won = together(writers);
    } finally {
      over.set(true);
    }
    assertEquals(1, won.stream().filter(each -> each).count(), name + ": " + won);
    Set<Integer> winner = Set.of(won.indexOf(true));
    assertEquals(winner, Set.of(writer(store.read(name, BYTES))), name);
    assertEquals(winner, seen.get(), "what a reader of " + name + " saw meanwhile");
  }

  private boolean wins(int writer) throws IOException {
    byte[] content = new byte[BYTES];
    Arrays.fill(content, (byte) writer);
    try {
      store.putIfAbsent(name, temporary + writer, content, PutObserver.NONE);
      return true;
    } catch (FileAlreadyExistsException another) {
      return false;
    }
  }

  /** The writers whose content was read; the last read is after the race. */
  private Set<Integer> watch(AtomicBoolean over) throws IOException {
    Set<Integer> seen = new TreeSet<>();
    for (boolean last = false; !last;) {
      last = over.get();
      try {
        seen.add(writer(store.read(name, BYTES)));
      } catch (NoSuchFileException notYet) {
        // Nothing else may be seen before.
      }
    }
    return seen;
  }

  /** The writer of the content; −1 if it is not a whole one. */
  private static int writer(byte[] content) {
    for (byte each : content) {
      if (each != content[0]) {
        return -1;
      }
    }
    return content.length == BYTES ? content[0] : -1;
  }

  /** Makes the calls at the same time, and gives their results in the same order. */
  static <T> List<T> together(List<Callable<T>> calls) throws Exception {
    CyclicBarrier start = new CyclicBarrier(calls.size());
    ExecutorService threads = Executors.newFixedThreadPool(calls.size());
    try {
      List<Future<T>> results = new ArrayList<>();
      for (Callable<T> call : calls) {
        results.add(threads.submit(() -> {
          start.await(100, TimeUnit.SECONDS);
          return call.call();
        }));
      }
      List<T> values = new ArrayList<>();
      for (Future<T> result : results) {
        values.add(result.get());
      }
      return values;
    } finally {
      threads.shutdown();
      // One of them failed: the others must not go on in a folder that is deleted when the test ends.
      if (!threads.awaitTermination(100, TimeUnit.SECONDS)) {
        throw new IllegalStateException("a call does not end");
      }
    }
  }
}
