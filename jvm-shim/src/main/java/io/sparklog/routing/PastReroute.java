package io.sparklog.routing;

import java.util.List;

/**
 * A re-route that has records from before it.
 *
 * @param cut by partition. If the partition gave or got slots: its end offset before the re-route, 0 for an added partition. Otherwise: its
 *     cut of the re-route before, 0 without such a re-route
 */
public record PastReroute(long version, long[] cut, List<SlotTable.SlotMoves> moved) {
  /** The cut in a partition, which later re-routes may have added. */
  public long cut(int partition) {
    return partition < cut.length ? cut[partition] : 0;
  }

  /** How many numbers it has, beside a limit. FORMAT.md annex A. */
  long numbers() {
    return cut.length + moved.stream().mapToLong(moves -> 1L + moves.slots().length).sum();
  }
}
