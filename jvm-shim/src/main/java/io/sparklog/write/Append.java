package io.sparklog.write;

import io.sparklog.log.Change;
import io.sparklog.log.NextVersion;
import io.sparklog.log.Query;
import io.sparklog.log.Rebuilt;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.routing.Routing;
import io.sparklog.routing.SlotTable;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;

/** The change that adds the records of a write to a topic, and creates the topic if it does not exist. FORMAT.md section 7. */
final class Append implements Change {
  private final Root root;
  private final TopicLog log;
  private final LogStore store;
  private final TopicPlan plan;
  private final boolean creates;
  private final Rebuilt rebuilt;
  private final String txn;
  private final Once once;
  private final List<TopicReport> tasks;
  private final RandomGenerator random;

  /** In the order of their offsets, which count from 0 in each of them; set by {@link #prepare}. */
  private List<Segment> segments;
  /** The choices of the plan, made once for all versions that may be lost to other writers; set by {@link #prepare}. */
  private List<SlotTable.SlotMoves> chosen;

  /**
   * @param txn the random identity of this write
   * @param once the facts that make the write exactly once
   * @param tasks the report of each task, by task
   * @param creates whether the topic must not exist
   * @param rebuilt whose records these are that the topic begins with; null: its own
   */
  Append(Root root, TopicPlan plan, String txn, Once once, List<TopicReport> tasks, boolean creates, Rebuilt rebuilt,
      RandomGenerator random) {
    this.root = root;
    this.log = root.topic(plan.topic());
    this.store = log.store();
    this.plan = plan;
    this.creates = creates;
    this.rebuilt = rebuilt;
    this.txn = txn;
    this.once = once;
    this.tasks = tasks;
    this.random = random;
  }

  @Override
  public void prepare() throws IOException {
    try {
      chosen = chosen();
      segments = PieceCollector.segments(store, plan, txn, tasks);
      requireFiles();
    } catch (NoSuchFileException e) {
      // A process that deletes files and folders of writes that have not ended makes sure first that these are refused.
      log.latest().ifPresent(latest -> plan.requireWanted(latest, store.root()));
      throw e;
    }
  }

  @Override
  public Optional<String> appliedIn(State newest) throws IOException {
    Query query = once.query();
    long records = segments.stream().mapToLong(Segment::records).sum();
    if (!once.isIn(log, newest, records)) {
      return Optional.empty();
    }
    Warnings.warn(Append.class, "topic {} under {} holds {} of {} already; {} records of a repeated write are skipped", plan.topic(),
        store.root(), newest.query(query.id()).get().epoch(), query.id(), records);
    return Optional.of("epoch " + query.epoch() + " of " + query.id());
  }

  @Override
  public Query query() {
    return once.query();
  }

  /** A write without records commits nothing, unless that creates the topic. */
  @Override
  public Optional<NextVersion> next(Optional<State> newest) throws IOException {
    boolean exists = newest.isPresent() && !newest.get().isDeleted();
    if (exists && creates) {
      throw log.exists();
    }
    if (segments.isEmpty() && exists) {
      return Optional.empty();
    }
    String operation = segments.isEmpty() ? "create" : "write";
    NextVersion next = exists ? extended(newest.get(), operation) : begun(newest, operation);
    bind(next, exists ? newest.get().routing() : plan.config().routing());
    segments.forEach(next::append);
    return Optional.of(next.apply(once.query()));
  }

  /** @param deleted the state of an earlier topic of the name, whose Kafka view is this topic's now; empty without an earlier topic */
  private NextVersion begun(Optional<State> deleted, String operation) throws IOException {
    if (plan.topicId() != null) {
      throw plan.recreated("none", store.root());
    }
    deleted.ifPresent(state -> plan.requireWanted(state, store.root()));
    return NextVersion.beginning(log, deleted, Names.identity(random), plan.config(), operation).rebuilt(rebuilt);
  }

  private NextVersion extended(State state, String operation) {
    plan.requireWanted(state, store.root());
    if (!state.router().admits(plan.router())) {
      throw changed(state.router().toString(), plan.router().toString());
    }
    if (plan.topicId() == null) {
      // Another writer has created it since: the batches here may be made with limits and timestamps of another configuration.
      plan.config().entries().forEach((key, expected) -> {
        String found = state.config().entries().get(key);
        if (!expected.equals(found)) {
          throw changed(key + " " + found, key + " " + expected);
        }
      });
    }
    return new NextVersion(state, operation);
  }

