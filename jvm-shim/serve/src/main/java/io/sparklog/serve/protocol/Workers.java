package io.sparklog.serve.protocol;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;

/** Threads for what blocks, or takes long. */
public final class Workers implements Executor, AutoCloseable {
  private static final class Named implements ThreadFactory {
    private final AtomicInteger number = new AtomicInteger();
    private final String name;

    private Named(String name) {
      this.name = name;
    }

    @Override
    public Thread newThread(Runnable task) {
      Thread thread = new Thread(task, name + "-" + number.incrementAndGet());
      thread.setDaemon(true);
      return thread;
    }
  }

  private final ExecutorService threads;

  /** @param threads that work at once */
  public Workers(String name, int threads) {
    this.threads = Executors.newFixedThreadPool(threads, new Named(name));
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

  @Override
  public void close() {
    threads.shutdown();
  }
}
