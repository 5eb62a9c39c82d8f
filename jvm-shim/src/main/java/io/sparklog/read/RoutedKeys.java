package io.sparklog.read;

import io.sparklog.log.State;
import io.sparklog.segment.Segment;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;

/**
 * The conditions on the records of a topic's segments, as far as their keys are known from where they were routed. A query may have very
 * many keys. Each key is hashed once for each routing epoch of the topic, and the splits of a partition share the keys that are left.
 */
final class RoutedKeys {
  /** Where keys were routed. */
  interface Homes {
    /** How many re-routes come before an offset of a partition. */
    int reroutesBefore(int partition, long offset);

    /** The partition of a key after so many of them. */
    int home(int reroutes, byte[] key);
  }

  private record RoutedAt(Keys keys, int reroutes) {}

  private record KeysOfPartition(Keys keys, int partition, SortedSet<Integer> reroutes) {}

  /** Null if this version of sparklog does not know a feature that decides where keys go: then no key is left out. */
  private final Homes homes;
  private final Map<RoutedAt, Map<Integer, Keys>> byPartition = new HashMap<>();
  private final Map<KeysOfPartition, Keys> held = new HashMap<>();

  RoutedKeys(Homes homes) {
    this.homes = homes;
  }

  static RoutedKeys of(State state) {
    return new RoutedKeys(!state.isRoutingKnown() ? null : new Homes() {
      @Override
      public int reroutesBefore(int partition, long offset) {
        return state.reroutesBefore(partition, offset);
      }

      @Override
      public int home(int reroutes, byte[] key) {
        return state.home(reroutes, key);
      }
    });
  }

  /** The filter for the records of some segments of one partition, and for no others. */
  RecordFilter in(List<Segment> segments, RecordFilter filter) {
    if (homes == null || segments.isEmpty() || !filter.isAboutKey() || !segments.stream().allMatch(Segment::routed)) {
      return filter;
    }
    int partition = segments.get(0).partition();
    SortedSet<Integer> reroutes = new TreeSet<>();
    segments.forEach(segment -> reroutes.add(homes.reroutesBefore(partition, segment.base())));
    return filter.whereRouted(keys -> held.computeIfAbsent(new KeysOfPartition(keys, partition, reroutes), this::find));
  }

  private Keys find(KeysOfPartition place) {
    Keys found = Keys.NONE;
    for (int epoch : place.reroutes) {
      RoutedAt asked = new RoutedAt(place.keys, epoch);
      Map<Integer, Keys> all = byPartition.computeIfAbsent(asked, any -> place.keys.by(key -> homes.home(epoch, key)));
      found = found.or(all.getOrDefault(place.partition, Keys.NONE));
    }
    return found;
  }
}
