package io.sparklog.commits;

import io.sparklog.format.Layout;
import java.nio.ByteBuffer;
import java.time.Clock;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The refused batches that their producers will send again. A topic that does not know a producer takes any batch as its first. So a later
 * batch of the producer must wait for the refused batch: it would be added before that batch. Safe for many threads.
 */
final class Resends {
  private static final int PRODUCERS_MAX = 100_000;

  /** Clients give a batch up after some minutes, and begin a new epoch. */
  private static final long KEPT_MS = 300_000;

  /**
   * The numbers that a producer gave to a batch. FORMAT.md annex B.
   *
   * @param id of the producer; −1 without a producer
   * @param first the sequence of the first record
   */
  record Sequence(long id, int epoch, int first) {
    private static final Sequence NONE = new Sequence(-1, -1, -1);

    /** The numbers of a batch that is not checked yet. */
    static Sequence of(ByteBuffer batch) {
      int at = batch.position();
      if (batch.remaining() < Layout.HEADER_BYTES || batch.get(at + Layout.MAGIC_AT) != Layout.MAGIC) {
        return NONE;
      }
      return new Sequence(batch.getLong(at + Layout.PRODUCER_ID_AT), batch.getShort(at + Layout.PRODUCER_EPOCH_AT),
          batch.getInt(at + Layout.BASE_SEQUENCE_AT));
    }

    /**
     * Whether a batch comes after another batch of the same producer and epoch, by their first sequences. Sequence 0 follows the largest
     * sequence, 2^31 - 1.
     */
    static boolean isAfter(int first, int otherFirst) {
      return first != otherFirst && (first - otherFirst & Integer.MAX_VALUE) < 1 << 30;
    }
  }

  private record Sender(String topic, int partition, long id, int epoch) {}

  /** A refused batch. @param first the sequence of its first record @param sinceMs when it was refused, in ms since 1970 */
  private record First(int first, long sinceMs) {}

  private final Clock clock;

  /** The first refused batch of each producer, from old to new. */
  private final Map<Sender, First> firsts = new LinkedHashMap<>();

  Resends(Clock clock) {
    this.clock = clock;
  }

  Clock clock() {
    return clock;
  }

  /** A batch has its answer. @param failure null if the topic has the batch */
  synchronized void answered(String topic, int partition, Sequence numbers, Throwable failure) {
    if (numbers.id() < 0) {
      return;
    }
    Sender producer = new Sender(topic, partition, numbers.id(), numbers.epoch());
    if (failure == null) {
      firsts.remove(producer);
    } else if (!(failure instanceof AppendRefused refused) || refused.refusal().isPassing()) {
      note(producer, numbers.first());
    }
  }

  /** The name of a topic is found. The refused batches of the producer, which gave the topic's id alone, are of this name. */
  synchronized void named(String topicId, String topic, int partition, Sequence numbers) {
    First known = firsts.remove(new Sender(topicId, partition, numbers.id(), numbers.epoch()));
    if (known != null) {
      note(new Sender(topic, partition, numbers.id(), numbers.epoch()), known.first);
    }
  }

  private void note(Sender producer, int first) {
    long now = clock.millis();
    First known = firsts.get(producer);
    if (known != null && isKept(known, now) && Sequence.isAfter(first, known.first)) {
      return;
    }
    firsts.remove(producer);
    firsts.put(producer, new First(first, now));
    while (firsts.size() > PRODUCERS_MAX || !isKept(firsts.values().iterator().next(), now)) {
      firsts.remove(firsts.keySet().iterator().next());
    }
  }

  private static boolean isKept(First first, long now) {
    return now - first.sinceMs < KEPT_MS;
  }

  /** Whether a batch of the producer before this batch was refused, and is not added yet. */
  synchronized boolean isAwaited(String topic, int partition, Sequence later) {
    First known = firsts.get(new Sender(topic, partition, later.id(), later.epoch()));
    return known != null && isKept(known, clock.millis()) && Sequence.isAfter(later.first(), known.first);
  }
}
