package io.sparklog.routing;

import java.util.List;

/**
 * A re-route that has records from before it.
 *
 * @param cut the end offset before it of each partition that gave or got slots, 0 of one that it added; of any other partition, its cut of
 *     the re-route before, 0 if there is none
 */
public record PastReroute(long version, long[] cut, List<SlotMoves> moved) {
  /** The cut in a partition, which later re-routes may have added. */
  public long cut(int partition) {
    return partition < cut.length ? cut[partition] : 0;
  }

  /** How many numbers it has, beside a limit. FORMAT.md section 13. */
  long numbers() {
    return cut.length + moved.stream().mapToLong(moves -> 1L + moves.slots().length).sum();
  }
}
