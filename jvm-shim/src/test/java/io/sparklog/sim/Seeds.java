package io.sparklog.sim;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongFunction;

/** Runs seeds on all cores until one fails, and adds up what was seen. */
record Seeds(long runs, long acts, long versions, long merges, long cleaned, double seconds, Simulation.Outcome failed) {
  static Seeds run(long first, long count, LongFunction<Simulation.Outcome> simulation) {
    long began = System.nanoTime();
    AtomicLong next = new AtomicLong(first);
    AtomicReference<Simulation.Outcome> failed = new AtomicReference<>();
    long[] sums = new long[5];
    List<Thread> threads = new ArrayList<>();
    for (int core = 0; core < Runtime.getRuntime().availableProcessors(); core++) {
      Thread thread = new Thread(() -> {
        for (long seed = next.getAndIncrement(); seed < first + count && failed.get() == null; seed = next.getAndIncrement()) {
          Simulation.Outcome outcome = simulation.apply(seed);
          synchronized (sums) {
            sums[0]++;
            sums[1] += outcome.acts();
            sums[2] += outcome.versions();
            sums[3] += outcome.merges();
            sums[4] += outcome.cleaned();
          }
          if (outcome.failure() != null) {
            failed.compareAndSet(null, outcome);
          }
        }
      });
      thread.start();
      threads.add(thread);
    }
    threads.forEach(Seeds::join);
    return new Seeds(sums[0], sums[1], sums[2], sums[3], sums[4], (System.nanoTime() - began) / 1e9, failed.get());
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  public String toString() {
    String what = failed == null
        ? "0 violations"
        : "seed " + failed.seed() + ": " + failed.failure() + "; replay it: make sim SEED=" + failed.seed() + " PLACE=" + failed.place();
    return String.format("%d seeds, %d acts, %d versions (%d merges), %d version files cleaned up, %.0f s: %s", runs, acts, versions,
        merges, cleaned, seconds, what);
  }
}