  /**
   * Binds the slots that the tasks used, unless others have bound them alike since.
   *
   * @throws PartlogException ROUTING_CHANGED if they have bound one to another partition
   */
  private void bind(NextVersion next, Routing newest) {
    List<SlotTable.SlotMoves> bound = new ArrayList<>();
    for (SlotTable.SlotMoves move : chosen) {
      int[] unbound = Arrays.stream(move.slots()).filter(slot -> isUnbound(newest.table(), slot, move.to())).toArray();
      if (unbound.length > 0) {
        bound.add(new SlotTable.SlotMoves(move.to(), unbound));
      }
    }
    if (!bound.isEmpty()) {
      next.routing(newest.binding(bound));
    }
  }

  private boolean isUnbound(SlotTable newest, int slot, int chosen) {
    int found = newest.partition(slot);
    if (found != SlotTable.UNBOUND && found != chosen) {
      throw changed("slot " + slot + " in partition " + found, "slot " + slot + " in partition " + chosen);
    }
    return found == SlotTable.UNBOUND;
  }

  /** The slots that the tasks used and that had no partition when the write was planned, with the partitions that they get. */
  private List<SlotTable.SlotMoves> chosen() {
    BitSet used = new BitSet();
    tasks.forEach(task -> task.usedSlots().addTo(used));
    BitSet[] chosen = new BitSet[plan.router().partitions()];
    used.stream().forEach(slot -> {
      int to = plan.router().place(slot);
      chosen[to] = chosen[to] == null ? new BitSet() : chosen[to];
      chosen[to].set(slot);
    });
    return IntStream.range(0, chosen.length)
        .filter(to -> chosen[to] != null)
        .mapToObj(to -> new SlotTable.SlotMoves(to, chosen[to].stream().toArray()))
        .toList();
  }

  /** Deletes the data files, and their folder. */
  @Override
  public void refused() {
    tasks.forEach(task -> delete(store, plan.topic(), task));
    delete(store, plan.topic(), PieceCollector.pool(plan, txn));
    try {
      store.deleteFolderIfEmpty(Names.topicFile(plan.topic(), plan.folder(txn)));
    } catch (IOException e) {
      Warnings.warn(Append.class, "left {} of topic {}", plan.folder(txn), plan.topic(), e);
    }
  }

  /** Deletes the data files that a task reports, which no version can name. */
  static void delete(LogStore store, String topic, TopicReport report) {
    for (TopicReport.Piece piece : report.pieces()) {
      if (piece instanceof TopicReport.Piece.InFile inFile) {
        delete(store, topic, inFile.segment().file());
      }
    }
  }

  private static void delete(LogStore store, String topic, String file) {
    try {
      store.delete(Names.topicFile(topic, file));
    } catch (IOException e) {
      Warnings.warn(Append.class, "left {} of topic {}", file, topic, e);
    }
  }

  @Override
  public void settled() {
    if (plan.topicId() == null) {
      root.listAgain();
    }
  }

  private void requireFiles() throws IOException {
    Map<String, Long> expected = new TreeMap<>();
    segments.forEach(segment -> expected.merge(Names.last(segment.file()), segment.endOfIndex(), Math::max));
    if (store.isRemote()) {
      expected.remove(Names.last(PieceCollector.pool(plan, txn))); // This process has just put it whole.
    }
    String folder = Names.topicFile(plan.topic(), plan.folder(txn));
    Map<String, Long> found = expected.isEmpty() ? Map.of() : store.lengths(folder, expected.keySet());
    for (Map.Entry<String, Long> file : expected.entrySet()) {
      String name = folder + "/" + file.getKey();
      Long bytes = found.get(file.getKey());
      if (bytes == null) {
        log.latest().ifPresent(latest -> plan.requireWanted(latest, store.root()));
        throw PartlogException.of("FILE_NOT_SHARED", "file", name, "root", store.root());
      }
      if (!bytes.equals(file.getValue())) {
        throw PartlogException.of("FILE_LENGTH", "file", name, "found", bytes, "expected", file.getValue(), "root", store.root());
      }
    }
    if (!expected.isEmpty()) {
      // One sync for the data folder, whichever task or attempt has made it.
      store.flush(Names.topicFile(plan.topic(), Names.DATA));
    }
  }

  private PartlogException changed(String found, String expected) {
    return PartlogException.of("ROUTING_CHANGED", "topic", plan.topic(), "root", store.root(), "found", found, "expected", expected);
  }
}
