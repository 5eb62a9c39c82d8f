package io.sparklog.commits;

import io.sparklog.format.BatchHeader;
import io.sparklog.log.Change;
import io.sparklog.log.NextVersion;
import io.sparklog.log.Sequences;
import io.sparklog.log.State;
import io.sparklog.log.Step;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentBuilder;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * The change that adds all batches that wait, in one data file and one version. Each state that the version may extend decides again about
 * each batch: another program may have added the batch. FORMAT.md section C.2 and annex B.
 */
final class GroupCommit implements Change {
  private final TopicLog log;
  private final List<Arrival> arrivals;
  private final DataFolder folder;
  private final Resends resends;
  private final boolean keysAnywhere;
  private final Optional<State> planned;

  /** The outcome of each arrival by the last state that was asked: an {@link AppendResult} or a {@link AppendRefused}. */
  private List<Object> outcomes;
  /** The batches of the data file. */
  private List<Placed> written = List.of();
  private final List<Segment> segments = new ArrayList<>();
  private final List<String> files = new ArrayList<>();
  /** The data file of the version that was asked for last; null if there was nothing to add. */
  private String named;
  private boolean refused;

  /**
   * Batches of one partition that wait for their commit.
   *
   * @param bytes that they take
   * @param checked is complete when they are checked; {@link AppendRefused} if they may not be added
   * @param done is complete when they are durable; {@link AppendRefused} if they are not added
   * @param sinceMs when they came, in ms since 1970
   */
  record Arrival(int partition, long bytes, CompletableFuture<PreparedAppend> checked, CompletableFuture<AppendResult> done,
      long sinceMs) {}

  /** A batch that the version adds. @param routed whether the topic puts each of its keys there */
  private record Placed(int partition, PreparedAppend.PreparedBatch batch, boolean routed) {}

  /** The batches that a version after a state adds. @param starts the log start offsets that rise, by partition */
  private record Plan(List<Placed> batches, Map<Integer, Long> starts, Sequences sequences, boolean isRepeated) {}

  /**
   * @param arrivals in the order of their offsets; all are checked
   * @param keysAnywhere as in {@link CommitSettings}
   * @param planned the state of a moment ago
   */
  GroupCommit(TopicLog log, List<Arrival> arrivals, DataFolder folder, Resends resends, boolean keysAnywhere, Optional<State> planned) {
    this.log = log;
    this.arrivals = arrivals;
    this.folder = folder;
    this.resends = resends;
    this.keysAnywhere = keysAnywhere;
    this.planned = planned;
  }

  @Override
  public boolean needsProducers() {
    return true;
  }

  @Override
  public void prepare() throws IOException {
    if (planned.isPresent() && !planned.get().isDeleted() && planned.get().knowsProducers()) {
      write(planned.get(), plan(planned.get()).batches());
    }
  }

  @Override
  public Optional<NextVersion> next(Optional<State> newest) throws IOException {
    named = null;
    if (newest.isEmpty() || newest.get().isDeleted()) {
      AppendRefused gone = new AppendRefused(AppendRefused.Reason.UNKNOWN_TOPIC, "Topic " + log.topic() + " does not exist.");
      outcomes = new ArrayList<>();
      arrivals.forEach(arrival -> outcomes.add(gone));
      return Optional.empty();
    }
    State state = newest.get();
    Plan plan = plan(state);
    if (plan.batches().isEmpty() && plan.starts().isEmpty()) {
      if (plan.isRepeated()) {
        log.requireDurable(state); // The program that added them may have died before it did so.
      }
      return Optional.empty();
    }
    write(state, plan.batches());
    NextVersion next = new NextVersion(state, "write").send(plan.sequences());
    if (!plan.batches().isEmpty()) { // A compaction may leave nothing.
      segments.forEach(next::append);
      named = segments.get(0).file();
    }
    plan.starts().forEach(next::raiseStart);
    return Optional.of(next);
  }

