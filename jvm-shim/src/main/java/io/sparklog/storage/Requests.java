package io.sparklog.storage;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.ToLongFunction;

/**
 * The requests to a place that are under way at once: {@link ReadStore#requests}. All callers of the process with the same settings share
 * the threads, whose number is bounded. A caller may make one more request itself. A disk has {@link #IN_TURN}.
 *
 * <p>A caller that needs the answer to a request that has not begun makes the request itself, in its own thread. So a request may begin
 * other requests and wait for them, and a caller waits only for requests that are under way. Locks are taken in one order: if a caller
 * waits while it holds a lock, then its requests take no lock that comes before that one or is the same.
 *
 * <p>A thread ends when it has had no request for {@link #IDLE}, before {@link SharedFiles} closes the file system of the place.
 */
public final class Requests {
  /** Each request is made when its answer is needed, by the caller. */
  public static final Requests IN_TURN = new Requests(1);

  private static final Duration IDLE = Duration.ofSeconds(10);

  /** A stream saves a third of the CPU time of a client that asks for ranges ahead; it waits once, for the DataNode to begin. */
  private static final int HDFS_STREAMED_BYTES_MIN = 8 << 20;

  private final int most;
  private final boolean isInterrupting;
  private final long streamedBytesMin;

  /** Null if the caller makes all requests. */
  private final ThreadPoolExecutor threads;

  /** @param most requests that the threads make at once; 1 for none beside the caller's own */
  Requests(int most) {
    this(most, true, Long.MAX_VALUE, IDLE);
  }

  /** The requests to HDFS. Its threads share a connection. */
  static Requests ofHdfs(int most) {
    return new Requests(most, false, HDFS_STREAMED_BYTES_MIN, IDLE);
  }

  /**
   * Like {@link #Requests(int)}.
   *
   * @param isInterrupting whether a request that is given up is interrupted. Threads of HDFS share a connection, and an interrupt may close
   *     it for all of them
   * @param streamedBytesMin see {@link #streamedBytesMin()}
   * @param idle a thread ends when it has had no request for that long
   */
  Requests(int most, boolean isInterrupting, long streamedBytesMin, Duration idle) {
    this.most = most;
    this.isInterrupting = isInterrupting;
    this.streamedBytesMin = streamedBytesMin;
    this.threads = most == 1 ? null : threads(most, idle.toMillis());
  }

  private static ThreadPoolExecutor threads(int count, long idleMs) {
    ThreadPoolExecutor threads = new ThreadPoolExecutor(count, count, idleMs, TimeUnit.MILLISECONDS, new LinkedBlockingQueue<>(), task -> {
      // Without the values that the caller's thread would pass on, such as Spark's active session.
      Thread thread = new Thread(null, task, "partlog-requests", 0, false);
      thread.setDaemon(true);
      // The class loader of a session would be kept for as long as the thread lives.
      thread.setContextClassLoader(Requests.class.getClassLoader());
      return thread;
    });
    threads.allowCoreThreadTimeOut(true);
    return threads;
  }

  /** How many requests a caller can usefully have under way. */
  public int most() {
    return most;
  }

  /**
   * A range of a file that has at least so many bytes, and is read front to back, is cheapest by one stream: the place sends bytes before
   * they are asked for. Smaller ranges are asked for by requests, several at once.
   */
  long streamedBytesMin() {
    return streamedBytesMin;
  }

  /** A request that takes no argument. */
  @FunctionalInterface
  public interface Request<T> {
    T make() throws IOException;
  }

  /** A request about {@code subject}. */
  @FunctionalInterface
  public interface About<S, T> {
    T make(S subject) throws IOException;
  }

  /** Takes the answer about {@code subject}. */
  @FunctionalInterface
  public interface Taker<S, T> {
    /** @return false if no further answer is needed */
    boolean take(S subject, T answer) throws IOException;
  }

  /** A request that has been given to the threads. Its answer is for one caller. */
  public static final class Pending<T> implements AutoCloseable {
    private final FutureTask<T> task;
    private final ThreadPoolExecutor threads;
    private final boolean isInterrupted;
    private final boolean isChange;

    /** Guarded by this object, which a change holds while it is made. */
    private boolean isGivenUp;

    private Pending(Request<T> request, Requests requests, boolean isChange) {
      this.task = new FutureTask<>(isChange ? () -> makeUnlessGivenUp(request) : request::make);
      this.threads = requests.threads;
      this.isInterrupted = requests.isInterrupting && !isChange;
      this.isChange = isChange;
    }

