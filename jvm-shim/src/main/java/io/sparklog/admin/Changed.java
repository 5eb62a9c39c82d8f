package io.sparklog.admin;

import io.sparklog.log.State;
import io.sparklog.routing.SlotTable;
import java.util.List;
import java.util.stream.IntStream;

/** The states before and after a change that an operator asked for: the same one if nothing was to be changed. */
public record Changed(State was, State is) {
  /** How many slots a partition had and has. */
  public record Slots(int partition, int before, int after) {
    /** How many it gave or took: a re-route lets none do both. */
    public int moved() {
      return Math.abs(after - before);
    }
  }

  /** The weights that the change leads to, by partition. */
  public int[] weights() {
    return is.pendingWeights().orElse(is.routing().weights());
  }

  /** How the change moves the slots of each partition, at once or before the next write. */
  public List<Slots> slots() {
    SlotTable table = is.routing().table();
    int[] weights = weights();
    int[] before = was.routing().table().counts(weights.length);
    int[] after = (is.pendingWeights().isPresent() ? table.after(table.replan(weights)) : table).counts(weights.length);
    return IntStream.range(0, after.length).mapToObj(partition -> new Slots(partition, before[partition], after[partition])).toList();
  }
}
