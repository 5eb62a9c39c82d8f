package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Files in memory, whose reads wait for the test where it says so. */
@Timeout(120)
final class PlannedReadsTest {
  private static final int MIB = 1 << 20;
  private static final int WINDOW = 8 * MIB;

  /** No range is so large. */
  private static final long STREAMED = Long.MAX_VALUE;

  private final Map<String, byte[]> files = new TreeMap<>();
  /** Guarded by this object, since threads of requests fill it; a test takes a copy: {@link #asked()}. */
  private final List<PlannedReads.Range> begun = new ArrayList<>();

  private static Requests requests(long streamedBytesMin) {
    return new Requests(16, true, streamedBytesMin, Duration.ofMillis(50));
  }

  /** A request takes one of these. */
  private volatile Semaphore answers = new Semaphore(Integer.MAX_VALUE);

  private int under;
  private int underMost;

  private byte[] file(String name, int bytes) {
    byte[] content = new byte[bytes];
    new Random(name.hashCode()).nextBytes(content);
    files.put(name, content);
    return content;
  }

  private FileReader open(String name, long bytes) {
    return new FileReader() {
      @Override
      public long bytes() {
        return bytes;
      }

      @Override
      public void read(long position, ByteBuffer to) throws IOException {
        Semaphore answer = answers;
        asked(new PlannedReads.Range(name, position, position + to.remaining()), 1);
        try {
          answer.acquire();
        } catch (InterruptedException e) {
          throw new IOException("interrupted");
        } finally {
          asked(null, -1);
        }
        byte[] content = files.get(name);
        if (content == null) {
          throw new NoSuchFileException(name);
        }
        if (position + to.remaining() > content.length) {
          throw new EOFException(name + " ends at byte " + content.length);
        }
        to.put(content, (int) position, to.remaining());
      }

      @Override
      public void close() {}
    };
  }

  private synchronized void asked(PlannedReads.Range range, int more) {
    under += more;
    underMost = Math.max(underMost, under);
    if (range != null) {
      begun.add(range);
    }
    notifyAll();
  }

  private synchronized List<PlannedReads.Range> asked() {
    return List.copyOf(begun);
  }

  private synchronized void forget() {
    begun.clear();
  }

  private synchronized void waitForRequests(int count) throws InterruptedException {
    while (begun.size() < count) {
      wait();
    }
  }

  /** A request that was given up ends when its thread sees the interrupt. */
  private synchronized void waitForTheEndOfRequests() throws InterruptedException {
    while (under > 0) {
      wait();
    }
  }

  private PlannedReads plan(PlannedReads.Range... ranges) {
    return plan(new AtomicLong(), ranges);
  }

  private PlannedReads plan(AtomicLong spareBytes, PlannedReads.Range... ranges) {
    PlannedReads reads = new PlannedReads(this::open, requests(STREAMED), List.of(ranges), spareBytes);
    reads.want(Long.MAX_VALUE);
    return reads;
  }

  private static void assertRead(byte[] content, FileReader file, int from, int to, int step) throws IOException {
    byte[] piece = new byte[step];
    for (int at = from; at < to; at += step) {
      int length = Math.min(step, to - at);
      file.read(at, piece, 0, length);
      assertArrayEquals(Arrays.copyOfRange(content, at, at + length), Arrays.copyOf(piece, length), "at " + at);
    }
  }

  @Test
  void aRangeIsAskedForInPiecesAheadOfTheCaller() throws Exception {
    byte[] content = file("a", 100 * MIB);
    answers = new Semaphore(0);
    try (PlannedReads reads = plan(new PlannedReads.Range("a", 1000, content.length)); FileReader file = reads.open("a", content.length)) {
      waitForRequests(4);
      answers.release(4);
      assertRead(content, file, 1000, 1000 + WINDOW, 1 << 17);
      assertEquals(4, asked().size(), "no more bytes are held");
      assertRead(content, file, 1000 + WINDOW, 1000 + WINDOW + 1, 1);
      waitForRequests(5);
      answers.release(Integer.MAX_VALUE / 2);
      assertRead(content, file, 1001 + WINDOW, content.length, 100_000);
    }
    assertEquals(13, asked().size(), asked().toString());
    assertTrue(underMost <= 4, underMost + " requests of 8 MiB were under way");
    long bytes = asked().stream().mapToLong(range -> range.to() - range.from()).sum();
    assertEquals(content.length - 1000, bytes);
  }

