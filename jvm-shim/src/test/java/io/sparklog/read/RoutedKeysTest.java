package io.sparklog.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.segment.Segment;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Keys are looked for where they were routed, and hashed no more often than that takes. */
final class RoutedKeysTest {
  private static final int KEYS = 1000;

  private static byte[] key(int i) {
    return ("key-" + i).getBytes(StandardCharsets.UTF_8);
  }

  /** Two routing epochs: the second begins at offset 1 of each partition, and moves each key on by one partition. */
  private static final class Counted implements RoutedKeys.Homes {
    private final int partitions;
    private final Map<Integer, Integer> hashed = new HashMap<>();

    private Counted(int partitions) {
      this.partitions = partitions;
    }

    @Override
    public int reroutesBefore(int partition, long offset) {
      return offset < 1 ? 0 : 1;
    }

    @Override
    public int home(int reroutes, byte[] key) {
      hashed.merge(reroutes, 1, Integer::sum);
      return (Integer.parseInt(new String(key, 4, key.length - 4, StandardCharsets.UTF_8)) + reroutes) % partitions;
    }
  }

  private static boolean isMet(RecordFilter filter, int key) {
    return filter.isMet(0, 0, key(key), 0, key(key).length);
  }

  private static Segment segment(int partition, long base, boolean routed) {
    return new Segment(partition, "f", 0, 100, base, base + 1, 1, 1, 0, 0, Segment.Offsets.DENSE, routed, true, 0);
  }

  @Test
  void aKeyIsHashedOnceForEachRoutingEpoch() {
    int partitions = 64;
    Counted homes = new Counted(partitions);
    RoutedKeys routed = new RoutedKeys(homes);
    RecordFilter filter = Filter
        .all(List.of(Filter.key(IntStream.range(0, KEYS).mapToObj(RoutedKeysTest::key).toList()), Filter.offset(Intervals.of(0, 100))))
        .at("t", 0);
    for (int partition = 0; partition < partitions; partition++) {
      List<Segment> segments = List.of(segment(partition, 0, true), segment(partition, 1, true), segment(partition, 2, true));
      RecordFilter first = routed.in(segments.subList(0, 1), filter);
      RecordFilter later = routed.in(segments.subList(1, 3), filter);
      RecordFilter all = routed.in(segments, filter);
      for (int key = 0; key < KEYS; key++) {
        boolean isOfFirst = key % partitions == partition;
        boolean isOfLater = (key + 1) % partitions == partition;
        assertEquals(isOfFirst, isMet(first, key));
        assertEquals(isOfLater, isMet(later, key));
        assertEquals(isOfFirst || isOfLater, isMet(all, key));
      }
      RecordFilter anywhere = routed.in(List.of(segment(partition, 0, true), segment(partition, 1, false)), filter);
      assertTrue(isMet(anywhere, 0) && isMet(anywhere, 1), "a segment that is not routed may have any key");
    }
    assertEquals(Map.of(0, KEYS, 1, KEYS), homes.hashed);
  }

  @Test
  void setsOfKeysHaveTheirKeysAndNoOthers() {
    for (int size : new int[] {0, 1, 2, 3, 4, 5, 100, 5000}) {
      Set<Integer> members = new HashSet<>();
      IntStream.range(0, size).forEach(i -> members.add(3 * i));
      Keys keys = Keys.of(members.stream().map(RoutedKeysTest::key).toList());
      for (int i = 0; i < 3 * size + 3; i++) {
        assertEquals(members.contains(i), keys.contains(key(i), 0, key(i).length), "of " + size);
      }
      assertFalse(keys.contains(new byte[0], 0, 0));
      Keys more = keys.or(Keys.of(List.of(new byte[0], key(0))));
      assertTrue(more.contains(new byte[0], 0, 0) && more.contains(key(0), 0, key(0).length));
      assertEquals(keys.size() + 4 + (size == 0 ? 4 + key(0).length : 0), more.size());
    }
  }
}
