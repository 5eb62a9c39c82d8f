package io.sparklog.sim;

import io.sparklog.admin.Vacuum;
import io.sparklog.log.State;
import io.sparklog.segment.Names;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.storage.LinkingStore;
import io.sparklog.view.KafkaView;
import io.sparklog.write.Once;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** The rules that must hold when all is quiet: a process that still sleeps sleeps for ever, and fresh processes go on by themselves. */
final class Quiet {
  private final World world;
  private final Process fresh;

  Quiet(World world) {
    this.world = world;
    fresh = Process.alone(world, "fresh");
  }

  void run() throws IOException {
    world.pass(3_600_000 * 3);
    fresh.check(world.unanswered::settle);
    fresh.check(world.lied::settle);
    Known before = world.truth.top();
    write(0);
    if (before != null) {
      fresh.check(() -> requireDeleted(before));
    }
    if (world.powerLost && !world.place.isFar()) {
      // Only this compares bytes, and a power loss may leave others of the right length.
      KafkaView.publish(fresh.log(), Names.identity(world.random));
    }
    fresh.check(() -> KafkaViewCheck.requireRight(world));
    if (fresh.store instanceof LinkingStore store) {
      KafkaViewCheck.wakeAPublisher(world, store);
    }
    for (int n = 1; n < 9; n++) { // A checkpoint comes with one of them: the view is right after that at the latest.
      world.pass(60_000);
      write(n);
    }
    fresh.check(() -> KafkaViewCheck.requireRight(world));
    Process late = Process.alone(world, "late");
    State state = late.latest().orElseThrow();
    late.check(() -> requireTop(state));
    for (int p = 0; p < state.partitions(); p++) {
      Readers.readAll(late, state, p);
    }
    fresh.check(world.truth::requireNotDone);
    world.pass(2 * Vacuum.OLDER_THAN.toMillis()); // Clocks may be wrong.
    new Vacuum(new TopicWork(fresh.log(), fresh.clock, world.random)).run(Vacuum.OLDER_THAN, false);
    fresh.check(this::requireClean);
  }

  /** One commit of a process that has just started deletes what others had replaced long before it, {@code before} being the state then. */
  private void requireDeleted(Known before) {
    Set<String> live = before.files();
    List<String> left = world.truth.versions()
        .stream()
        .filter(known -> known.version() >= world.truth.top().number("boundary") && known.version() <= before.version())
        .flatMap(known -> known.removed().stream())
        .filter(file -> !live.contains(file) && world.disk.peekTag(Truth.FOLDER + file).isPresent())
        .toList();
    if (!left.isEmpty()) {
      throw new Truth.Broken("I9: after a commit of another process there is still " + left);
    }
  }

  private void write(int n) throws IOException {
    TreeMap<Integer, List<String>> records = new TreeMap<>(Map.of(0, List.of("fresh." + n)));
    if (!Writers.write(fresh, records, Once.NEVER)) {
      throw world.scheduler.fail("I10: the next write fails", null);
    }
  }

  /** Nothing dead is left. */
  private void requireClean() {
    Set<String> live = world.truth.top().files();
    // Files that were removed of late are not deleted yet.
    world.truth.versions()
        .stream()
        .filter(known -> known.version() >= world.truth.top().number("boundary"))
        .forEach(known -> live.addAll(known.removed()));
    List<String> dead = world.disk.filesIn(Truth.FOLDER + "data")
        .stream()
        .map(name -> "data/" + name)
        .filter(name -> !live.contains(name))
        .toList();
    if (!dead.isEmpty()) {
      throw new Truth.Broken("I9: after a vacuum there is " + dead);
    }
    long versions = world.disk.filesIn("_partlog/" + Truth.TOPIC).stream().filter(name -> Truth.isVersion(Truth.FOLDER + name)).count();
    if (versions > 30) {
      throw new Truth.Broken("I9: there are " + versions + " version files");
    }
  }

  private void requireTop(State state) {
    if (state.version() != world.truth.count() - 1) {
      throw new Truth.Broken("I10: a fresh reader sees version " + state.version() + " of " + world.truth.count());
    }
  }
}