  @Test
  void aLargePlanTakesSpareBytesAndGivesThemBack() throws Exception {
    byte[] content = file("a", 100 * MIB);
    answers = new Semaphore(0);
    AtomicLong spare = new AtomicLong(63 * MIB);
    PlannedReads.Range all = new PlannedReads.Range("a", 0, content.length);
    try (PlannedReads small = plan(spare, new PlannedReads.Range("a", 0, 32 * MIB))) {
      waitForRequests(4);
      small.want(Long.MAX_VALUE);
      assertEquals(63 * MIB, spare.get());
    }
    waitForTheEndOfRequests();
    forget();
    try (PlannedReads first = plan(spare, all)) {
      waitForRequests(8);
      try (PlannedReads second = plan(spare, all)) {
        waitForRequests(12);
        second.want(Long.MAX_VALUE);
        assertEquals(31 * MIB, spare.get(), "the second plan found too few bytes");
      }
      try (FileReader file = first.open("a", content.length)) {
        answers.release(Integer.MAX_VALUE / 2);
        assertRead(content, file, 0, 2 * WINDOW, 1 << 17);
        first.want(1); // The caller may stop soon.
        assertRead(content, file, 2 * WINDOW, content.length, 1 << 17);
      }
    }
    assertEquals(63 * MIB, spare.get());
    PlannedReads streamed = new PlannedReads(this::open, requests(WINDOW), List.of(all), spare);
    streamed.want(Long.MAX_VALUE);
    assertEquals(63 * MIB, spare.get(), "a stream needs no spare bytes");
    streamed.close();
    PlannedReads closed = plan(spare, all);
    closed.close();
    closed.want(Long.MAX_VALUE);
    assertEquals(63 * MIB, spare.get(), "a closed plan took spare bytes");
    assertTrue(underMost <= 12, underMost + " requests of 8 MiB were under way");
  }

  @Test
  void theNextSmallFilesAreAskedForAtOnce() throws Exception {
    PlannedReads.Range[] ranges = new PlannedReads.Range[40];
    for (int n = 0; n < ranges.length; n++) {
      file("f" + n, 10_000);
      ranges[n] = new PlannedReads.Range("f" + n, 0, 10_000);
    }
    try (PlannedReads reads = plan(ranges)) {
      for (int n = 0; n < ranges.length; n++) {
        if (n == 8) {
          waitForRequests(7 + 16);
          answers = new Semaphore(0);
        }
        if (n == 23) {
          waitForRequests(22 + 16);
          answers.release(Integer.MAX_VALUE / 2);
        }
        try (FileReader file = reads.open("f" + n, 10_000)) {
          assertRead(files.get("f" + n), file, 0, 10_000, 3000);
        }
      }
    }
    assertEquals(ranges.length, asked().size());
    assertTrue(underMost >= 15, "at most " + underMost + " requests were under way");
  }

  @Test
  void smallRangesOfAFileThatAreNearEachOtherAreOneRequest() throws Exception {
    byte[] content = file("a", 1 * MIB);
    try (
        PlannedReads reads = plan(new PlannedReads.Range("a", 0, 1000), new PlannedReads.Range("a", 2000, 3000),
            new PlannedReads.Range("a", 500_000, 600_000));
        FileReader file = reads.open("a", content.length)) {
      assertRead(content, file, 0, 1000, 1000);
      assertRead(content, file, 2000, 3000, 1000);
      assertRead(content, file, 500_000, 600_000, 7000);
    }
    assertEquals(Set.of(new PlannedReads.Range("a", 0, 3000), new PlannedReads.Range("a", 500_000, 600_000)), Set.copyOf(asked()));
    assertEquals(2, asked().size());
  }

  @Test
  void aReadElsewhereIsARequestOfItsOwn() throws Exception {
    byte[] content = file("a", 20 * MIB);
    try (PlannedReads reads = plan(new PlannedReads.Range("a", MIB, content.length)); FileReader file = reads.open("a", content.length)) {
      assertRead(content, file, MIB, 2 * MIB, 1 << 17);
      assertRead(content, file, 5, 105, 100);
      assertRead(content, file, 2 * MIB, 12 * MIB, 1 << 17);
      assertRead(content, file, MIB, MIB + 100, 100);
      assertRead(content, file, 12 * MIB, content.length, 1 << 17);
    }
    assertEquals(3 + 2, asked().size(), asked().toString());
  }