    private synchronized T makeUnlessGivenUp(Request<T> request) throws IOException {
      return isGivenUp ? null : request.make();
    }

    private synchronized void awaitEnd() {
      isGivenUp = true;
    }

    private void begin() {
      if (threads != null) {
        threads.execute(task);
      }
    }

    /**
     * The answer, made by this thread if no other has begun to make it.
     *
     * @throws IOException as the request threw it; InterruptedIOException if this thread is interrupted, which gives the request up
     */
    public T answer() throws IOException {
      if (threads == null || threads.remove(task)) {
        task.run();
      }
      try {
        return task.get();
      } catch (InterruptedException e) {
        close();
        Thread.currentThread().interrupt();
        throw new InterruptedIOException("interrupted while requests to the store were under way");
      } catch (ExecutionException e) {
        throw thrown(e.getCause());
      }
    }

    private static IOException thrown(Throwable cause) {
      if (cause instanceof RuntimeException unchecked) {
        throw unchecked;
      }
      if (cause instanceof Error error) {
        throw error;
      }
      return (IOException) cause;
    }

    /** Gives the request up. A change that has begun is not interrupted, and this returns when it has ended. */
    @Override
    public void close() {
      if (threads != null) {
        threads.remove(task);
      }
      task.cancel(isInterrupted);
      if (isChange) {
        awaitEnd();
      }
    }
  }

  /** Begins a request. The caller asks for the answer, or closes it. In a place whose requests are made in turn, it begins with that. */
  public <T> Pending<T> begin(Request<T> request) {
    return begin(request, false);
  }

  /**
   * Like {@link #begin}, for a request that changes a file. A request that is interrupted may be carried out later, so this one is not
   * interrupted. Once it is closed, it has been carried out, or never will be.
   */
  public <T> Pending<T> beginChange(Request<T> request) {
    return begin(request, true);
  }

  private <T> Pending<T> begin(Request<T> request, boolean isChange) {
    Pending<T> pending = new Pending<>(request, this, isChange);
    pending.begin();
    return pending;
  }

  /** Like {@link #each(Iterable, ToLongFunction, long, About, Taker)}, of answers without a limit of their bytes. */
  public <S, T> void each(Iterable<S> subjects, About<S, T> request, Taker<S, T> taker) throws IOException {
    each(subjects, subject -> 0, 0, request, taker);
  }

  /**
   * Makes a request about each of {@code subjects}, and takes the answers in their order. At most {@link #most} requests or answers are
   * held at once.
   *
   * @param bytes of the answer about a subject, as far as the answers that were taken tell
   * @param bytesMax of all that is held at once; a single answer may have more
   * @throws IOException of the first request in the order that failed; the requests after it are given up
   */
  public <S, T> void each(Iterable<S> subjects, ToLongFunction<S> bytes, long bytesMax, About<S, T> request, Taker<S, T> taker)
      throws IOException {
    record Asked<S, T>(S subject, long bytes, Pending<T> pending) {}
    Iterator<S> rest = subjects.iterator();
    Deque<Asked<S, T>> asked = new ArrayDeque<>();
    S next = rest.hasNext() ? rest.next() : null;
    long held = 0;
    try {
      while (next != null || !asked.isEmpty()) {
        while (next != null && asked.size() < most) {
          S subject = next;
          long more = bytes.applyAsLong(subject);
          if (!asked.isEmpty() && held + more > bytesMax) {
            break;
          }
          next = rest.hasNext() ? rest.next() : null;
          if (next == null && asked.isEmpty()) {
            taker.take(subject, request.make(subject)); // A single one needs no other thread.
            return;
          }
          held += more;
          asked.add(new Asked<>(subject, more, begin(() -> request.make(subject))));
        }
        Asked<S, T> first = asked.element();
        if (!taker.take(first.subject, first.pending.answer())) {
          return;
        }
        asked.remove();
        held -= first.bytes;
      }
    } finally {
      asked.forEach(one -> one.pending.close());
    }
  }

  /** The answers to a request about each of {@code subjects}, in their order. @throws IOException as {@link #each} */
  public <S, T> List<T> all(Collection<S> subjects, About<S, T> request) throws IOException {
    List<T> answers = new ArrayList<>(subjects.size());
    each(subjects, request, (subject, answer) -> answers.add(answer));
    return answers;
  }
}
