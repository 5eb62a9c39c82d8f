package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.routing.Router;
import io.sparklog.segment.Names;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The field of a version that begins a topic with the records of another one, its origin. FORMAT.md section D.1.
 *
 * @param topic the origin
 * @param version of the origin, whose records these are
 * @param passed the frontiers, from old to new
 */
public record Rebuilt(String topic, String topicId, long version, List<Frontier> passed) {
  /** The most numbers in the frontiers of a version. FORMAT.md section 10. */
  private static final int NUMBERS_MAX = 1_000_000;

  /**
   * Offsets of both topics that correspond: both topics have the same records below them.
   *
   * @param origin by partition of the origin
   * @param own by partition of the topic
   */
  public record Frontier(long[] origin, long[] own) {}

  /** The most frontiers that a version may have, by the numbers of partitions of both topics. It is at least two. */
  public static int most(int originPartitions, int partitions) {
    return NUMBERS_MAX / (originPartitions + partitions);
  }

  ObjectNode toJson() {
    ObjectNode json = Json.MAPPER.createObjectNode();
    json.put("topic", topic).put("topicId", topicId).put("version", version);
    ArrayNode pairs = json.putArray("passed");
    for (Frontier frontier : passed) {
      ArrayNode pair = pairs.addArray();
      Arrays.stream(frontier.origin).forEach(pair.addArray()::add);
      Arrays.stream(frontier.own).forEach(pair.addArray()::add);
    }
    return json;
  }

  /** @param topicId of the version */
  static Rebuilt parse(JsonNode json, String topicId) throws Damaged {
    String origin = Json.text(json, "topic");
    Damaged.unless(Names.illegalTopic(origin).isEmpty(), "it was rebuilt from a topic whose name is illegal");
    String originId = Json.text(json, "topicId");
    Damaged.unless(Names.isIdentity(originId) && !originId.equals(topicId), "it was rebuilt from no topic, or from itself");
    List<Frontier> passed = new ArrayList<>();
    long numbers = 0;
    for (JsonNode pair : Json.array(json, "passed", NUMBERS_MAX)) {
      Damaged.unless(pair.isArray() && pair.size() == 2, "an entry of field passed is not a pair");
      Frontier frontier = new Frontier(offsets(pair.get(0)), offsets(pair.get(1)));
      Frontier before = passed.isEmpty() ? frontier : passed.get(passed.size() - 1);
      Damaged.unless(frontier.own.length == before.own.length && frontier.own.length > 0 && frontier.origin.length == before.origin.length
          && frontier.origin.length > 0, "an entry of field passed is of other partitions");
      Damaged.unless(isRisen(before.origin, frontier.origin) && isRisen(before.own, frontier.own), "an offset in field passed falls");
      numbers += frontier.origin.length + frontier.own.length;
      passed.add(frontier);
    }
    Damaged.unless(numbers <= NUMBERS_MAX, "field passed has " + numbers + " numbers, more than " + NUMBERS_MAX);
    Damaged.unless(!passed.isEmpty(), "field passed is empty");
    return new Rebuilt(origin, originId, Json.number(json, "version", 0), passed);
  }

  /** Whether the frontiers go from these log start offsets of the topic to these ends. */
  boolean leads(long[] starts, long[] ends) {
    return Arrays.equals(passed.get(0).own, starts) && Arrays.equals(passed.get(passed.size() - 1).own, ends);
  }

  private static long[] offsets(JsonNode array) throws Damaged {
    Damaged.unless(array.isArray() && array.size() <= Router.PARTITIONS_MAX, "an entry of field passed is not a pair of arrays");
    long[] offsets = new long[array.size()];
    for (int p = 0; p < offsets.length; p++) {
      offsets[p] = Json.number(array.get(p), "passed", 0, Long.MAX_VALUE);
    }
    return offsets;
  }

  private static boolean isRisen(long[] before, long[] after) {
    for (int p = 0; p < after.length; p++) {
      if (after[p] < before[p]) {
        return false;
      }
    }
    return true;
  }
}