  /** Decides about each arrival, in order. */
  private Plan plan(State state) {
    outcomes = new ArrayList<>();
    Sequences sequences = new Sequences(state);
    List<Placed> placed = new ArrayList<>();
    Map<Integer, Long> starts = new HashMap<>();
    boolean isRepeated = false;
    long[] ends = state.ends();
    Resends refused = new Resends(resends.clock()); // Their clients, and the common resends, hear of them after the commit.
    for (Arrival arrival : arrivals) {
      PreparedAppend checked = arrival.checked().join();
      int p = arrival.partition();
      try {
        requireWanted(state, p, checked);
        requireFence(p, ends[p], checked.fence());
        boolean routed = !state.hasSlots() && isPlanned(state, checked);
        long base = ends[p];
        long end = ends[p];
        long time = -1;
        for (PreparedAppend.PreparedBatch batch : checked.batches()) {
          if (!isRepeated(sequences, p, batch.bytes())) { // The topic may have changed since it got the batch.
            requireAllowed(state, p, checked, batch);
          }
          Sequences.Decision decision = decision(sequences, refused, p, batch.bytes(), ends[p]);
          int count = BatchHeader.count(batch.bytes(), 0);
          if (decision.answer() == Sequences.Verdict.NEW) {
            placed.add(new Placed(p, batch, routed && batch.keys() == PreparedAppend.KeyHomes.ALL));
            ends[p] += count;
            end = ends[p];
            time = batch.logAppendTime();
          } else {
            isRepeated = true;
            base = decision.base();
            end = base + count;
          }
        }
        if (checked.fence() != null && checked.fence().replaces()) {
          starts.put(p, checked.fence().end());
        }
        outcomes.add(new AppendResult(base, end, state.start(p), time));
      } catch (AppendRefused e) {
        outcomes.add(e);
        checked.batches().forEach(batch -> refused.answered(log.topic(), p, Resends.Sequence.of(ByteBuffer.wrap(batch.bytes())), e));
      }
    }
    placed.sort(Comparator.comparingInt(Placed::partition)); // Stable: the order in a partition stays.
    return new Plan(placed, starts, sequences, isRepeated);
  }

  private void requireFence(int partition, long end, PreparedAppend.Fence fence) throws AppendRefused {
    if (fence != null && fence.end() != end) {
      throw new AppendRefused(AppendRefused.Reason.FENCED, "Partition " + partition + " of topic " + log.topic() + " under "
          + log.store().root() + " no longer ends at offset " + fence.end() + ": another process added records.");
    }
  }

  private void requireWanted(State state, int partition, PreparedAppend checked) throws AppendRefused {
    if (!state.topicId().equals(checked.topicId())) {
      throw new AppendRefused(AppendRefused.Reason.TOPIC_RECREATED, "Topic " + log.topic() + " was deleted, and another has its name.");
    }
    if (partition >= state.partitions()) {
      throw AppendRefused.unknownPartition(log.topic(), partition);
    }
  }

  private void requireAllowed(State state, int partition, PreparedAppend checked, PreparedAppend.PreparedBatch batch) throws AppendRefused {
    if (!state.router().isOpen(partition)) {
      throw new AppendRefused(AppendRefused.Reason.POLICY, "Partition " + partition + " of topic " + log.topic() + " is closed.");
    }
    boolean isFree = !state.hasSlots() || keysAnywhere || checked.router() == null || batch.keys() == PreparedAppend.KeyHomes.NONE;
    boolean isPlaced = batch.keys() != PreparedAppend.KeyHomes.ASTRAY && !state.config().bindsSlots() && isPlanned(state, checked);
    if (!isFree && !isPlaced) {
      throw new AppendRefused(AppendRefused.Reason.POLICY,
          "Topic " + log.topic()
              + " has slots, which give each key its partition, and clients of Kafka do not know them. Write keyed records with Spark or"
              + " `sparklog produce`; or copy the topic by CALL partlog.rebuild, and write to the copy; or start the server with"
              + " keys.in.any.partition=true, which ends the order by key.");
    }
  }

