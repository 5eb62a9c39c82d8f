package io.sparklog.routing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;

/** The field of a version that gives partitions to slots. FORMAT.md section A.2. */
public sealed interface RoutingChange {
  /** The slots that get a partition, by the partition that takes them. */
  List<SlotTable.SlotMoves> moved();

  /** CRC-32C of the slot table after this version. */
  int table();

  /**
   * Moves slots to other partitions.
   *
   * @param epoch the routing epoch from this version on
   * @param slots how many there are
   * @param weights by partition
   */
  record Reroute(int epoch, int slots, int[] weights, List<SlotTable.SlotMoves> moved, int table) implements RoutingChange {
    @Override
    public ObjectNode toJson() {
      ObjectNode json = Json.MAPPER.createObjectNode().put("epoch", epoch).put("slots", slots);
      json.set("weights", Json.array(weights));
      return json.setAll(RoutingChange.super.toJson());
    }
  }

  /** Gives their first partition to slots that had none. Nothing else of the routing changes. */
  record Binding(List<SlotTable.SlotMoves> moved, int table) implements RoutingChange {
    @Override
    public ObjectNode toJson() {
      return RoutingChange.super.toJson().put("binds", true);
    }
  }

  default ObjectNode toJson() {
    ObjectNode json = Json.MAPPER.createObjectNode();
    json.set("moved", toJson(moved()));
    return json.put("table", Integer.toUnsignedLong(table()));
  }

  static ArrayNode toJson(List<SlotTable.SlotMoves> moved) {
    ArrayNode json = Json.MAPPER.createArrayNode();
    for (SlotTable.SlotMoves moves : moved) {
      ArrayNode entry = json.addArray().add(moves.to());
      Arrays.stream(moves.slots()).forEach(entry::add);
    }
    return json;
  }

  /** The field, which does not say how many partitions the topic has. */
  static RoutingChange parse(JsonNode json) throws Damaged {
    int table = table(json);
    if (json.has("binds")) {
      Damaged.unless(json.get("binds").booleanValue(), "field binds is not true");
      return new Binding(moved(json, SlotTable.SLOTS_MAX, Router.PARTITIONS_MAX), table);
    }
    int slots = (int) Json.number(Json.field(json, "slots"), "slots", 1, SlotTable.SLOTS_MAX);
    int epoch = (int) Json.number(Json.field(json, "epoch"), "epoch", 0, Integer.MAX_VALUE);
    int[] weights = weights(json);
    return new Reroute(epoch, slots, weights, moved(json, slots, weights.length), table);
  }

  static int table(JsonNode json) throws Damaged {
    return (int) Json.number(Json.field(json, "table"), "table", 0, 0xffffffffL);
  }

  static int[] weights(JsonNode json) throws Damaged {
    int[] weights = Json.ints(json, "weights", Router.PARTITIONS_MAX, SlotTable.WEIGHT_MAX);
    Damaged.unless(Arrays.stream(weights).anyMatch(weight -> weight > 0), "no partition has a weight, or all of them are closed");
    return weights;
  }

  /** Moves of slots below {@code slots} to partitions below {@code partitions}, each slot once. */
  static List<SlotTable.SlotMoves> moved(JsonNode json, int slots, int partitions) throws Damaged {
    List<SlotTable.SlotMoves> moved = new ArrayList<>();
    BitSet seen = new BitSet();
    for (JsonNode entry : Json.array(json, "moved", partitions)) {
      Damaged.unless(entry.isArray() && entry.size() > 1, "an entry of field moved has no slots");
      int least = moved.isEmpty() ? 0 : moved.get(moved.size() - 1).to() + 1;
      int to = (int) Json.number(entry.get(0), "moved", least, partitions - 1);
      int[] ofMove = new int[entry.size() - 1];
      for (int i = 0; i < ofMove.length; i++) {
        ofMove[i] = (int) Json.number(entry.get(i + 1), "moved", i == 0 ? 0 : ofMove[i - 1] + 1, slots - 1);
        Damaged.unless(!seen.get(ofMove[i]), "field moved moves slot " + ofMove[i] + " twice");
        seen.set(ofMove[i]);
      }
      moved.add(new SlotTable.SlotMoves(to, ofMove));
    }
    return moved;
  }
}
