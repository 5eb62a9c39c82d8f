package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.segment.Segment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The newest batches of each producer, by which a writer knows a batch that is sent again. FORMAT.md section 5.9. Never changes.
 *
 * @param last by partition and producer
 */
record Producers(SortedMap<Producer, Last> last) {
  static final Producers NONE = new Producers(new TreeMap<>());

  /** Sequences are below this number, and the sequence after the last one is 0. */
  private static final long SEQUENCES = 1L << 31;

  private static final int BATCHES_KEPT = 5;
  /** The most entries of a version or a checkpoint. */
  static final int PRODUCERS_MAX = 1_000_000;
  private static final String EXPIRATION = "producer.id.expiration.ms";
  private static final String EXPIRATION_MS = "86400000";

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

    private static ProducerBatch parse(JsonNode first, JsonNode base, JsonNode end) throws Damaged {
      long at = Json.number(base, "base", 0, Long.MAX_VALUE - 1);
      long most = Math.min(Long.MAX_VALUE - at, SEQUENCES - 1) + at;
      return new ProducerBatch(Json.number(first, "first", 0, SEQUENCES - 1), at, Json.number(end, "end", at + 1, most));
    }
  }

  /** The last batches of a producer in a partition, from old to new. @param time of the version with the newest, in ms since 1970 */
  record Last(int epoch, long time, List<ProducerBatch> batches) {
    private ProducerBatch newest() {
      return batches.get(batches.size() - 1);
    }
  }

  /** A batch of a producer that a version adds. */
  record Sent(Producer producer, int epoch, ProducerBatch batch) {
    private ObjectNode toJson() {
      return Json.MAPPER.createObjectNode()
          .put("partition", producer.partition)
          .put("id", producer.id)
          .put("epoch", epoch)
          .put("first", batch.first)
          .put("base", batch.base)
          .put("end", batch.end);
    }
  }

  static ArrayNode toJson(List<Sent> sent) {
    ArrayNode json = Json.MAPPER.createArrayNode();
    sent.forEach(each -> json.add(each.toJson()));
    return json;
  }

  /** The field of a version that adds these segments. */
  static List<Sent> parse(JsonNode json, int partitions, List<Segment> added) throws Damaged {
    Map<Integer, TreeMap<Long, Segment>> segments = new HashMap<>();
    added.forEach(segment -> segments.computeIfAbsent(segment.partition(), any -> new TreeMap<>()).put(segment.base(), segment));
    Map<Integer, Long> ends = new HashMap<>();
    List<Sent> found = new ArrayList<>();
    for (JsonNode entry : json.has("producers") ? Json.array(json, "producers", PRODUCERS_MAX) : Json.MAPPER.createArrayNode()) {
      Producer producer = key(entry, partitions);
      ProducerBatch batch = ProducerBatch.parse(Json.field(entry, "first"), Json.field(entry, "base"), Json.field(entry, "end"));
      String where = "a batch of partition " + producer.partition + " at offset " + batch.base;
      Damaged.unless(batch.base >= ends.getOrDefault(producer.partition, 0L),
          "field producers has " + where + " that overlaps the one before it");
      ends.put(producer.partition, batch.end);
      Map.Entry<Long, Segment> segment = segments.getOrDefault(producer.partition, new TreeMap<>()).floorEntry(batch.base);
      Damaged.unless(segment != null && segment.getValue().end() >= batch.end,
          "field producers has " + where + " that is in no segment it adds");
      found.add(new Sent(producer, epoch(entry), batch));
    }
    return found;
  }

  private static Producer key(JsonNode json, int partitions) throws Damaged {
    return new Producer((int) Json.number(Json.field(json, "partition"), "partition", 0, partitions - 1), Json.number(json, "id", 0));
  }

  private static int epoch(JsonNode json) throws Damaged {
    return (int) Json.number(Json.field(json, "epoch"), "epoch", 0, Short.MAX_VALUE);
  }

  /** As the head of a checkpoint has them. @throws IllegalStateException if a checkpoint may not have so many: it would be damaged */
  ArrayNode toJson() {
    if (last.size() > PRODUCERS_MAX) {
      throw new IllegalStateException("the topic has " + last.size() + " producers, and a checkpoint has at most " + PRODUCERS_MAX);
    }
    ArrayNode json = Json.MAPPER.createArrayNode();
    last.forEach((producer, newest) -> {
      ObjectNode entry = json.addObject().put("partition", producer.partition).put("id", producer.id).put("epoch", newest.epoch);
      ArrayNode batches = entry.put("time", newest.time).putArray("batches");
      newest.batches.forEach(batch -> batches.addArray().add(batch.first).add(batch.base).add(batch.end));
    });
    return json;
  }

  /** The producers in the head of a checkpoint. @param ends of the state */
  static Producers parse(JsonNode head, long[] ends) throws Damaged {
    TreeMap<Producer, Last> found = new TreeMap<>();
    for (JsonNode entry : head.has("producers") ? Json.array(head, "producers", PRODUCERS_MAX) : Json.MAPPER.createArrayNode()) {
      Producer producer = key(entry, ends.length);
      List<ProducerBatch> batches = new ArrayList<>();
      for (JsonNode values : Json.array(entry, "batches", BATCHES_KEPT)) {
        Damaged.unless(values.isArray() && values.size() == 3, "field producers has something other than a batch");
        ProducerBatch batch = ProducerBatch.parse(values.get(0), values.get(1), values.get(2));
        ProducerBatch before = batches.isEmpty() ? null : batches.get(batches.size() - 1);
        Damaged.unless(before == null || batch.base >= before.end && batch.first == before.next(),
            "field producers has batches of producer " + producer.id + " that do not follow one another");
        batches.add(batch);
      }
      Damaged.unless(!batches.isEmpty() && batches.get(batches.size() - 1).end <= ends[producer.partition],
          "field producers has no batch of producer " + producer.id + ", or one that ends after its partition");
      Last other = found.put(producer, new Last(epoch(entry), Json.number(entry, "time", 0), batches));
      Damaged.unless(other == null, "field producers names one twice");
    }
    return new Producers(found);
  }

  /**
   * The producers after a version.
   *
   * @param ends of the partitions before it
   * @param time of the version
   * @param config of the topic after it
   */
  Producers after(List<Sent> sent, long[] ends, long time, Map<String, String> config) throws Damaged {
    String text = config.getOrDefault(EXPIRATION, EXPIRATION_MS);
    Damaged.unless(text.matches("[1-9][0-9]{0,18}") && (text.length() < 19 || text.compareTo(Long.toString(Long.MAX_VALUE)) <= 0),
        EXPIRATION + " is " + text);
    TreeMap<Producer, Last> found = new TreeMap<>(last);
    for (Sent each : sent) {
      ProducerBatch batch = each.batch;
      String what = "the batch of producer " + each.producer.id + " at offset " + batch.base + " of partition " + each.producer.partition;
      Damaged.unless(batch.base >= ends[each.producer.partition], what + " is below the end before the version");
      Last known = found.get(each.producer);
      Damaged.unless(follows(known, each.epoch, batch.first), what + " does not follow the one before it");
      found.put(each.producer, with(known, each.epoch, time, batch));
    }
    long expiration = Long.parseLong(text);
    found.values().removeIf(newest -> time - newest.time >= expiration);
    return new Producers(found);
  }

  /** Whether a batch with the first sequence {@code first} may come after these batches. @param known null without batches */
  static boolean follows(Last known, int epoch, long first) {
    return known == null || (epoch == known.epoch ? first == known.newest().next() : epoch > known.epoch && first == 0);
  }

  /** These batches and the next batch. @param known null without batches */
  static Last with(Last known, int epoch, long time, ProducerBatch batch) {
    List<ProducerBatch> batches = new ArrayList<>(known != null && known.epoch == epoch ? known.batches : List.of());
    batches.add(batch);
    return new Last(epoch, time, batches.subList(Math.max(0, batches.size() - BATCHES_KEPT), batches.size()));
  }
}
