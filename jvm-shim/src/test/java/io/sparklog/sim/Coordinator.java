package io.sparklog.sim;

import io.sparklog.log.State;
import io.sparklog.serve.coordinator.groups.FencedWrites;
import io.sparklog.spec.PartlogException;
import io.sparklog.upkeep.TopicWork;
import java.nio.file.NoSuchFileException;
import java.util.OptionalLong;
import java.util.Set;

/** A coordinator of groups in partition 0. Each record that it adds names the record before, by what the coordinator has read and added. */
final class Coordinator {
  static final String NOTHING = "nothing";
  static final char AFTER = '<';
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
    for (int n = 0; n < appends; n++) {
      process.sleep(world.random.nextInt(60));
      int faults = process.faults();
      try {
        if (known == null && !load()) {
          continue;
        }
        String record = process.name + "." + n + AFTER + name(last);
        TopicWork work = new TopicWork(process.log(), process.clock, world.random);
        OptionalLong added = FencedWrites.append(process.log(), work, known, 0, end, world.chance(6), record);
        if (added.isPresent()) {
          end = added.getAsLong();
          last = record;
        } else {
          known = null;
        }
      } catch (PartlogException e) {
        // Another process may have found the new data folder empty, and deleted it. Then no version was put, and the coordinator loads the
        // partition again, as after any failure: the record may not be added twice.
        if (!(e.getCause() instanceof NoSuchFileException)) {
          process.excuse(e, faults, EXPECTED);
        }
        known = null;
      }
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
