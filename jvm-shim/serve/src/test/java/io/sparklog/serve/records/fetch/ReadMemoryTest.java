package io.sparklog.serve.records.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.RemoteReads;
import io.sparklog.kit.Seed;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.ReadAhead;
import io.sparklog.spec.PartlogException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Cursors have no more memory together than there is, each of them gets its buffer, and all of it comes back. */
final class ReadMemoryTest {
  private static final int BYTES = 1600;
  private static final int HALF = BYTES / 2;
  private static final int THREADS = 6;
  private static final long WAIT_S = 120;

  @TempDir
  Path directory;

  private final ExecutorService threads = Executors.newFixedThreadPool(THREADS);

  @AfterEach
  void close() {
    threads.shutdownNow();
  }

  private interface Program {
    void run(Random random) throws Exception;
  }

  private void all(Program program) throws Exception {
    Random seeds = new Random(Seed.draw());
    List<Future<?>> running = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      Random random = new Random(seeds.nextLong());
      running.add(threads.submit(() -> {
        program.run(random);
        return null;
      }));
    }
    for (Future<?> each : running) {
      each.get(WAIT_S, TimeUnit.SECONDS);
    }
  }

  @Test
  void eachCursorGetsItsBufferAndTheirSumIsBounded() throws Exception {
    record Holder(ReadMemory.Reservation share, long buffer) {}
    ConcurrentLinkedQueue<Holder> idle = new ConcurrentLinkedQueue<>();
    AtomicLong buffers = new AtomicLong();
    AtomicLong ahead = new AtomicLong();
    Runnable closeIdle = () -> {
      for (Holder holder; (holder = idle.poll()) != null;) {
        buffers.addAndGet(-holder.buffer);
        holder.share.give();
      }
    };
    ReadMemory memory = new ReadMemory(BYTES, closeIdle);
    all(random -> {
      for (int round = 0; round < 2000; round++) {
        ReadMemory.Reservation share = memory.share();
        long held = 0;
        for (int step = random.nextInt(4); step > 0; step--) {
          int bytes = 1 + random.nextInt(random.nextInt(8) == 0 ? 2 * HALF : HALF / 2);
          buffers.addAndGet(-held);
          share.buffer(bytes);
          held = Math.min(bytes, HALF);
          assertTrue(buffers.addAndGet(held) <= HALF);
        }
        if (random.nextInt(3) == 0) {
          long taken = share.ahead();
          assertTrue(taken <= HALF / 8 && ahead.addAndGet(taken) <= HALF);
          assertEquals(taken, Math.min(taken, share.ahead()), "what was asked for ahead stays");
          ahead.addAndGet(-taken);
          buffers.addAndGet(-held);
          share.give();
        } else if (random.nextBoolean()) {
          idle.add(new Holder(share, held));
          if (memory.isScarce()) {
            closeIdle.run();
          }
        } else {
          buffers.addAndGet(-held);
          share.give(); // Also if its fetch fails.
        }
      }
    });
    closeIdle.run();
    assertEquals(BYTES, memory.free());
    assertFalse(memory.isScarce());
  }

  @Test
  void aLargeBufferIsThereAloneAndKeepsItsPlace() throws Exception {
    ReadMemory memory = new ReadMemory(BYTES, () -> {});
    ReadMemory.Reservation first = memory.share();
    first.buffer(1);
    ReadMemory.Reservation large = memory.share();
    Future<?> waits = threads.submit(() -> large.buffer(10 * HALF));
    while (!memory.isScarce()) {
      Thread.onSpinWait();
    }
    ReadMemory.Reservation small = memory.share();
    Future<?> later = threads.submit(() -> small.buffer(1));
    assertEquals(HALF / 8, small.ahead(), "bytes ahead are other memory, and never wait");
    assertFalse(waits.isDone() || later.isDone());
    first.give();
    waits.get(WAIT_S, TimeUnit.SECONDS);
    assertFalse(later.isDone());
    large.give();
    later.get(WAIT_S, TimeUnit.SECONDS);
    small.give();
    assertEquals(BYTES, memory.free());
  }

  @Test
  void aWaitThatFailsKeepsNoPlace() throws Exception {
    ReadMemory memory = new ReadMemory(BYTES, () -> {
      throw new IllegalStateException("no cursor can be closed");
    });
    ReadMemory.Reservation first = memory.share();
    first.buffer(HALF);
    assertThrows(IllegalStateException.class, () -> memory.share().buffer(1));
    assertFalse(memory.isScarce());
    first.give();
    assertEquals(BYTES, memory.free());
  }

  private WrittenTopic topic() throws Exception {
    WrittenTopic topic = new WrittenTopic(directory, "t").with(TopicConfig.KAFKA_VIEW, "none");
    topic.padding = offset -> 9_000;
    return topic.segment(0, 20, 30, 1, 20, 60).segment(0, 40, 20).segment(1, 60, 60, 20).commit();
  }

  /** Batches have up to 550,000 bytes, and the memory of all buffers is a quarter of that. */
  @Test
  void readsOverANetworkGiveTheirMemoryBackAlsoIfTheyFail() throws Exception {
    WrittenTopic topic = topic();
    Path damaged = directory.resolve("_partlog/t").resolve(topic.state().segments(1).get(0).file());
    byte[] bytes = Files.readAllBytes(damaged);
    bytes[bytes.length / 2]++; // In the second batch of partition 1.
    Files.write(damaged, bytes);
    Root root = new Root(new RemoteReads(topic.store).store());
    PartitionReads reads = new PartitionReads(root, Clock.systemUTC(), 280_000);
    State state = topic.state();
    AtomicLong faults = new AtomicLong();
    all(random -> {
      for (int round = 0; round < 40; round++) {
        int partition = random.nextInt(4) == 0 ? 1 : 0;
        for (long next = random.nextInt((int) state.end(partition)), last = -1; next < state.end(partition) && next > last;) {
          last = next;
          try {
            List<FetchedBytes> parts = reads.read(state, partition, next, 1 + random.nextInt(400_000));
            next = random.nextInt(8) == 0
                ? next // The connection has ended.
                : Fetched.rows(topic, partition, Fetched.bytes(new ArrayList<>(parts)))
                    .stream()
                    .mapToLong(WrittenTopic.Row::offset)
                    .max()
                    .getAsLong() + 1;
            if (next == last) {
              PartitionReads.close(parts);
            }
          } catch (PartlogException e) {
            assertEquals("BATCH_CORRUPT", e.id());
            faults.incrementAndGet();
          }
        }
      }
    });
    assertTrue(faults.get() > 0);
    reads.closeIdle();
    assertEquals(280_000, reads.reading().free());
    assertEquals(280_000, reads.memory().free());
  }

  @Test
  void batchesThatFollowOneAnotherWaitForNoMemoryOfTheirOwn() throws Exception {
    WrittenTopic topic = topic();
    Root root = new Root(new RemoteReads(topic.store).store());
    PartitionReads reads = new PartitionReads(root, Clock.systemUTC(), 2);
    ReadAhead.ReadRoom room = reads.room();
    for (long offset : new long[] {0, 25, 71}) {
      assertTrue(reads.batch(topic.state(), 0, offset, room).length > 1000);
    }
    room.give();
    reads.closeIdle();
    assertEquals(2, reads.reading().free());
  }

  @Test
  void aLargeBatchOnADiskTakesNoBuffer() throws Exception {
    WrittenTopic topic = topic();
    PartitionReads reads = new PartitionReads(topic.root, Clock.systemUTC(), 2);
    ReadMemory.Reservation all = reads.reading().share();
    all.buffer(1);
    for (long offset : new long[] {0, 25, 71}) { // A read that took a buffer would wait for ever.
      assertEquals(1,
          Fetched.rows(topic, 0, Fetched.bytes(reads.read(topic.state(), 0, offset, 1)))
              .stream()
              .filter(row -> row.offset() == offset)
              .count());
    }
    all.give();
  }
}
