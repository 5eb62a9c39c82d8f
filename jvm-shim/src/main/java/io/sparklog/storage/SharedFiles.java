package io.sparklog.storage;

import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.fs.FileSystem;

/**
 * A file system of Hadoop, for all stores of a place with the same settings and user. It has threads and connections, so it is closed when
 * nothing has used it for a while; the next use opens it again.
 *
 * <p>Spark and other libraries do not share it: so its settings hold, and no library closes it.
 */
final class SharedFiles {
  /** Within twice that time, S3A ends idle connections anyway. */
  private static final Duration LOOKS = Duration.ofSeconds(30);

  /** By the settings and the user that they are opened with. */
  private static final Map<Object, WeakReference<SharedFiles>> KNOWN = new HashMap<>();

  private static final ScheduledThreadPoolExecutor CLOSER = closer();

  private final Opener opener;
  private final long looksNs;
  private final Requests requests;
  private FileSystem open;
  private int users;
  private long uses;
  private long usesSeen;

  /** Opens a file system, whenever it is asked. */
  @FunctionalInterface
  interface Opener {
    FileSystem open() throws IOException;
  }

  /** @param looks the time between two looks: a look that sees no use since the look before closes the file system */
  SharedFiles(Opener opener, Duration looks, Requests requests) {
    this.opener = opener;
    this.looksNs = looks.toNanos();
    this.requests = requests;
  }

  /** The one for {@code key}, which {@code opener} opens if it is new. @param requests if it is new */
  static SharedFiles of(Object key, Opener opener, Requests requests) {
    synchronized (KNOWN) {
      WeakReference<SharedFiles> known = KNOWN.get(key);
      SharedFiles files = known == null ? null : known.get();
      if (files == null) {
        KNOWN.values().removeIf(reference -> reference.get() == null);
        files = new SharedFiles(opener, LOOKS, requests);
        KNOWN.put(key, new WeakReference<>(files));
      }
      return files;
    }
  }

  private static ScheduledThreadPoolExecutor closer() {
    ScheduledThreadPoolExecutor closer = new ScheduledThreadPoolExecutor(1, task -> {
      Thread thread = new Thread(task, "partlog-idle-file-systems");
      thread.setDaemon(true);
      return thread;
    });
    closer.setKeepAliveTime(1, TimeUnit.SECONDS);
    closer.allowCoreThreadTimeOut(true);
    return closer;
  }

  /** A use of the file system: it stays open until the use is closed. */
  final class Use implements AutoCloseable {
    private final FileSystem files;
    private final AtomicBoolean ended = new AtomicBoolean();

    private Use(FileSystem files) {
      this.files = files;
    }

    FileSystem files() {
      return files;
    }

    /** A second call does nothing. */
    @Override
    public void close() {
      if (!ended.getAndSet(true)) {
        end();
      }
    }
  }

  /** Makes requests to the place at once. */
  Requests requests() {
    return requests;
  }

  /** Begins a use. */
  synchronized Use use() throws IOException {
    if (open == null) {
      open = opener.open();
      lookLater();
    }
    users++;
    uses++;
    return new Use(open);
  }

  private synchronized void end() {
    users--;
  }

  private void lookLater() {
    CLOSER.schedule(this::closeIfIdle, looksNs, TimeUnit.NANOSECONDS);
  }

  private void closeIfIdle() {
    FileSystem idle;
    synchronized (this) {
      if (users > 0 || uses != usesSeen) {
        usesSeen = uses;
        lookLater();
        return;
      }
      idle = open;
      open = null;
    }
    try {
      idle.close();
    } catch (IOException | RuntimeException e) {
      Warnings.warn(SharedFiles.class, "closing the file system {} failed", idle.getUri(), e);
    }
  }
}
