package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.partition.SlotTable;
import java.util.Arrays;

/**
 * How the slots that are bound next shall be shared among partitions. FORMAT.md section 13.2.
 *
 * @param until the time from which on it has no effect, in ms since 1970
 * @param shares by partition; a partition of share 0 gets none
 */
public record Fill(long until, int[] shares) {
  ObjectNode toJson() {
    ObjectNode json = Json.MAPPER.createObjectNode().put("until", until);
    json.set("shares", Json.array(shares));
    return json;
  }

  /** The field of a version or a checkpoint; null if it has none. @param weights of the partitions */
  static Fill parse(JsonNode of, int[] weights) throws Damaged {
    if (!of.has("fill")) {
      return null;
    }
    JsonNode json = of.get("fill");
    int[] shares = Json.ints(json, "shares", weights.length, SlotTable.WEIGHT_MAX);
    Damaged.unless(shares.length == weights.length && Arrays.stream(shares).anyMatch(share -> share > 0),
        "the shares of its fill are not of " + weights.length + " partitions, or all 0");
    for (int p = 0; p < shares.length; p++) {
      Damaged.unless(shares[p] == 0 || weights[p] > 0, "partition " + p + " has a share of its fill, and is closed");
    }
    return new Fill(Json.number(json, "until", 0), shares);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Fill fill && until == fill.until && Arrays.equals(shares, fill.shares);
  }

  @Override
  public int hashCode() {
    return 31 * Long.hashCode(until) + Arrays.hashCode(shares);
  }

  @Override
  public String toString() {
    return "shares " + Arrays.toString(shares) + " until " + until;
  }
}
