package io.sparklog.serve.protocol;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.common.utils.ThreadUtils;

/** Threads for what blocks, or takes long. */
public final class Workers implements Executor, AutoCloseable {
  private final ExecutorService threads;

  /** @param threads that work at once */
  public Workers(String name, int threads) {
    this.threads = Executors.newFixedThreadPool(threads, ThreadUtils.createThreadFactory(name + "-%d", true));
  }

  /** Runs the task as soon as a thread is free. A task whose future is cancelled before does not run. Never throws. */
  public <T> CompletableFuture<T> run(Callable<T> task) {
    CompletableFuture<T> done = new CompletableFuture<>();
    try {
      threads.execute(() -> complete(done, task));
    } catch (Throwable e) {
      done.completeExceptionally(e);
    }
    return done;
  }

  private static <T> void complete(CompletableFuture<T> done, Callable<T> task) {
    if (done.isDone()) {
      return;
    }
    try {
      done.complete(task.call());
    } catch (Throwable e) {
      done.completeExceptionally(e);
    }
  }

  @Override
  public void execute(Runnable task) {
    threads.execute(task);
  }

  /** Interrupts what runs, and drops what waits. */
  public void closeNow() {
    threads.shutdownNow();
  }

  @Override
  public void close() {
    threads.shutdown();
  }
}
