package io.sparklog.admin;

import io.sparklog.log.State;
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

  /** Of each partition, how the change moved its slots. */
  public List<Slots> slots() {
    int[] before = was.slots().table().counts(is.partitions());
    int[] after = is.slots().table().counts(is.partitions());
    return IntStream.range(0, after.length).mapToObj(partition -> new Slots(partition, before[partition], after[partition])).toList();
  }
}
