package io.sparklog.routing;

import java.io.Serializable;
import java.util.Arrays;

/**
 * The routing epochs of a range of offsets of a partition. FORMAT.md section A.3.
 *
 * @param first the routing epoch of the first offset
 * @param rises the offsets in the range that have a higher routing epoch than the offset before them, ascending
 * @param risen the routing epoch from each of {@code rises} on
 */
public record RoutingEpochs(int first, long[] rises, int[] risen) implements Serializable {
  /** The routing epoch of an offset of the range. */
  public int at(long offset) {
    if (rises.length == 0 || offset < rises[0]) {
      return first;
    }
    int found = Arrays.binarySearch(rises, offset);
    return risen[found >= 0 ? found : -found - 2];
  }
}
