package io.sparklog.sim;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.log.State;
import io.sparklog.sim.Truth.Broken;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** Where re-routes cut the partitions that give or get slots; by the version files alone. FORMAT.md annex A. */
final class Cuts {
  /** @param offsets by partition; of one that neither gives nor gets slots those of the re-route before */
  private record Cut(long version, long[] offsets) {
    long at(int partition) {
      return partition < offsets.length ? offsets[partition] : 0;
    }

    /** In words, without expired re-routes. */
    String shown(long[] starts) {
      return version + " " + Arrays.toString(IntStream.range(0, offsets.length).mapToLong(p -> Math.max(offsets[p], starts[p])).toArray());
    }
  }

  private Cuts() {}

  /** Those of the topic of a version, up to it. */
  private static List<Cut> of(List<Known> versions, Known until) {
    List<Cut> found = new ArrayList<>();
    Map<Integer, Integer> homes = new HashMap<>();
    int modulo = 0;
    Known before = null;
    for (Known known : versions) {
      if (known.version() > until.version() || !known.topicId().equals(until.topicId())) {
        continue;
      }
      JsonNode routing = known.json().path("routing");
      if (routing.has("epoch")) {
        modulo = modulo == 0 ? before.ends().length : modulo;
        Cut last = found.isEmpty() ? new Cut(-1, new long[0]) : found.get(found.size() - 1);
        long[] offsets = IntStream.range(0, known.ends().length).mapToLong(last::at).toArray();
        long[] ends = Arrays.copyOf(before.ends(), offsets.length);
        for (JsonNode entry : routing.path("moved")) {
          int to = entry.get(0).asInt();
          offsets[to] = ends[to];
          for (int i = 1; i < entry.size(); i++) {
            int from = homes.getOrDefault(entry.get(i).asInt(), entry.get(i).asInt() % modulo);
            offsets[from] = ends[from];
          }
        }
        found.add(new Cut(known.version(), offsets));
      }
      for (JsonNode entry : routing.path("moved")) {
        IntStream.range(1, entry.size()).forEach(i -> homes.put(entry.get(i).asInt(), entry.get(0).asInt()));
      }
      before = known;
    }
    return found;
  }

  /** All records of a segment were routed alike, by the table that was there when they were committed. @param isRouted by a writer */
  static void requireOneEpoch(List<Known> versions, Known version, Known.Segment segment, boolean isRouted) {
    for (Cut cut : of(versions, version)) {
      long planned = Long.parseLong(segment.file().substring("data/".length(), "data/".length() + 20));
      if (isRouted && planned <= cut.version()) {
        throw new Broken("I5: version " + version.version() + " adds records of before the re-route of version " + cut.version());
      }
      if (segment.base() < cut.at(segment.partition()) && cut.at(segment.partition()) < segment.end()) {
        throw new Broken("I5: version " + version.version() + " joins " + segment + " over the re-route of version " + cut.version());
      }
    }
  }

  /** Whether a state knows the cuts of each re-route that has records from before the re-route. */
  static boolean areKnown(List<Known> versions, State state, Known known) {
    long[] starts = known.starts();
    List<String> expected = of(versions, known).stream()
        .filter(cut -> IntStream.range(0, starts.length).anyMatch(p -> cut.at(p) > starts[p]))
        .map(cut -> cut.shown(starts))
        .toList();
    List<String> found = state.routing().past().stream().map(past -> new Cut(past.version(), past.cut()).shown(starts)).toList();
    return expected.equals(found);
  }
}
