package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.log.ProducerBatches.Producer;
import io.sparklog.log.ProducerBatches.ProducerBatch;
import io.sparklog.segment.Segment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;

/**
 * The newest batches of each producer, by which a writer knows a batch that is sent again. FORMAT.md annex B. Never changes.
 *
 * @param tree null without producers
 */
record Producers(ProducerTree tree) {
  static final Producers NONE = new Producers(null);

  /** The most entries of a version or a checkpoint. */
  static final int PRODUCERS_MAX = 1_000_000;

  /** A batch of a producer that a version adds. */
  record Sent(Producer producer, int epoch, ProducerBatch batch) {
    private ObjectNode toJson() {
      return Json.MAPPER.createObjectNode()
          .put("partition", producer.partition())
          .put("id", producer.id())
          .put("epoch", epoch)
          .put("first", batch.first())
          .put("base", batch.base())
          .put("end", batch.end());
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
      String where = "a batch of partition " + producer.partition() + " at offset " + batch.base();
      Damaged.unless(batch.base() >= ends.getOrDefault(producer.partition(), 0L),
          "field producers has " + where + " that overlaps the one before it");
      ends.put(producer.partition(), batch.end());
      Map.Entry<Long, Segment> segment = segments.getOrDefault(producer.partition(), new TreeMap<>()).floorEntry(batch.base());
      Damaged.unless(segment != null && segment.getValue().end() >= batch.end(),
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

  int count() {
    return ProducerTree.size(tree);
  }

  /** The last batches of a producer in a partition; null without batches. */
  ProducerBatches last(Producer producer) {
    return ProducerTree.get(tree, producer);
  }

  /** Takes the last batches of all producers, by partition, then by id. */
  void forEach(Consumer<ProducerBatches> taker) {
    ProducerTree.forEach(tree, taker);
  }

  /** The producers that a checkpoint has, in its order. */
  static Producers of(List<ProducerBatches> sorted) {
    return new Producers(ProducerTree.of(sorted));
  }

  /**
   * The producers after a version.
   *
   * @param ends of the partitions before it
   * @param time of the version
   * @param config of the topic after it
   */
  Producers after(List<Sent> sent, long[] ends, long time, TopicConfig config) throws Damaged {
    ProducerTree found = tree;
    for (Sent each : sent) {
      ProducerBatch batch = each.batch;
      String what = "the batch of producer " + each.producer.id() + " at offset " + batch.base() + " of partition "
          + each.producer.partition();
      Damaged.unless(batch.base() >= ends[each.producer.partition()], what + " is below the end before the version");
      ProducerBatches known = ProducerTree.get(found, each.producer);
      Damaged.unless(ProducerBatches.follows(known, each.epoch, batch.first()), what + " does not follow the one before it");
      found = ProducerTree.with(found, ProducerBatches.with(known, each.producer, each.epoch, time, batch));
    }
    while (found != null
        && (time - found.oldest().time() >= config.producerExpirationMs() || ProducerTree.size(found) > config.producersMax())) {
      found = ProducerTree.without(found, found.oldest().producer());
    }
    return new Producers(found);
  }
}
