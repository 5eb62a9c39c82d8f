package io.sparklog.catalog;

import io.sparklog.admin.Administration;
import io.sparklog.admin.Changed;
import io.sparklog.admin.Vacuum;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.merge.MergeCounts;
import io.sparklog.merge.Merging;
import io.sparklog.read.SlotKeys;
import io.sparklog.segment.Names;
import io.sparklog.spec.Option;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.StoreCheck;
import io.sparklog.transfer.KafkaExport;
import io.sparklog.transfer.Rebuild;
import io.sparklog.upkeep.Retention;
import io.sparklog.upkeep.RetentionTerms;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.upkeep.Uninterrupted;
import io.sparklog.view.KafkaView;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Procedures that change a topic, or write something else. */
final class Operations {
  private static final SecureRandom RANDOM = new SecureRandom();

  private static final Clock CLOCK = Clock.systemUTC();

  /** The bytes of a batch before compression if a write does not say otherwise. */
  private static final int BATCH_BYTES = Options.of(Map.of(), Options.Side.WRITE).integer("batch.size");

  /** The memory of a write if it does not say otherwise. */
  private static final long BUFFER_BYTES = Options.of(Map.of(), Options.Side.WRITE).number("write.buffer.bytes");

  /** The bytes read of each partition to find the keys of a slot. */
  private static final long SAMPLE_BYTES = 32L << 20;

  private Operations() {}

  private static Administration administration(Call call) {
    return new Administration(work(call));
  }

  private static TopicWork work(Call call) {
    return work(call.log());
  }

  static TopicWork work(TopicLog log) {
    return new TopicWork(log, CLOCK, RANDOM);
  }

  /** A new identity for a topic. */
  static String identity() {
    return Names.identity(RANDOM);
  }

  static void deleteRecords(Call call) {
    Map<Integer, Long> offsets = call.arguments().value("offsets");
    boolean dryRun = call.arguments().bool("dry_run");
    Changed changed = call.arguments()
        .asArgument("keep", () -> administration(call).deleteRecords(call.arguments().value("offsets"), call.keep(), dryRun));
    for (int partition : offsets.keySet()) {
      long before = changed.was().start(partition);
      long after = changed.is().start(partition);
      call.row(partition, before, after, changed.is().end(partition), after - before, call.keep().get(partition));
    }
  }

  static void addPartitions(Call call) {
    int partitions = (int) call.arguments().number("partitions");
    Changed changed = call.arguments()
        .asArgument("partitions", () -> administration(call).addPartitions(partitions, when(call), call.arguments().bool("dry_run")));
    for (Changed.Slots slots : changed.slots()) {
      call.row(changed.was().partitions(), Math.max(changed.is().partitions(), changed.weights().length), slots.partition(), slots.before(),
          slots.after(), slots.moved());
    }
  }

  static void closePartitions(Call call) {
    List<Integer> partitions = call.arguments().value("partitions");
    boolean dryRun = call.arguments().bool("dry_run");
    rows(call, call.arguments().asArgument("partitions", () -> administration(call).closePartitions(partitions, when(call), dryRun)));
  }

  static void reroute(Call call) {
    boolean dryRun = call.arguments().bool("dry_run");
    SortedMap<Integer, Long> weights = call.arguments().value("weights");
    rows(call, call.arguments().asArgument("weights", () -> administration(call).reroute(weights, when(call), dryRun)));
  }

  /** Moves slots. The sample of newest records is read before the move: a call that cannot read it changes nothing. */
  static void moveSlots(Call call) throws IOException {
    State state = call.toChange();
    List<Arguments.NamedMove> named = call.arguments().value("moves");
    TreeMap<Integer, Integer> moves = call.arguments().asArgument("moves", () -> bySlot(named, state));
    Changed planned = moved(call, state, moves, true);
    Map<Integer, Map<ByteBuffer, Long>> newest = SlotKeys.of(call.root(), state, moves.navigableKeySet(), SAMPLE_BYTES);
    Changed changed = call.arguments().bool("dry_run") ? planned : moved(call, state, moves, false);
    Map<Arguments.NamedMove, Long> own = new HashMap<>();
    for (Arguments.NamedMove move : named) {
      if (move.key() != null) {
        own.put(move, Optional.ofNullable(newest.get(move.slot(state)).remove(ByteBuffer.wrap(move.key()))).orElse(0L));
      }
    }
    for (Arguments.NamedMove move : named) {
      int slot = move.slot(state);
      Map<ByteBuffer, Long> others = newest.get(slot);
      call.row(slot, move.shownKey(), changed.was().routing().table().partition(slot), changed.is().routing().table().partition(slot),
          own.get(move), (long) others.size(), others.values().stream().mapToLong(count -> count).sum());
    }
  }

  /** By slot, the partition that it moves to. @throws PartlogException OPTION_VALUE for a slot that moves to two partitions */
  private static TreeMap<Integer, Integer> bySlot(List<Arguments.NamedMove> named, State state) {
    TreeMap<Integer, Integer> moves = new TreeMap<>();
    for (Arguments.NamedMove move : named) {
      Integer other = moves.put(move.slot(state), move.to());
      if (other != null && other != move.to()) {
        throw Option.invalidValue("moves", move.shownKey() + " => " + move.to(),
            "another key of slot " + move.slot(state) + " moves to partition " + other + ": name one partition for both");
      }
    }
    return moves;
  }

  private static Changed moved(Call call, State state, SortedMap<Integer, Integer> moves, boolean dryRun) {
    return call.arguments().asArgument("moves", () -> administration(call).move(state, moves, dryRun));
  }