  /** A caller may stop after a few records. If it reads on, it gets more and more at once. */
  @Test
  void aCallerThatNeedsFewBytesAsksForFew() throws Exception {
    byte[] content = file("a", 64 * MIB);
    try (
        PlannedReads reads = new PlannedReads(this::open, requests(STREAMED), List.of(new PlannedReads.Range("a", 1000, content.length)))) {
      reads.want(2000);
      waitForRequests(1);
      try (FileReader file = reads.open("a", content.length)) {
        assertRead(content, file, 1000, 3000, 100);
        assertEquals(List.of(new PlannedReads.Range("a", 1000, 1000 + (256 << 10))), asked());
        assertRead(content, file, 3000, 8 * MIB, 1 << 10);
        assertTrue(asked().size() <= 16, asked().toString());
      }
    }
  }

  /** A server that answers with a MiB at a time. */
  @Test
  void aCallerThatAsksAgainAndAgainHasOneWindowMoreThanItNeeds() throws Exception {
    byte[] content = file("a", 64 * MIB);
    try (PlannedReads reads = new PlannedReads(this::open, requests(STREAMED), List.of(new PlannedReads.Range("a", 0, content.length)));
        FileReader file = reads.open("a", content.length)) {
      for (int at = 0; at < content.length; at += MIB) {
        reads.want(MIB);
        assertRead(content, file, at, at + MIB, 1 << 16);
        int end = at + MIB;
        long ahead = askedTo() - end;
        assertTrue(ahead <= Math.min(end, WINDOW) + MIB, ahead + " bytes are asked for beyond " + end);
        while (at == 32 * MIB && askedTo() - end < WINDOW / 2) {
          Thread.sleep(10); // Requests are made without the caller, at some time.
        }
      }
    }
    assertEquals(content.length, asked().stream().mapToLong(range -> range.to() - range.from()).sum());
    assertTrue(asked().size() <= 40, asked().toString());
  }

  private long askedTo() {
    return asked().stream().mapToLong(PlannedReads.Range::to).max().orElse(0);
  }

  /** Also if a later file of the plan has been asked for: its bytes are still used. */
  @Test
  void bytesThatAreExpectedComeFirst() throws Exception {
    byte[] a = file("a", 20 * MIB);
    byte[] b = file("b", MIB);
    try (PlannedReads reads = plan(new PlannedReads.Range("b", 0, MIB))) {
      try (FileReader file = reads.open("a", a.length)) {
        file.expect(0, Long.MAX_VALUE);
        file.expect(0, Long.MAX_VALUE);
        assertRead(a, file, 0, a.length, 1 << 17);
      }
      try (FileReader file = reads.open("b", b.length)) {
        file.expect(0, b.length);
        assertRead(b, file, 0, b.length, 1 << 17);
      }
    }
    assertEquals(4, asked().size(), asked().toString());
  }

  /** The plan asks for the small range after it meanwhile. */
  @Test
  void aLargeRangeIsLeftToTheStreamOfItsFile() throws Exception {
    byte[] a = file("a", 20 * MIB);
    byte[] b = file("b", MIB);
    List<PlannedReads.Range> ranges = List.of(new PlannedReads.Range("a", 100, a.length), new PlannedReads.Range("b", 0, MIB));
    List<PlannedReads.Range> streams = new ArrayList<>();
    PlannedReads.FileOpener opener = (name, bytes) -> new FileReader() {
      private final FileReader file = open(name, bytes);

      @Override
      public long bytes() {
        return bytes;
      }

      @Override
      public void expect(long from, long to) {
        streams.add(new PlannedReads.Range(name, from, to));
      }

      @Override
      public void read(long position, ByteBuffer to) throws IOException {
        file.read(position, to);
      }

      @Override
      public void close() {}
    };
    try (PlannedReads reads = new PlannedReads(opener, requests(WINDOW), ranges)) {
      reads.want(Long.MAX_VALUE);
      waitForRequests(1);
      try (FileReader file = reads.open("a", a.length)) {
        file.expect(100, a.length);
        assertRead(a, file, 100, a.length, MIB);
      }
      assertEquals(List.of(ranges.get(0)), streams);
      assertEquals(20, asked().stream().filter(range -> range.file().equals("a")).count(), "as the caller reads");
      try (FileReader file = reads.open("b", b.length)) {
        file.expect(0, b.length);
        assertRead(b, file, 0, b.length, 1 << 17);
      }
    }
    assertEquals(List.of(ranges.get(1)), asked().stream().filter(range -> range.file().equals("b")).toList());
  }

