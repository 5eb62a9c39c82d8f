package io.sparklog.log;

import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FileReader;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Step;
import java.io.IOException;
import java.io.SyncFailedException;
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
 * <p>A commit is done when its version file is linked, not done when somebody else's stands there or none does, and unknown when neither
 * can be told. After a put was tried nothing is ever cleaned up.
 */
public final class Committer {
  private static final int PUTS_MAX = 5;

  /** So often a put may be lost to a version that no reader finds afterwards. */
  private static final int STANDSTILLS_MAX = 5;

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
    DONE, LOST
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
   * Commits what the tasks wrote; creates the topic if it is not there. Nothing is committed for no records, unless that creates the topic
   * or notes an epoch.
   *
   * @param tasks the pieces of each task, by task
   * @return the version that holds them; a later one if the query's epoch was there already
   * @throws PartlogException when it is not done, and COMMIT_UNKNOWN when that cannot be told
   */
  public long commit(List<List<Piece>> tasks) {
    // An interrupt (a query that is stopped) closes channels in mid-commit, and would turn what can be told into "unknown": it waits until
    // the outcome is known.
    interrupted = Thread.interrupted();
    try {
      List<Segment> segments = Pool.segments(store, plan, txn, tasks);
      requireFiles(segments);
      long lost = -1;
      int standstills = 0;
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
        standstills = version.version() == lost ? standstills + 1 : 0;
        lost = version.version();
        if (standstills == STANDSTILLS_MAX) {
          throw failed(null, "version " + lost + " is taken, and yet is not found when the topic is read");
        }
        backOff();
      }
    } catch (IOException e) {
      throw failed(e, e.toString());
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private PartlogException failed(Throwable e, String cause) {
    return PartlogException.caused(e, "COMMIT_FAILED", "txn", txn, "topic", plan.topic(), "root", store.root(), "cause", cause);
  }

  private boolean isDone(State state, List<Segment> segments) {
    if (query != null && state.epoch(query.id()).orElse(-1) >= query.epoch()) {
      warn("topic {} under {} holds {} of {} already; {} records of a repeated write are skipped", plan.topic(), store.root(),
          state.epoch(query.id()).getAsLong(), query.id(), segments.stream().mapToLong(Segment::records).sum());
      requireDurable(state);
      return true;
    }
    if (state.isOf(txn)) {
      requireDurable(state);
      return true;
    }
    return segments.isEmpty() && query == null;
  }

  /** The process that put the version of this epoch, or of this transaction, may have died before it synced the folder. */
  private void requireDurable(State state) {
    Throwable last = null;
    for (int syncs = 0; syncs < PUTS_MAX && !(last instanceof SyncFailedException); syncs++) {
      try {
        store.flush(Names.topicFolder(plan.topic()));
        return;
      } catch (Throwable e) {
        last = e;
      }
      interrupted |= Thread.interrupted();
      backOff();
    }
    if (state.isOf(txn)) {
      throw unknown(state.version(), last);
    }
    throw failed(last,
        "epoch " + query.epoch() + " of " + query.id() + " is there already, but its folder cannot be synced, so it may be lost: " + last);
  }

  private void requirePlanned(State state) {
    if (plan.topicId() != null && !plan.topicId().equals(state.topicId())) {
      throw PartlogException.of("TOPIC_RECREATED", "topic", plan.topic(), "root", store.root(), "found", state.topicId(), "expected",
          plan.topicId());
    }
    if (!state.config().routing().equals(plan.config().routing())) {
      throw changed(state.config().routing(), plan.config().routing());
    }
    if (plan.topicId() == null) {
      // Another writer created it meanwhile: the batches here were made by limits and times that nobody set for it.
      plan.config().entries().forEach((key, expected) -> {
        String found = state.config().entries().get(key);
        if (!expected.equals(found)) {
          throw changed(key + " " + found, key + " " + expected);
        }
      });
    }
    if (plan.plannedVersion() < state.horizon()) {
      throw PartlogException.of("WRITE_EXPIRED", "topic", plan.topic(), "root", store.root(), "planned", plan.plannedVersion(), "horizon",
          state.horizon());
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
      try (FileReader reader = store.open(name)) {
        if (reader.bytes() != file.getValue()) {
          throw PartlogException.of("FILE_LENGTH", "file", name, "found", reader.bytes(), "expected", file.getValue(), "root",
              store.root());
        }
      } catch (NoSuchFileException e) {
        throw PartlogException.caused(e, "FILE_NOT_SHARED", "file", name, "root", store.root());
      }
    }
    if (!expected.isEmpty()) {
      // Tasks sync what they make; an attempt that died may have made the data folder and not come to its sync.
      store.flush(Names.topicFile(plan.topic(), Names.DATA));
    }
  }

  private Version version(Optional<State> state, List<Segment> segments) {
    if (state.isEmpty() && plan.topicId() != null) {
      throw PartlogException.of("TOPIC_RECREATED", "topic", plan.topic(), "root", store.root(), "found", "none", "expected",
          plan.topicId());
    }
    long[] starts = state.map(State::starts).orElseGet(() -> new long[plan.config().partitions()]);
    long[] ends = state.map(State::ends).orElseGet(starts::clone);
    List<Segment> added = new ArrayList<>();
    for (Segment segment : segments) {
      int p = segment.partition();
      added.add(new Segment(p, segment.file(), segment.position(), segment.bytes(), ends[p], ends[p] + segment.records(), segment.records(),
          segment.batches(), segment.minTimestamp(), segment.maxTimestamp(), segment.dense(), segment.routed(), segment.ordered(),
          segment.headerCrc()));
      ends[p] += segment.records();
    }
    return new Version(plan.topic(), state.map(State::topicId).orElseGet(() -> Names.identity(random)),
        state.map(s -> s.version() + 1).orElse(0L), txn, state.map(State::hash).orElse(null), Math.max(0, clock.millis()),
        segments.isEmpty() && query == null ? "create" : "write", query, state.map(State::horizon).orElse(0L),
        state.map(State::boundary).orElse(0L), state.isPresent() ? Map.of() : plan.config().entries(), starts, ends, List.of(), added);
  }

  private Put put(Version version) {
    String name = Names.topicFile(plan.topic(), Names.versionFile(version.version()));
    String temporary = Names.topicFile(plan.topic(), Names.temporary(txn, Names.versionFile(version.version())));
    byte[] bytes = bytes(version);
    Throwable failure = null;
    for (int puts = 0; puts < PUTS_MAX; puts++) {
      putTried = true;
      try {
        store.putIfAbsent(name, temporary, bytes, Step.Put.COMMIT);
        return Put.DONE;
      } catch (Throwable e) { // An Error, too, may come after the link.
        failure = e;
      }
      interrupted |= Thread.interrupted();
      // The put may have taken effect and only its answer been lost, so what stands there now decides.
      Optional<Put> found = readBack(version.version(), failure);
      if (found.isPresent()) {
        return found.get();
      }
      if (failure instanceof SyncFailedException) {
        // A folder's lost write is told of once: the next put could succeed without it.
        throw failed(failure, String.valueOf(failure));
      }
      backOff();
    }
    // A store owes that a put which failed takes no effect later: absent after the last one is not done.
    throw failed(failure, String.valueOf(failure));
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
      throw failed(e, e.parameters().get("reason"));
    }
    return bytes;
  }

