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
 * The field of a version that gives slots to other partitions. FORMAT.md section 13.2.
 *
 * @param epoch the routing epoch from this version on
 * @param slots how many there are
 * @param weights by partition
 * @param moved by partition that takes them
 * @param table CRC-32C of the slot table after this version
 * @param asked in a note, which moves nothing: the weights to re-route to before the next write. Null otherwise
 * @param binds whether it is no re-route, and gives partitions to slots that have none
 * @param fill if it is no re-route, and says how slots are shared that are bound next. Null otherwise
 */
public record Reroute(int epoch, int slots, int[] weights, List<SlotMoves> moved, int table, int[] asked, boolean binds, Fill fill) {

  /** Whether slots move: it is neither a note, nor a binding, nor a fill. */
  boolean moves() {
    return asked == null && !binds && fill == null;
  }

  ObjectNode toJson() {
    ObjectNode json = Json.MAPPER.createObjectNode();
    json.put("epoch", epoch).put("slots", slots).set("weights", Json.array(weights));
    json.set("moved", toJson(moved));
    json.put("table", Integer.toUnsignedLong(table));
    putAsked(json, asked);
    if (binds) {
      json.put("binds", true);
    }
    if (fill != null) {
      json.set("fill", fill.toJson());
    }
    return json;
  }

  static void putAsked(ObjectNode json, int[] asked) {
    if (asked != null) {
      json.set("asked", Json.array(asked));
    }
  }

  /** The weights that a note asks for, of which there are at least as many as partitions; null if there is none. */
  static int[] asked(JsonNode json, int partitions) throws Damaged {
    if (!json.has("asked")) {
      return null;
    }
    int[] asked = Json.ints(json, "asked", Router.PARTITIONS_MAX, SlotTable.WEIGHT_MAX);
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
    boolean binds = json.has("binds");
    Damaged.unless(!binds || json.get("binds").booleanValue() && asked == null && !moved.isEmpty(),
        "field binds is not true, or it is a note, or binds nothing");
    Fill fill = Fill.parse(json, weights);
    Damaged.unless(fill == null || asked == null && moved.isEmpty(), "it has a fill, and is a note or moves slots");
    int epoch = (int) Json.number(Json.field(json, "epoch"), "epoch", 0, Integer.MAX_VALUE);
    int table = (int) Json.number(Json.field(json, "table"), "table", 0, 0xffffffffL);
    return new Reroute(epoch, slots, weights, moved, table, asked, binds, fill);
  }

  static int[] weights(JsonNode json, int partitions) throws Damaged {
    int[] weights = Json.ints(json, "weights", Router.PARTITIONS_MAX, SlotTable.WEIGHT_MAX);
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
}