  /** Such as a server's, which would keep the stream open between two answers. */
  @Test
  void aCallerThatNeedsPartOfARangeGetsWindows() throws Exception {
    byte[] content = file("a", 20 * MIB);
    List<PlannedReads.Range> ranges = List.of(new PlannedReads.Range("a", 0, content.length));
    try (PlannedReads reads = new PlannedReads(this::open, requests(WINDOW), ranges); FileReader file = reads.open("a", content.length)) {
      reads.want(MIB);
      file.expect(0, content.length);
      assertRead(content, file, 0, 2 * MIB, 1 << 17);
      assertTrue(asked().size() <= 3, asked().toString());
      reads.want(Long.MAX_VALUE);
      assertRead(content, file, 2 * MIB, content.length, 1 << 17);
    }
    assertEquals(content.length, asked().stream().mapToLong(range -> range.to() - range.from()).sum());
    assertTrue(asked().size() <= 8, asked().toString());
  }

  /** As if it were read piece by piece. */
  @Test
  void aFileThatIsTooShortIsReadUpToItsEnd() throws Exception {
    byte[] content = file("a", 10_000);
    try (PlannedReads reads = plan(new PlannedReads.Range("a", 0, 20_000)); FileReader file = reads.open("a", 20_000)) {
      assertRead(content, file, 0, 10_000, 1000);
      assertThrows(EOFException.class, () -> file.read(9_500, new byte[1000], 0, 1000));
    }
  }

  @Test
  void aFailureComesWhereItsBytesAreRead() throws Exception {
    byte[] content = file("a", MIB);
    try (PlannedReads reads = plan(new PlannedReads.Range("a", 0, MIB), new PlannedReads.Range("gone", 0, MIB))) {
      try (FileReader file = reads.open("a", MIB)) {
        waitForRequests(2);
        assertRead(content, file, 0, MIB, 1 << 17);
      }
      try (FileReader file = reads.open("gone", MIB)) {
        assertThrows(NoSuchFileException.class, () -> file.read(0, new byte[10], 0, 10));
      }
    }
  }

  /** Hadoop's statistics are of a thread, and Spark shows those of the task's. */
  @Test
  void bytesOfOtherThreadsAreCountedForTheCaller() throws Exception {
    byte[] content = file("a", 3 * WINDOW);
    long before = threadBytes();
    try (PlannedReads reads = plan(new PlannedReads.Range("a", 0, content.length)); FileReader file = reads.open("a", content.length)) {
      waitForRequests(2);
      assertRead(content, file, 0, content.length, 1 << 17);
    }
    assertTrue(threadBytes() - before >= 2 * WINDOW, threadBytes() - before + " bytes");
  }

  @SuppressWarnings("deprecation") // Spark asks these statistics too
  private static long threadBytes() {
    return org.apache.hadoop.fs.FileSystem.getAllStatistics().stream().mapToLong(each -> each.getThreadStatistics().getBytesRead()).sum();
  }

  /** A task that ends early or is killed gives up its requests, and the threads of these requests end. */
  @Test
  void noThreadIsLeftWhenACallerEndsEarly() throws Exception {
    file("a", 100 * MIB);
    for (boolean isKilled : new boolean[] {false, true}) {
      forget();
      answers = new Semaphore(0);
      PlannedReads reads = plan(new PlannedReads.Range("a", 0, 100 * MIB));
      waitForRequests(4);
      assertTrue(threads() > 0);
      if (isKilled) {
        CountDownLatch ended = new CountDownLatch(1);
        Thread task = new Thread(() -> {
          try (reads; FileReader file = reads.open("a", 100 * MIB)) {
            assertThrows(IOException.class, () -> file.read(0, new byte[10], 0, 10));
          } catch (IOException e) {
            throw new AssertionError(e);
          }
          ended.countDown();
        });
        task.start();
        task.interrupt();
        ended.await();
      } else {
        reads.close();
      }
      while (threads() > 0) {
        Thread.sleep(10); // Until the end of the limit of this class.
      }
      assertEquals(4, asked().size());
    }
  }

  /** A caller that needs no more of a file leaves no request under way. */
  @Test
  void aSingleFileGivesUpItsRequestsWhenItIsClosed() throws Exception {
    byte[] content = file("a", 40 * MIB);
    answers = new Semaphore(0);
    try (FileReader file = PlannedReads.single(this::open, requests(STREAMED), "a", content.length)) {
      file.expect(0, content.length);
      waitForRequests(4);
    }
    waitForTheEndOfRequests();
    assertEquals(4, asked().size(), asked().toString());
  }

  private static long threads() {
    return Thread.getAllStackTraces().keySet().stream().filter(thread -> thread.getName().equals("partlog-requests")).count();
  }
}
