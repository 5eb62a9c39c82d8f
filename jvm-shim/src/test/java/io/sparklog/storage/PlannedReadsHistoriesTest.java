package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Seed;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Plans that callers follow in part: they leap, read elsewhere, need few bytes, meet files that are gone, are interrupted, and stop. */
@Timeout(240)
final class PlannedReadsHistoriesTest {
  private static final int HISTORIES = Seed.either(12, 100);
  private static final int MIB = 1 << 20;

  /** 32 MiB, and what the last request of a range may have more. */
  private static final long HELD_MOST = 33 * MIB;

  private static final long SPARE = 32 * MIB;

  private final AtomicInteger under = new AtomicInteger();
  private final AtomicLong underBytes = new AtomicLong();
  private final AtomicLong underBytesMost = new AtomicLong();
  private final AtomicInteger made = new AtomicInteger();

  /** The byte of a file at a position. */
  private static byte at(String name, long position) {
    return (byte) (name.hashCode() * 31 + position * 7 + (position >>> 12));
  }

  private FileReader open(String name, long bytes) {
    return new FileReader() {
      @Override
      public long bytes() {
        return bytes;
      }

      @Override
      public void read(long position, ByteBuffer to) throws IOException {
        int length = to.remaining();
        made.incrementAndGet();
        under.incrementAndGet();
        underBytesMost.accumulateAndGet(underBytes.addAndGet(length), Math::max);
        try {
          Thread.yield();
          if (name.startsWith("gone")) {
            throw new NoSuchFileException(name);
          }
          for (int i = 0; i < length; i++) {
            to.put(at(name, position + i));
          }
        } finally {
          underBytes.addAndGet(-length);
          under.decrementAndGet();
        }
      }

      @Override
      public void close() {}
    };
  }

  private record Planned(String name, List<PlannedReads.Range> ranges) {}

  private static List<Planned> plan(Random random) {
    List<Planned> plan = new ArrayList<>();
    for (int n = random.nextInt(1, 6); n-- > 0;) {
      String name = (random.nextInt(12) == 0 ? "gone" : "file") + n;
      List<PlannedReads.Range> ranges = new ArrayList<>();
      long from = random.nextInt(1000);
      for (int count = random.nextInt(1, 4); count-- > 0;) {
        long to = from + random.nextInt(1, random.nextInt(3) == 0 ? 12 * MIB : 60_000);
        ranges.add(new PlannedReads.Range(name, from, to));
        from = to + random.nextInt(40_000);
      }
      plan.add(new Planned(name, ranges));
    }
    return plan;
  }

  @Test
  void eachReadHasItsBytesOrItsFailure() throws Exception {
    for (int history = 0; history < HISTORIES; history++) {
      long seed = Seed.draw() + history;
      try {
        follow(new Random(seed));
      } catch (AssertionError | Exception e) {
        throw new AssertionError("seed " + seed, e);
      }
    }
  }

  private void follow(Random random) throws Exception {
    List<Planned> plan = plan(random);
    List<PlannedReads.Range> all = plan.stream().flatMap(planned -> planned.ranges.stream()).toList();
    boolean isWhole = random.nextBoolean();
    boolean isTold = random.nextBoolean(); // So a large range is read by a stream, if the caller has not said that it needs less.
    long streamedBytesMin = random.nextBoolean() ? random.nextInt(6 * MIB) : Long.MAX_VALUE;
    made.set(0);
    underBytesMost.set(0);
    AtomicLong spare = new AtomicLong(random.nextBoolean() ? SPARE : 0);
    long spareBefore = spare.get();
    try (PlannedReads reads = new PlannedReads(this::open, new Requests(8, true, streamedBytesMin, Duration.ofMillis(50)), all, spare)) {
      if (random.nextBoolean()) {
        reads.want(isWhole ? Long.MAX_VALUE : random.nextInt(3 * MIB));
      }
      for (Planned planned : plan) {
        try (FileReader file = reads.open(planned.name, Long.MAX_VALUE / 2)) {
          for (PlannedReads.Range range : planned.ranges) {
            if (!isWhole && random.nextInt(10) == 0) {
              return; // The caller stops.
            }
            if (isTold) {
              file.expect(range.from(), range.to());
            }
            follow(random, reads, file, range, isWhole);
          }
        }
      }
      boolean isByWindows = !isTold || streamedBytesMin == Long.MAX_VALUE;
      if (isWhole && isByWindows && all.stream().noneMatch(range -> range.file().startsWith("gone"))) {
        long bytes = all.stream().mapToLong(range -> range.to() - range.from()).sum();
        assertTrue(made.get() <= all.size() + bytes / (8 * MIB), made + " requests for " + bytes + " bytes in " + all.size() + " ranges");
      }
    } finally {
      while (under.get() > 0) {
        Thread.sleep(1); // Until the end of the limit of this class.
      }
      assertEquals(spareBefore, spare.get());
      // A request that is given up ends at some time after that, beside the requests that come after it.
      assertTrue(!isWhole || underBytesMost.get() <= HELD_MOST + spareBefore, underBytesMost + " bytes were under way");
    }
  }

  private void follow(Random random, PlannedReads reads, FileReader file, PlannedReads.Range range, boolean isWhole) throws IOException {
    for (long at = range.from(); at < range.to();) {
      int what = isWhole ? 9 : random.nextInt(20);
      if (what == 0) {
        at = Math.min(range.to() - 1, at + random.nextInt(10 * MIB));
      } else if (what == 1) {
        reads.want(random.nextInt(2 * MIB));
      } else if (what == 2) {
        read(file, range.file(), random.nextInt(1000), 100);
      } else if (what == 3) {
        Thread.currentThread().interrupt();
        try {
          read(file, range.file(), at, 1);
        } catch (InterruptedIOException expected) {
          assertTrue(Thread.currentThread().isInterrupted());
        } finally {
          Thread.interrupted();
        }
        return; // An interrupted caller reads no further here.
      }
      int length = (int) Math.min(range.to() - at, 1 + random.nextInt(2 * MIB));
      read(file, range.file(), at, length);
      at += length;
    }
  }

  private static void read(FileReader file, String name, long position, int length) throws IOException {
    byte[] into = new byte[length];
    if (name.startsWith("gone")) {
      IOException failure = assertThrows(IOException.class, () -> file.read(position, into, 0, length));
      assertTrue(failure instanceof NoSuchFileException || failure instanceof InterruptedIOException, failure.toString());
      if (failure instanceof InterruptedIOException interrupted) {
        throw interrupted;
      }
      return;
    }
    file.read(position, into, 0, length);
    for (int i = 0; i < length; i++) {
      if (into[i] != at(name, position + i)) {
        throw new AssertionError("byte " + (position + i) + " of " + name + " is wrong");
      }
    }
  }
}