  static void rebuild(Call call) throws IOException {
    Rebuild rebuild = Rebuild.planned(call.root(), call.topic(), call.arguments().text("to"), (int) call.arguments().number("partitions"));
    State origin = rebuild.origin();
    long[] ends = call.arguments().bool("dry_run") ? null : rebuild.run(BATCH_BYTES, BUFFER_BYTES, CLOCK, RANDOM);
    int rows = (int) Math.max(origin.partitions(), call.arguments().number("partitions"));
    for (int p = 0; p < rows; p++) {
      boolean isRead = p < origin.partitions();
      call.row(p, origin.version(), isRead ? Long.valueOf(origin.start(p)) : null, isRead ? Long.valueOf(origin.end(p)) : null,
          ends == null || p >= ends.length ? null : Long.valueOf(ends[p]));
    }
  }

  private static Administration.RerouteTime when(Call call) {
    return Administration.RerouteTime.valueOf(call.arguments().text("when").toUpperCase(Locale.ROOT));
  }

  private static void rows(Call call, Changed changed) {
    int[] weights = changed.weights();
    for (Changed.Slots slots : changed.slots()) {
      call.row(slots.partition(), weights[slots.partition()], slots.before(), slots.after(), slots.moved());
    }
  }

  static void setConfig(Call call) {
    Map<String, String> config = call.arguments().value("config");
    Changed changed = administration(call).configure(config);
    for (String key : config.keySet()) {
      call.row(key, changed.was().config().get(key), changed.is().config().get(key));
    }
  }

  static void deleteTopic(Call call) {
    State was = administration(call).delete(call.arguments().bool("dry_run")).was();
    call.root().listAgain();
    Listings.Totals totals = Listings.Totals.of(was);
    call.row(was.topicId(), was.partitions(), totals.records(), totals.segments(), totals.bytes());
  }

  static void merge(Call call) throws IOException {
    Listings.Totals before = Listings.Totals.of(call.toChange());
    boolean rebatch = call.arguments().bool("rebatch");
    Long asked = call.arguments().value("batch_size");
    int batchBytes = asked == null ? BATCH_BYTES : asked.intValue();
    if (call.arguments().bool("dry_run")) {
      MergeCounts would = Merging.planned(call.log(), rebatch ? batchBytes : 0);
      // How large new batches are is known only when they are made.
      Long segments = rebatch ? null : Long.valueOf(before.segments() - would.replaced() + would.by());
      Long batches = rebatch ? null : Long.valueOf(before.batches());
      Long bytes = rebatch ? null : Long.valueOf(before.bytes());
      call.row(before.segments(), segments, before.batches(), batches, before.bytes(), bytes, would.bytes());
      return;
    }
    MergeCounts done = work(call).merge(rebatch ? batchBytes : 0);
    Listings.Totals after = Listings.Totals.of(Uninterrupted.run(call::state));
    call.row(before.segments(), after.segments(), before.batches(), after.batches(), before.bytes(), after.bytes(), done.bytes());
  }

  static void expire(Call call) throws IOException {
    State before = call.toChange();
    Long retentionMs = call.arguments().value("retention_ms");
    Long retentionBytes = call.arguments().value("retention_bytes");
    RetentionTerms terms = call.arguments()
        .asArgument("keep", () -> RetentionTerms.of(before, call.root().store().root(), retentionMs, retentionBytes, call.keep()));
    List<Retention.Expired> expired;
    if (call.arguments().bool("dry_run")) {
      expired = Retention.expired(before, terms, CLOCK.millis());
    } else {
      expired = work(call).expire(before, terms);
    }
    Map<Integer, Retention.Expired> by = expired.stream().collect(Collectors.toMap(Retention.Expired::partition, each -> each));
    State state = Uninterrupted.run(call::state);
    for (int partition = 0; partition < state.partitions(); partition++) {
      long start = state.start(partition);
      Retention.Expired deleted = by.getOrDefault(partition, new Retention.Expired(partition, start, start, 0, 0));
      call.row(partition, deleted.before(), deleted.start(), state.end(partition), deleted.records(), call.keep().get(partition));
    }
  }

  static void vacuum(Call call) {
    Vacuum vacuum = new Vacuum(work(call));
    long before = call.toChange().horizon();
    Vacuum.Vacuumed done = call.arguments()
        .asArgument("older_than", () -> vacuum.run(call.arguments().value("older_than"), call.arguments().bool("dry_run")));
    call.row((long) done.files().size(), done.bytes(), before, done.horizon());
  }

  static void publish(Call call) {
    call.toChange();
    call.row(KafkaView.publish(call.log(), identity()));
  }

  static void export(Call call) {
    State state = call.state();
    List<KafkaExport.Exported> exported = call.arguments()
        .asArgument("to", () -> KafkaExport.export(call.log(), state, call.arguments().text("to"), Names.identity(RANDOM)));
    for (KafkaExport.Exported each : exported) {
      call.row(each.partition(), each.folder(), each.start(), each.end(), each.segments(), each.files(), each.bytes());
    }
  }

  static void checkStore(Call call) {
    int keys = (int) call.arguments().number("keys");
    long begun = System.nanoTime();
    StoreCheck.PutCounts checked = StoreCheck.run(call.root().store(), Names.PROBE, keys);
    double seconds = Math.round((System.nanoTime() - begun) / 1e6) / 1e3;
    call.row((long) keys, checked.winners(), checked.losers(), checked.unanswered(), seconds);
  }
}
