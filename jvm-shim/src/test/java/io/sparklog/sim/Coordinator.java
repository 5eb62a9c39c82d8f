package io.sparklog.sim;

import io.sparklog.commits.AppendResult;
import io.sparklog.commits.AppendRefused;
import io.sparklog.commits.SteppedWriters;
import io.sparklog.log.State;
import io.sparklog.spec.PartlogException;
import java.nio.file.NoSuchFileException;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** A coordinator of groups in partition 0. Each record that it adds names the record before, by what the coordinator has read and added. */
final class Coordinator {
  static final String NOTHING = "nothing";
  static final char AFTER = '<';
  private static final Set<AppendRefused.Reason> REFUSALS = Set.of(AppendRefused.Reason.FENCED, AppendRefused.Reason.TOPIC_RECREATED,
      AppendRefused.Reason.UNKNOWN_TOPIC);
  private static final Set<String> EXPECTED = Set.of("WRITE_EXPIRED", "COMMIT_UNKNOWN", "TOPIC_RECREATED");

  private final Process process;
  /** Null if it must read the partition first. */
  private State known;
  private long end;
  private String last;

  Coordinator(Process process) {
    this.process = process;
  }

  void coordinate(int appends) {
    World world = process.world;
    SteppedWriters writers = new SteppedWriters(process.root(), process.clock, world.random);
    for (int n = 0; n < appends; n++) {
      process.sleep(world.random.nextInt(60));
      int faults = process.faults();
      try {
        if (known == null && !load()) {
          continue;
        }
      } catch (PartlogException e) {
        process.excuse(e, faults, Set.of());
        continue;
      }
      String record = process.name + "." + n + AFTER + name(last);
      CompletableFuture<AppendResult> added = writers.append(Truth.TOPIC, known.topicId(), 0, end, world.chance(6), record);
      writers.commit();
      writers.keepUp();
      try {
        end = added.join().end();
        last = record;
      } catch (CompletionException e) {
        known = null; // The record may not be added twice.
        excuse(e.getCause(), faults);
      }
    }
  }

  private void excuse(Throwable failure, int faults) {
    if (process.world.scheduler.isOver() || failure instanceof AppendRefused refused && REFUSALS.contains(refused.refusal())) {
      return;
    }
    // Another process may have found the new data folder empty, and deleted it. Then no version was put.
    if (failure.getCause() instanceof PartlogException e && !(e.getCause() instanceof NoSuchFileException)) {
      process.excuse(e, faults, EXPECTED);
    } else if (!(failure.getCause() instanceof PartlogException)) {
      throw process.world.scheduler.fail("I10: " + process.name + " gets " + failure, failure);
    }
  }

  private boolean load() {
    known = process.latest().filter(state -> !state.isDeleted()).orElse(null);
    if (known == null) {
      return false;
    }
    end = known.end(0);
    last = end == 0 ? NOTHING : process.world.truth.record(known.topicId(), 0, end - 1);
    return true;
  }

  /** The name of a record in the record after it, without the signs by which others find their own. */
  private static String name(String record) {
    int after = record.indexOf(AFTER);
    return (after < 0 ? record : record.substring(0, after)).replace('@', '+').replace('_', '+');
  }

  /** A record of a coordinator comes after the record that it names. */
  static void requireAfter(String record, String before) {
    int after = record.indexOf(AFTER);
    if (after >= 0 && !record.substring(after + 1).equals(name(before))) {
      throw new Truth.Broken("I5: " + record + " comes after " + before);
    }
  }
}
