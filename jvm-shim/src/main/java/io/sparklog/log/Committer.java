package io.sparklog.log;

import io.sparklog.spec.PartlogException;
import io.sparklog.storage.DataReader;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Names;
import io.sparklog.storage.Step;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.random.RandomGenerator;
import org.slf4j.LoggerFactory;

/**
 * The driver's part of one write to one topic: FORMAT.md section 7, step by step.
 *
 * <p>A commit is done when its version file is linked, not done when somebody else's stands there or none does, and unknown when neither can be told. After a put was tried nothing is ever cleaned up.
 */
public final class Committer {
  private static final int PUTS_MAX = 5;
  private static final long BACKOFF_MS_MAX = 200;

  private final TopicLog log;
  private final LogStore store;
  private final TopicPlan plan;
  private final String txn;
  private final Query query;
  private final Clock clock;
  private final RandomGenerator random;
  private boolean putTried;
  private boolean interrupted;

  /** How a put ended, where that can be told. */
  private enum Put {
    DONE,
    LOST
  }

  /**
   * @param log of the topic that {@code plan} is about
   * @param txn the random identity of this write
   * @param query what makes the write exactly once, or null
   */
  public Committer(TopicLog log, TopicPlan plan, String txn, Query query, Clock clock, RandomGenerator random) {
    this.log = log;
    this.store = log.store();
    this.plan = plan;
    this.txn = txn;
    this.query = query;
    this.clock = clock;
    this.random = random;
  }

  /** Whether a version file may have been written: then nothing that this write made may be deleted. */
  public boolean putTried() {
    return putTried;
  }

