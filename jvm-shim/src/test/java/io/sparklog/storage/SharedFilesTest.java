package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A file system is closed when nothing uses it, and never before. The one that is opened here is that of a disk. */
final class SharedFilesTest {
  private static final int CLIENTS = 6;
  private static final int ACTS = 250;

  @TempDir
  private java.nio.file.Path folder;

  private final AtomicInteger opened = new AtomicInteger();
  private final AtomicInteger closed = new AtomicInteger();

  /** Uses of a file system that was closed, and files that were open when it was. */
  private final Queue<Throwable> faults = new ConcurrentLinkedQueue<>();

  /** Finds faults. */
  private final class Watched extends RawLocalFileSystem {
    private final AtomicBoolean over = new AtomicBoolean();
    private final AtomicInteger streams = new AtomicInteger();

    private Watched() throws IOException {
      initialize(URI.create("file:///"), new Configuration(false));
      opened.incrementAndGet();
    }

    private void require(boolean right, String fault) {
      if (!right) {
        faults.add(new AssertionError(fault));
      }
    }

    @Override
    public FileStatus getFileStatus(Path path) throws IOException {
      require(!over.get(), "status after the end");
      return super.getFileStatus(path);
    }

    @Override
    public FileStatus[] listStatus(Path path) throws IOException {
      require(!over.get(), "listing after the end");
      return super.listStatus(path);
    }

    @Override
    public FSDataInputStream open(Path path, int buffer) throws IOException {
      require(!over.get(), "open after the end");
      FSDataInputStream real = super.open(path, buffer);
      streams.incrementAndGet();
      return new FSDataInputStream(real.getWrappedStream()) {
        @Override
        public void close() throws IOException {
          require(!over.get(), "a file is closed after the end");
          streams.decrementAndGet();
          super.close();
        }
      };
    }

    @Override
    public FSDataOutputStream create(Path path, boolean overwrite) throws IOException {
      require(!over.get(), "create after the end");
      FSDataOutputStream real = super.create(path, overwrite);
      streams.incrementAndGet();
      return new FSDataOutputStream(real, null) {
        @Override
        public void close() throws IOException {
          require(!over.get(), "a written file is closed after the end");
          streams.decrementAndGet();
          super.close();
        }
      };
    }

    @Override
    public void close() throws IOException {
      require(!over.getAndSet(true), "a second end");
      require(streams.get() == 0, "closed while " + streams + " files are open");
      closed.incrementAndGet();
    }
  }

  private HdfsStore store(Duration idle) {
    return new HdfsStore(new SharedFiles(Watched::new, idle, Requests.IN_TURN), new StoreRef("file:" + folder));
  }

  private static void until(BooleanSupplier condition, Runnable between) {
    for (long end = System.nanoTime() + Duration.ofMinutes(2).toNanos(); !condition.getAsBoolean();) {
      assertTrue(System.nanoTime() < end, "not within two minutes");
      between.run();
      LockSupport.parkNanos(1_000_000);
    }
  }

  private static void pause(Random random) {
    if (random.nextInt(3) == 0) {
      LockSupport.parkNanos(random.nextInt(2_000_000));
    }
  }

  private static void act(HdfsStore store, Random random, String own) throws IOException {
    switch (random.nextInt(4)) {
      case 0 -> assertEquals(100, store.read("there", 100).length);
      case 1 -> assertTrue(store.list("").contains("there"));
      case 2 -> {
        try (FileReader file = store.open("there")) {
          for (int at = 0; at < 100; at += 25) {
            byte[] part = new byte[25];
            file.read(at, part, 0, 25);
            assertEquals(at, part[0]);
            pause(random);
          }
        }
      }
      default -> {
        try (FileAppender file = store.create(own)) {
          pause(random);
          file.write(new byte[10], 0, 10);
          pause(random);
          if (random.nextBoolean()) {
            file.sync();
          }
        }
      }
    }
  }

  @Test
  void itIsNeverClosedUnderOneThatUsesItWhateverTheOrder() throws Exception {
    byte[] content = new byte[100];
    for (int at = 0; at < 100; at++) {
      content[at] = (byte) at;
    }
    Files.write(folder.resolve("there"), content);
    long seed = Seed.draw();
    HdfsStore store = store(Duration.ofNanos(200_000));
    ExecutorService clients = Executors.newFixedThreadPool(CLIENTS);
    try {
      List<Future<?>> ends = new ArrayList<>();
      for (int client = 0; client < CLIENTS; client++) {
        int number = client;
        ends.add(clients.submit(() -> {
          Random random = new Random(seed + number);
          for (int act = 0; act < ACTS; act++) {
            act(store, random, "own-" + number + "-" + act);
            pause(random);
          }
          return null;
        }));
      }
      for (Future<?> end : ends) {
        end.get();
      }
    } finally {
      clients.shutdownNow();
    }
    // One client alone leaves it idle again and again.
    for (int round = 0; round < 20; round++) {
      act(store, new Random(seed - round), "last-" + round);
      until(() -> closed.get() == opened.get(), () -> {});
    }
    assertEquals(List.of(), faults.stream().limit(5).toList());
    assertTrue(opened.get() >= 20, opened + " opened");
  }

  @Test
  void aFileThatNobodyClosedDoesNotKeepItOpen() throws IOException {
    Files.write(folder.resolve("there"), new byte[10]);
    HdfsStore store = store(Duration.ofMillis(1));
    store.open("there");
    until(() -> closed.get() == 1, System::gc);
    assertEquals(10, store.bytes("there"), "it is opened again");
    assertEquals(2, opened.get());
  }

  /** The client of HDFS sends no request before it is used. */
  @Test
  void equalSettingsHaveOne() throws IOException {
    Map<String, String> other = Map.of("fs.unknown", "1");
    List<FileSystem> all = new ArrayList<>();
    for (Map<String, String> settings : List.of(Collections.<String, String>emptyMap(), Collections.<String, String>emptyMap(), other)) {
      LogStore store = Stores.open(new StoreRef("hdfs://127.0.0.1:1/root-" + all.size(), new TreeMap<>(settings)));
      try (SharedFiles.Use use = assertInstanceOf(HdfsStore.class, store).use()) {
        all.add(use.files());
      }
    }
    assertSame(all.get(0), all.get(1));
    assertNotSame(all.get(0), all.get(2));
  }
}
