package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.sparklog.partition.KeyTable;
import io.sparklog.partition.Partitioner;
import io.sparklog.partition.Pins;
import io.sparklog.partition.SlotMoves;
import io.sparklog.partition.SlotTable;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class KeyHistoryTest {
  /** As many re-routes as a state can have, of one key and one slot: what each costs must not grow with those before it. */
  @Test
  void aKeyThatMovesAllTheTimeIsKnownInEachEpoch() {
    byte[] pinned = {1};
    byte[] other = {2};
    KeyTable first = KeyTable.of(SlotTable.modulo(4));
    int slot = first.slots().slot(Partitioner.MURMUR3, other);
    int home = first.slots().partition(slot);
    List<PastReroute> past = new ArrayList<>();
    for (int n = 0; n < 200_000; n++) {
      Pins pins = Pins.of(List.of(pinned), n % 3 == 2 ? Pins.ENDED : n % 3);
      past.add(new PastReroute(n, new long[4], List.of(new SlotMoves((home + 1 + n) % 4, new int[] {slot})), pins));
    }
    KeyHistory history = new KeyHistory(first, past);
    int own = first.partition(Partitioner.MURMUR3, pinned);
    for (int after = 0; after <= past.size(); after++) {
      assertEquals((home + after) % 4, history.partition(Partitioner.MURMUR3, other, after));
      int expected = after % 3 == 0 ? own : (after - 1) % 3;
      assertEquals(expected, history.partition(Partitioner.MURMUR3, pinned, after), "after " + after);
    }
  }
}