  /**
   * Commits what the tasks wrote; creates the topic if it is not there. Nothing is committed for no records, unless that creates the topic or notes an epoch.
   *
   * @param tasks the pieces of each task, by task
   * @return the version that holds them; a later one if the query's epoch was there already
   * @throws PartlogException when it is not done, and COMMIT_UNKNOWN when that cannot be told
   */
  public long commit(List<List<Piece>> tasks) {
    // An interrupt (a query that is stopped) closes channels in mid-commit, and would turn what can be told into "unknown": it waits until the outcome is known.
    interrupted = Thread.interrupted();
    try {
      List<Segment> segments = Pool.segments(store, plan, txn, tasks);
      requireFiles(segments);
      while (true) {
        Step.COMMIT_READ.reached();
        Optional<State> state = log.newest();
        if (state.isPresent() && isDone(state.get(), segments)) {
          return state.get().version();
        }
        state.ifPresent(this::requirePlanned);
        if (state.isEmpty()) {
          log.requireNoForeignSegments(plan.config().partitions());
          store.createFolder(Names.topicFolder(plan.topic()));
        }
        Version version = version(state, segments);
        if (put(version) == Put.DONE) {
          tidy(version);
          return version.version();
        }
        backOff();
      }
    } catch (IOException e) {
      throw PartlogException.caused(e, "COMMIT_FAILED", "txn", txn, "topic", plan.topic(), "root", store.root(), "cause", e.toString());
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private boolean isDone(State state, List<Segment> segments) {
    if (query != null && state.epoch(query.id()).orElse(-1) >= query.epoch()) {
      LoggerFactory.getLogger(Committer.class)
          .warn(
              "topic {} under {} holds epoch {} of {} already; {} records of a repeated write are passed over",
              plan.topic(),
              store.root(),
              state.epoch(query.id()).getAsLong(),
              query.id(),
              segments.stream().mapToLong(Segment::records).sum());
      return true;
    }
    return state.txn().equals(txn) || segments.isEmpty() && query == null;
  }

  private void requirePlanned(State state) {
    if (plan.topicId() != null && !plan.topicId().equals(state.topicId())) {
      throw PartlogException.of(
          "TOPIC_RECREATED", "topic", plan.topic(), "root", store.root(), "found", state.topicId(), "expected", plan.topicId());
    }
    if (!state.config().routing().equals(plan.config().routing())) {
      throw changed(state.config().routing(), plan.config().routing());
    }
    if (plan.topicId() == null) {
      // Another writer created it meanwhile: the batches here were made by limits and times that nobody set for it.
      plan.config()
          .entries()
          .forEach(
              (key, expected) -> {
                String found = state.config().entries().get(key);
                if (!expected.equals(found)) {
                  throw changed(key + " " + found, key + " " + expected);
                }
              });
    }
    if (plan.plannedVersion() < state.horizon()) {
      throw PartlogException.of("WRITE_EXPIRED", "topic", plan.topic(), "root", store.root(), "planned", plan.plannedVersion(), "horizon", state.horizon());
    }
  }

  private PartlogException changed(String found, String expected) {
    return PartlogException.of("ROUTING_CHANGED", "topic", plan.topic(), "root", store.root(), "found", found, "expected", expected);
  }

  private void requireFiles(List<Segment> segments) throws IOException {
    Map<String, Long> expected = new TreeMap<>();
    segments.forEach(segment -> expected.merge(segment.file(), segment.endPosition(), Math::max));
    for (Map.Entry<String, Long> file : expected.entrySet()) {
      String name = Names.topicFile(plan.topic(), file.getKey());
      try (DataReader reader = store.open(name)) {
        if (reader.bytes() != file.getValue()) {
          throw PartlogException.of("FILE_LENGTH", "file", name, "found", reader.bytes(), "expected", file.getValue(), "root", store.root());
        }
      } catch (NoSuchFileException e) {
        throw PartlogException.caused(e, "FILE_NOT_SHARED", "file", name, "root", store.root());
      }
    }
  }

  private Version version(Optional<State> state, List<Segment> segments) {
    if (state.isEmpty() && plan.topicId() != null) {
      throw PartlogException.of("TOPIC_RECREATED", "topic", plan.topic(), "root", store.root(), "found", "none", "expected", plan.topicId());
    }
    long[] starts = state.map(State::starts).orElseGet(() -> new long[plan.config().partitions()]);
    long[] ends = state.map(State::ends).orElseGet(() -> new long[plan.config().partitions()]);
    List<Segment> added = new ArrayList<>();
    for (Segment segment : segments) {
      int p = segment.partition();
      added.add(
          new Segment(
              p, segment.file(), segment.position(), segment.bytes(), ends[p], ends[p] + segment.records(), segment.records(), segment.batches(),
              segment.minTimestamp(), segment.maxTimestamp(), segment.dense(), segment.routed(), segment.ordered(), segment.headerCrc()));
      ends[p] += segment.records();
    }
    return new Version(
        plan.topic(),
        state.map(State::topicId).orElseGet(() -> Names.identity(random)),
        state.map(s -> s.version() + 1).orElse(0L),
        txn,
        state.map(State::hash).orElse(null),
        Math.max(0, clock.millis()),
        segments.isEmpty() && query == null ? "create" : "write",
        query,
        state.map(State::horizon).orElse(0L),
        state.map(State::boundary).orElse(0L),
        state.isPresent() ? Map.of() : plan.config().entries(),
        starts,
        ends,
        List.of(),
        added);
  }

  private Put put(Version version) {
    String name = Names.topicFile(plan.topic(), Names.versionFile(version.version()));
    String temporary = Names.topicFile(plan.topic(), Names.temporary(txn, Names.versionFile(version.version())));
    byte[] bytes = bytes(version);
    Exception failure = null;
    for (int puts = 0; puts < PUTS_MAX; puts++) {
      putTried = true;
      try {
        store.putIfAbsent(name, temporary, bytes);
        return Put.DONE;
      } catch (FileAlreadyExistsException taken) {
        failure = taken;
      } catch (IOException | RuntimeException e) {
        failure = e;
      }
      interrupted |= Thread.interrupted();
      // The put may have taken effect and only its answer been lost, so what stands there now decides.
      Optional<String> there = readBack(version, failure);
      if (there.isPresent()) {
        return there.get().equals(txn) ? Put.DONE : Put.LOST;
      }
      backOff();
    }
    // A store owes that a put which failed takes no effect later: absent after the last one is not done.
    throw PartlogException.caused(
        failure, "COMMIT_FAILED", "txn", txn, "topic", plan.topic(), "root", store.root(), "cause", String.valueOf(failure));
  }

  /** The version file, seen to be one that readers take: another would be the end of the topic. */
  private byte[] bytes(Version version) {
    int segments = version.added().size();
    byte[] bytes = segments > Version.SEGMENTS_MAX ? null : version.toBytes();
    if (bytes == null || bytes.length > Version.BYTES_MAX) {
      throw PartlogException.of("COMMIT_TOO_LARGE", "txn", txn, "topic", plan.topic(), "root", store.root(), "segments", segments);
    }
    try {
      log.parse(bytes, version.version());
    } catch (PartlogException e) {
      throw PartlogException.caused(e, "COMMIT_FAILED", "txn", txn, "topic", plan.topic(), "root", store.root(), "cause", e.parameters().get("reason"));
    }
    return bytes;
  }

  /** The txn that stands in the version file now, durably; empty if there is none. */
  private Optional<String> readBack(Version version, Exception failure) {
    Exception last = failure;
    for (int reads = 0; reads < PUTS_MAX; reads++) {
      try {
        byte[] bytes = log.read(version.version());
        store.sync(Names.topicFolder(plan.topic()));
        return Optional.of(log.parse(bytes, version.version()).txn());
      } catch (NoSuchFileException absent) {
        return Optional.empty();
      } catch (IOException | RuntimeException e) {
        last = e;
      }
      interrupted |= Thread.interrupted();
      backOff();
    }
    throw PartlogException.caused(
        last,
        "COMMIT_UNKNOWN",
        "txn",
        txn,
        "version",
        version.version(),
        "topic",
        plan.topic(),
        "root",
        store.root(),
        "file",
        Names.versionFile(version.version()),
        "cause",
        String.valueOf(last));
  }

  private void backOff() {
    try {
      Thread.sleep(random.nextLong(1, BACKOFF_MS_MAX) >>> random.nextInt(8));
    } catch (InterruptedException e) {
      interrupted = true;
    }
  }

  /** What follows a commit that is done. Its failure is logged; the next write or {@code publish} makes up for it. */
  private void tidy(Version version) {
    try {
      Step.COMMIT_DONE.reached();
      State state = log.newest().orElseThrow();
      new Publisher(store, state, txn).add(version.added());
      if (state.version() - Math.max(0, state.checkpointVersion()) >= Checkpoint.VERSIONS) {
        Checkpoint.write(store, state, txn);
        log.noteCheckpoint(state.version());
      }
    } catch (Throwable e) { // An Error, too, must not make a commit that is done look as if it had failed.
      LoggerFactory.getLogger(Committer.class)
          .warn("version {} of topic {} is committed; tidying up after it failed, and can be made up for with publish", version.version(), plan.topic(), e);
    }
  }
}
