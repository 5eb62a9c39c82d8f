package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.partition.Router;
import io.sparklog.partition.SlotMoves;
import io.sparklog.partition.SlotTable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;

/**
 * The field of a version that gives slots to other partitions. FORMAT.md section 5.
 *
 * @param epoch the routing epoch from this version on
 * @param slots how many there are
 * @param weights by partition
 * @param moved by partition that takes them
 * @param table CRC-32C of the slot table after this version
 * @param asked in a note, which moves nothing: the weights to re-route to before the next write. Null otherwise
 */
public record Reroute(int epoch, int slots, int[] weights, List<SlotMoves> moved, int table, int[] asked) {

  ObjectNode toJson() {
    ObjectNode json = Json.MAPPER.createObjectNode();
    json.put("epoch", epoch).put("slots", slots).set("weights", numbers(weights));
    json.set("moved", toJson(moved));
    json.put("table", Integer.toUnsignedLong(table));
    putAsked(json, asked);
    return json;
  }

  static void putAsked(ObjectNode json, int[] asked) {
    if (asked != null) {
      json.set("asked", numbers(asked));
    }
  }

  /** The weights that a note asks for, of which there are at least as many as partitions; null if there is none. */
  static int[] asked(JsonNode json, int partitions) throws Damaged {
    if (!json.has("asked")) {
      return null;
    }
    int[] asked = ints(json, "asked", Router.PARTITIONS_MAX, SlotTable.WEIGHT_MAX);
    Damaged.unless(asked.length >= partitions && Arrays.stream(asked).anyMatch(weight -> weight > 0),
        "it asks for weights of fewer than " + partitions + " partitions, or to close all of them");
    return asked;
  }

  static ArrayNode toJson(List<SlotMoves> moved) {
    ArrayNode json = Json.MAPPER.createArrayNode();
    for (SlotMoves moves : moved) {
      ArrayNode entry = json.addArray().add(moves.to());
      Arrays.stream(moves.slots()).forEach(entry::add);
    }
    return json;
  }

  static ArrayNode numbers(int[] numbers) {
    ArrayNode json = Json.MAPPER.createArrayNode();
    Arrays.stream(numbers).forEach(json::add);
    return json;
  }

  /** @param partitions how many the topic has with this version */
  static Reroute parse(JsonNode json, int partitions) throws Damaged {
    int slots = (int) Json.number(Json.field(json, "slots"), "slots", 1, SlotTable.SLOTS_MAX);
    int[] weights = weights(json, partitions);
    List<SlotMoves> moved = moved(json, slots, partitions);
    for (SlotMoves moves : moved) {
      Damaged.unless(weights[moves.to()] > 0, "it moves slots to partition " + moves.to() + ", which is closed");
    }
    int[] asked = asked(json, partitions);
    Damaged.unless(asked == null || moved.isEmpty(), "it is a note, and moves slots");
    int epoch = (int) Json.number(Json.field(json, "epoch"), "epoch", asked == null ? 1 : 0, Integer.MAX_VALUE);
    return new Reroute(epoch, slots, weights, moved, (int) Json.number(Json.field(json, "table"), "table", 0, 0xffffffffL), asked);
  }

  static int[] weights(JsonNode json, int partitions) throws Damaged {
    int[] weights = ints(json, "weights", Router.PARTITIONS_MAX, SlotTable.WEIGHT_MAX);
    Damaged.unless(weights.length == partitions && Arrays.stream(weights).anyMatch(weight -> weight > 0),
        "the weights are not of " + partitions + " partitions, or all of these are closed");
    return weights;
  }

  /** Moves of slots below {@code slots} to partitions below {@code partitions}, each slot once. */
  static List<SlotMoves> moved(JsonNode json, int slots, int partitions) throws Damaged {
    List<SlotMoves> moved = new ArrayList<>();
    BitSet seen = new BitSet(slots);
    for (JsonNode entry : Json.array(json, "moved", partitions)) {
      Damaged.unless(entry.isArray() && entry.size() > 1, "an entry of field moved has no slots");
      int least = moved.isEmpty() ? 0 : moved.get(moved.size() - 1).to() + 1;
      int to = (int) Json.number(entry.get(0), "moved", least, partitions - 1);
      int[] its = new int[entry.size() - 1];
      for (int i = 0; i < its.length; i++) {
        its[i] = (int) Json.number(entry.get(i + 1), "moved", i == 0 ? 0 : its[i - 1] + 1, slots - 1);
        Damaged.unless(!seen.get(its[i]), "field moved moves slot " + its[i] + " twice");
        seen.set(its[i]);
      }
      moved.add(new SlotMoves(to, its));
    }
    return moved;
  }

  static int[] ints(JsonNode json, String name, int most, int greatest) throws Damaged {
    JsonNode array = Json.array(json, name, most);
    int[] ints = new int[array.size()];
    for (int i = 0; i < ints.length; i++) {
      ints[i] = (int) Json.number(array.get(i), name, 0, greatest);
    }
    return ints;
  }
}