  /** How the put ended, by what stands in the version file now; empty if there is none. */
  private Optional<Put> readBack(long version, Throwable failure) {
    Throwable last = failure;
    // The kernel tells of a folder's lost write once: a second sync could succeed without it.
    boolean syncFailed = failure instanceof SyncFailedException;
    for (int reads = 0; reads < PUTS_MAX; reads++) {
      try {
        if (!isOurs(version)) {
          return Optional.of(Put.LOST);
        }
        if (!syncFailed) {
          store.flush(Names.topicFolder(plan.topic()));
          return Optional.of(Put.DONE);
        }
      } catch (NoSuchFileException absent) {
        return Optional.empty();
      } catch (Throwable e) {
        last = e;
        syncFailed |= e instanceof SyncFailedException;
      }
      if (syncFailed) {
        break;
      }
      interrupted |= Thread.interrupted();
      backOff();
    }
    throw unknown(version, last);
  }

  /**
   * Whether the version file holds this write. @throws PartlogException if it is there and cannot be read, @throws NoSuchFileException if
   * it is not
   */
  private boolean isOurs(long version) throws IOException {
    try {
      return log.parse(log.read(version), version).txn().equals(txn);
    } catch (PartlogException e) {
      if (e.id().equals("FORMAT_TOO_NEW")) {
        return false;
      }
      throw e;
    }
  }

  private PartlogException unknown(long version, Throwable cause) {
    return PartlogException.caused(cause, "COMMIT_UNKNOWN", "txn", txn, "version", version, "topic", plan.topic(), "root", store.root(),
        "file", Names.versionFile(version), "cause", String.valueOf(cause));
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
      Publisher.publish(store, state, txn, version.added());
      if (state.version() - Math.max(0, state.checkpointVersion()) >= Checkpoint.VERSIONS) {
        Checkpoint.write(store, state, txn);
        log.noteCheckpoint(state.version());
      }
    } catch (Throwable e) { // An Error, too, must not make a commit that is done look as if it had failed.
      warn("version {} of topic {} is committed; what follows a commit failed, and publish makes up for it", version.version(),
          plan.topic(), e);
    }
  }

  /** A logger may throw, and must not make a commit that is done look as if it had failed. */
  private static void warn(String text, Object... arguments) {
    try {
      LoggerFactory.getLogger(Committer.class).warn(text, arguments);
    } catch (Throwable e) {
      // There is nobody left to tell.
    }
  }
}
