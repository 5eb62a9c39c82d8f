package io.sparklog.log;

import io.sparklog.log.ProducerBatches.Producer;
import io.sparklog.log.ProducerBatches.ProducerBatch;
import io.sparklog.log.Producers.Sent;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Decides which batches of producers a version adds, one batch after another. FORMAT.md annex B. */
public final class Sequences {
  /** The answer for a batch. */
  public enum Verdict {
    /** The version adds the batch. */
    NEW,
    /** The topic has the batch already, at the base offset of the decision. */
    REPEATED,
    /** Batches before it are missing. */
    OUT_OF_ORDER,
    /** The topic has a higher epoch of the producer. */
    OLD_EPOCH
  }

  /** @param base the offset of the first record; of no meaning for a batch that is refused */
  public record Decision(Verdict answer, long base) {}

  private final Producers before;
  private final Map<Producer, ProducerBatches> after = new HashMap<>();
  private final List<Sent> sent = new ArrayList<>();

  /** @param newest the state that the version extends, with its producers */
  public Sequences(State newest) {
    this(newest.producers());
  }

  Sequences(Producers before) {
    this.before = before;
  }

  /** Whether the topic has a batch of the producer in the partition, or the version adds one. */
  public boolean knows(int partition, long id) {
    Producer producer = new Producer(partition, id);
    return after.containsKey(producer) || before.last(producer) != null;
  }

  /**
   * Decides about the next batch of a partition. If the batch is new, the version is expected to add it.
   *
   * @param first the sequence of its first record
   * @param base the offset that the version would give it
   */
  public Decision next(int partition, long id, int epoch, long first, int records, long base) {
    Producer producer = new Producer(partition, id);
    ProducerBatches known = after.getOrDefault(producer, before.last(producer));
    if (known != null && epoch < known.epoch()) {
      return new Decision(Verdict.OLD_EPOCH, -1);
    }
    Optional<ProducerBatch> repeated = find(producer, epoch, first, records);
    if (repeated.isPresent()) {
      return new Decision(Verdict.REPEATED, repeated.get().base());
    }
    if (!ProducerBatches.follows(known, epoch, first)) {
      return new Decision(Verdict.OUT_OF_ORDER, -1);
    }
    ProducerBatch batch = new ProducerBatch(first, base, base + records);
    after.put(producer, ProducerBatches.with(known, producer, epoch, 0, batch));
    sent.add(new Sent(producer, epoch, batch));
    return new Decision(Verdict.NEW, base);
  }

  /** Whether the topic has the batch, or the version adds it. */
  public boolean has(int partition, long id, int epoch, long first, int records) {
    return find(new Producer(partition, id), epoch, first, records).isPresent();
  }

  private Optional<ProducerBatch> find(Producer producer, int epoch, long first, int records) {
    ProducerBatches known = after.getOrDefault(producer, before.last(producer));
    return known == null || epoch != known.epoch()
        ? Optional.empty()
        : known.batches().stream().filter(batch -> batch.first() == first && batch.end() - batch.base() == records).findFirst();
  }

  /** The new batches, in the order of the decisions. */
  List<Sent> sent() {
    return sent;
  }
}
