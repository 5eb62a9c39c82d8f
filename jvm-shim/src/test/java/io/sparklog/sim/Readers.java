package io.sparklog.sim;

import io.sparklog.log.State;
import io.sparklog.read.Intervals;
import io.sparklog.read.RecordFilter;
import io.sparklog.read.Selection;
import io.sparklog.read.Split;
import io.sparklog.read.SplitPlanner;
import io.sparklog.read.SplitReader;
import io.sparklog.read.VisibleRecords;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** The actors that read: some keep the state that they know, some forget it; all come to their files late. */
final class Readers {
  private Readers() {}

  static void read(Process process, int reads, boolean forgetful) throws IOException {
    World world = process.world;
    for (int n = 0; n < reads; n++) {
      process.sleep(world.random.nextInt(60));
      if (forgetful) {
        process.forget();
      }
      int faults = process.faults();
      try {
        Optional<State> state = process.latest().filter(latest -> !latest.isDeleted());
        if (state.isPresent()) {
          int partition = world.random.nextInt(state.get().partitions());
          long start = state.get().start(partition);
          long end = state.get().end(partition);
          if (start < end) {
            long from = world.chance(3) ? start + world.random.nextInt((int) (end - start)) : start;
            new Reading(process, state.get(), partition, from, end).run();
          }
        }
      } catch (PartlogException e) {
        process.excuse(e, faults, Set.of());
      } catch (IOException e) {
        process.excuse(e, faults);
      }
    }
  }

  /** Reads all of a partition, by a process that acts alone. */
  static void readAll(Process process, State state, int partition) throws IOException {
    if (state.start(partition) < state.end(partition)) {
      new Reading(process, state, partition, state.start(partition), state.end(partition)).run();
    }
  }

  /** One read of [{@code next}, {@code end}). */
  private static final class Reading {
    private final Process process;
    private final State state;
    private final int partition;
    private final long end;
    private long next;

    private Reading(Process process, State state, int partition, long next, long end) {
      this.process = process;
      this.state = state;
      this.partition = partition;
      this.next = next;
      this.end = end;
    }

    private void run() throws IOException {
      World world = process.world;
      try {
        List<Selection> all = List.of(new Selection(state, partition, Intervals.of(next, end - 1), RecordFilter.ALL_RECORDS));
        SplitPlanner.SplitSize size = new SplitPlanner.SplitSize(world.chance(2) ? 300 : 1 << 20, 1, 1, 1, world.chance(2) ? 2 : 1000);
        for (Split split : new SplitPlanner(process.root(), size, true).plan(all)) {
          process.sleep(world.chance(3) ? world.random.nextInt(200) : 0);
          try (SplitReader reader = new SplitReader(process.root(), split, true, false, Long.MAX_VALUE)) {
            while (reader.next()) {
              requireRight(reader.records());
            }
          }
        }
        if (next != end) {
          throw new Truth.Broken("I7: a read ends at " + next + ", not at " + end);
        }
      } catch (Truth.Broken e) {
        throw world.scheduler.fail(process.name + ": " + e.getMessage(), e);
      } catch (PartlogException e) {
        if (!isRight(e)) {
          throw e;
        }
      }
    }

    private void requireRight(VisibleRecords records) {
      for (int i = records.first(); i < records.first() + records.rows(); i++) {
        long offset = records.base() + records.decoder().offsetDeltas()[i];
        String record = Records.value(records.decoder(), i);
        if (offset != next || !record.equals(process.world.truth.record(state.topicId(), partition, offset))) {
          throw new Truth.Broken("I7: " + record + " is read at offset " + offset + " of partition " + partition + ", next is " + next);
        }
        next++;
      }
    }

    /** Whether an error says what is so: that the topic was deleted, or that offsets have expired. */
    private boolean isRight(PartlogException e) {
      Truth truth = process.world.truth;
      boolean gone = Set.of("TOPIC_REPLACED", "SEGMENT_MISSING", "TOPIC_NOT_FOUND").contains(e.id()) && truth.isDeleted(state.topicId());
      boolean expired = e.id().equals("OFFSETS_EXPIRED")
          && truth.versions().stream().anyMatch(known -> known.topicId().equals(state.topicId()) && known.starts()[partition] > next);
      return gone || expired;
    }
  }
}
