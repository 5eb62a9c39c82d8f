package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import java.util.ArrayList;
import java.util.List;

/**
 * The last batches of a producer in a partition, from old to new. FORMAT.md annex B. Never changes.
 *
 * @param time of the version with the newest, in ms since 1970
 */
record ProducerBatches(Producer producer, int epoch, long time, List<ProducerBatch> batches) {
  /** Sequences are below this number, and the sequence after the last one is 0. */
  private static final long SEQUENCES = 1L << 31;

  private static final int BATCHES_KEPT = 5;

  /** A producer in a partition. */
  record Producer(int partition, long id) implements Comparable<Producer> {
    @Override
    public int compareTo(Producer other) {
      return partition == other.partition ? Long.compare(id, other.id) : Integer.compare(partition, other.partition);
    }
  }

  /** A batch. @param first the sequence of its first record @param base its first offset @param end the offset after its last */
  record ProducerBatch(long first, long base, long end) {
    /** The sequence of the first record of the batch after this one. */
    private long next() {
      return (first + end - base) % SEQUENCES;
    }

    static ProducerBatch parse(JsonNode first, JsonNode base, JsonNode end) throws Damaged {
      long at = Json.number(base, "base", 0, Long.MAX_VALUE - 1);
      long most = Math.min(Long.MAX_VALUE - at, SEQUENCES - 1) + at;
      return new ProducerBatch(Json.number(first, "first", 0, SEQUENCES - 1), at, Json.number(end, "end", at + 1, most));
    }
  }

  /** As a line of a checkpoint. */
  ArrayNode line() {
    ArrayNode line = Json.MAPPER.createArrayNode().add(producer.partition).add(producer.id).add(epoch).add(time);
    batches.forEach(batch -> line.addArray().add(batch.first).add(batch.base).add(batch.end));
    return line;
  }

  private ProducerBatch newest() {
    return batches.get(batches.size() - 1);
  }

  /** The last batches in a line of a checkpoint. @param ends of the state @param before the producer of the line before; may be null */
  static ProducerBatches parse(JsonNode line, long[] ends, Producer before) throws Damaged {
    Damaged.unless(line.isArray() && line.size() > 4 && line.size() <= 4 + BATCHES_KEPT, "a line is not of a producer");
    Producer producer = new Producer((int) Json.number(line.get(0), "partition", 0, ends.length - 1),
        Json.number(line.get(1), "id", 0, Long.MAX_VALUE));
    String what = "the line of producer " + producer.id + " in partition " + producer.partition;
    Damaged.unless(before == null || before.compareTo(producer) < 0, what + " is not in order");
    List<ProducerBatch> batches = new ArrayList<>(1);
    for (int i = 4; i < line.size(); i++) {
      JsonNode values = line.get(i);
      Damaged.unless(values.isArray() && values.size() == 3, what + " has something other than a batch");
      ProducerBatch batch = ProducerBatch.parse(values.get(0), values.get(1), values.get(2));
      ProducerBatch earlier = batches.isEmpty() ? null : batches.get(batches.size() - 1);
      Damaged.unless(earlier == null || batch.base >= earlier.end && batch.first == earlier.next(),
          what + " has batches that do not follow one another");
      batches.add(batch);
    }
    Damaged.unless(batches.get(batches.size() - 1).end <= ends[producer.partition], what + " has a batch beyond the end");
    return new ProducerBatches(producer, (int) Json.number(line.get(2), "epoch", 0, Short.MAX_VALUE),
        Json.number(line.get(3), "time", 0, Long.MAX_VALUE), List.copyOf(batches));
  }

  /** Whether a batch with the first sequence {@code first} may come after these batches. @param known null without batches */
  static boolean follows(ProducerBatches known, int epoch, long first) {
    return known == null || (epoch == known.epoch ? first == known.newest().next() : epoch > known.epoch && first == 0);
  }

  /** These batches and the next batch. @param known null without batches */
  static ProducerBatches with(ProducerBatches known, Producer producer, int epoch, long time, ProducerBatch batch) {
    List<ProducerBatch> batches = new ArrayList<>(known != null && known.epoch == epoch ? known.batches : List.of());
    batches.add(batch);
    return new ProducerBatches(producer, epoch, time,
        List.copyOf(batches.subList(Math.max(0, batches.size() - BATCHES_KEPT), batches.size())));
  }
}
