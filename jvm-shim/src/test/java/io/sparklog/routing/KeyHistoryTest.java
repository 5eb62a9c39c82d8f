package io.sparklog.routing;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class KeyHistoryTest {
  /** As many re-routes as a state can have, of one slot: what each costs must not grow with those before it. */
  @Test
  void aKeyThatMovesAllTheTimeIsKnownInEachEpoch() {
    byte[] key = {2};
    SlotTable first = SlotTable.modulo(4);
    int slot = first.slot(Partitioner.MURMUR3, key);
    int home = first.partition(slot);
    List<PastReroute> past = new ArrayList<>();
    for (int n = 0; n < 200_000; n++) {
      past.add(new PastReroute(n, new long[4], List.of(new SlotTable.SlotMoves((home + 1 + n) % 4, new int[] {slot}))));
    }
    KeyHistory history = new KeyHistory(first, past);
    for (int after = 0; after <= past.size(); after++) {
      assertEquals((home + after) % 4, history.partition(Partitioner.MURMUR3, key, after));
    }
  }
}