  /** Whether keys belong where they belonged when the batches were checked. */
  private static boolean isPlanned(State state, PreparedAppend checked) {
    return checked.router() != null && state.router().admits(checked.router());
  }

  private static boolean isRepeated(Sequences sequences, int partition, byte[] batch) {
    long id = BatchHeader.producerId(batch, 0);
    int epoch = BatchHeader.producerEpoch(batch, 0);
    return sequences.has(partition, id, epoch, BatchHeader.baseSequence(batch, 0), BatchHeader.count(batch, 0));
  }

  /** @param refused the batches that this version does not add */
  private Sequences.Decision decision(Sequences sequences, Resends refused, int partition, byte[] batch, long base) throws AppendRefused {
    long id = BatchHeader.producerId(batch, 0);
    if (id < 0) {
      return new Sequences.Decision(Sequences.Verdict.NEW, base);
    }
    int first = BatchHeader.baseSequence(batch, 0);
    short epoch = BatchHeader.producerEpoch(batch, 0);
    String what = "producer " + id + " in partition " + partition;
    Resends.Sequence numbers = new Resends.Sequence(id, epoch, first);
    boolean isAwaited = resends.isAwaited(log.topic(), partition, numbers) || refused.isAwaited(log.topic(), partition, numbers);
    if (!sequences.knows(partition, id) && isAwaited) {
      throw new AppendRefused(AppendRefused.Reason.OUT_OF_ORDER,
          "Sequence " + first + " of " + what + " comes before a batch that was refused. Send that batch again first.");
    }
    Sequences.Decision decision = sequences.next(partition, id, epoch, first, BatchHeader.count(batch, 0), base);
    switch (decision.answer()) {
      case OUT_OF_ORDER -> throw new AppendRefused(AppendRefused.Reason.OUT_OF_ORDER,
          "Sequence " + first + " of " + what + " does not follow its last batch.");
      case OLD_EPOCH -> throw new AppendRefused(AppendRefused.Reason.OLD_EPOCH, "Epoch " + epoch + " of " + what + " has ended.");
      default -> {
        return decision;
      }
    }
  }

  /** Writes the data file, unless it is there already. */
  private void write(State state, List<Placed> batches) throws IOException {
    if (batches.isEmpty() || batches.equals(written) && folder.serves(state)) {
      return;
    }
    Step.COMMIT_POOL.reached();
    files.add(folder.write(state, file -> lay(file, batches, state.config().segmentBytes())));
    written = batches;
  }

  /** Makes segments of the batches. @return their bytes */
  private List<byte[]> lay(String file, List<Placed> batches, int segmentBytes) {
    segments.clear();
    List<byte[]> parts = new ArrayList<>();
    SegmentBuilder open = null;
    int partition = -1;
    long position = 0;
    for (Placed each : batches) {
      byte[] bytes = each.batch().bytes();
      if (open != null && !(partition == each.partition() && open.fits(bytes, 0, segmentBytes))) {
        segments.add(open.segment());
        open = null;
      }
      if (open == null) {
        partition = each.partition();
        open = new SegmentBuilder(partition, file, position);
      }
      open.add(bytes, 0, each.batch().minTimestamp(), each.routed(), each.batch().ordered());
      parts.add(bytes);
      position += bytes.length;
    }
    segments.add(open.segment());
    return parts;
  }

  /** Whether the commit failed before it could add anything. */
  boolean isRefused() {
    return refused;
  }

  @Override
  public void refused() {
    refused = true;
    files.forEach(folder::delete);
  }

  @Override
  public void settled() {
    files.stream().filter(file -> !file.equals(named)).forEach(folder::delete);
    for (int i = 0; i < arrivals.size(); i++) {
      if (outcomes.get(i) instanceof AppendResult appended) {
        arrivals.get(i).done().complete(appended);
      } else {
        arrivals.get(i).done().completeExceptionally((AppendRefused) outcomes.get(i));
      }
    }
  }
}
