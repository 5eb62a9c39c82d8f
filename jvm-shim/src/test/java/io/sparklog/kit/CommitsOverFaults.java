package io.sparklog.kit;

import io.sparklog.log.Checkpoint;
import io.sparklog.log.Committer;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.segment.Names;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** Commits to topic {@code t}, over a store that fails where a test tells it to. */
public abstract class CommitsOverFaults {
  public static final String TOPIC_FOLDER = Names.topicFolder("t");

  @TempDir
  public Path root;
  public final Random random = new Random(1);
  public FaultyStore store;

  @BeforeEach
  public void openStore() {
    store = FaultyStore.of(Stores.open(root.toString()));
  }

  /** One write of a driver that has just started. @param query null, or the epoch of query q */
  public Optional<Version> commit(int records, Long epoch) throws IOException {
    return commit(store.store(), records, epoch);
  }

  public Optional<Version> commit(LogStore place, int records, Long epoch) throws IOException {
    return commitOnce(place, records, epoch == null ? Once.NEVER : Once.epoch("q", epoch, null));
  }

  public Optional<Version> commitOnce(int records, Once once) throws IOException {
    return commitOnce(store.store(), records, once);
  }

  public Optional<Version> commitOnce(LogStore place, int records, Once once) throws IOException {
    return commit(new Root(place), records, once);
  }

  /** One write of a driver. */
  public Optional<Version> commit(Root driver, int records, Once once) throws IOException {
    TopicPlan plan = TopicPlan.of("t", driver.topic("t").latest(), Writes.config());
    String txn = Names.identity(random);
    List<TopicReport> reports = Writes.of("x", 2, records, 0).reports(driver.store(), plan, txn);
    store.calls().clear();
    return new TopicCommits(driver, txn, topic -> once, Clock.systemUTC(), random).commit(plan, reports).version();
  }

  public State state() {
    return new TopicLog(Stores.open(root.toString()), "t").newest().orElseThrow();
  }

  /** How many `.log` files the Kafka view has. */
  public long viewed() throws IOException {
    try (Stream<Path> files = Files.walk(root, 2)) {
      return files.filter(file -> file.getParent().getFileName().toString().startsWith("t-") && file.toString().endsWith(".log")).count();
    }
  }

  /**
   * The acts of other writers while one sleeps: they commit up to version 6, put a checkpoint of version 5, and delete what is before it.
   */
  public void overtakeAndCleanUp(Long epoch) throws IOException {
    LogStore place = Stores.open(root.toString());
    State fifth = null;
    for (long next = topicIsThere() ? state().version() + 1 : 0; next <= 6; next++) {
      commit(place, 1, next == 6 ? epoch : null);
      fifth = next == 5 ? state() : fifth;
    }
    cleanUp(place, fifth);
  }

  /** Puts a checkpoint and deletes all before it, the checkpoints first. */
  public void cleanUp(LogStore place, State until) throws IOException {
    for (String name : place.list(TOPIC_FOLDER)) {
      if (Names.checkpointVersion(name).isPresent()) {
        place.delete(TOPIC_FOLDER + "/" + name);
      }
    }
    Checkpoint.write(place, until, Names.identity(random));
    for (long gone = 0; gone < until.version(); gone++) {
      place.delete(version(gone));
    }
  }

  private boolean topicIsThere() {
    return new TopicLog(Stores.open(root.toString()), "t").newest().isPresent();
  }

  /** Runs {@code action} before the {@code count}-th of the calls to come, from 1. */
  public void before(String call, int count, Action action) {
    int[] seen = {0};
    store.at((method, name, when) -> {
      if (when == FaultyStore.When.BEFORE && (method + " " + name).equals(call) && ++seen[0] == count) {
        action.run();
      }
    });
  }

  /** An act of a test in the middle of a call. */
  public interface Action {
    void run() throws Throwable;
  }

  public static String version(long number) {
    return TOPIC_FOLDER + "/" + Names.versionFile(number);
  }

  public Committer committer(LogStore store) {
    return new Committer(new TopicLog(store, "t"), Names.identity(random), Clock.systemUTC(), random);
  }
}
