package io.sparklog.sim;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.sim.Truth.Broken;
import io.sparklog.sim.Known.Segment;
import java.util.Arrays;
import java.util.TreeMap;
import java.util.List;

/** Replays versions by FORMAT.md section 5, with code of its own. */
final class Replayed {
  private Replayed() {}

  static Segment segment(JsonNode json) {
    return new Segment(json.path("partition").asInt(), json.path("file").asText(), json.path("position").asLong(),
        json.path("bytes").asLong(), json.path("base").asLong(), json.path("end").asLong());
  }

  private static long[] after(long[] before, JsonNode changed, int partitions) {
    long[] after = Arrays.copyOf(before, partitions);
    changed.properties().forEach(each -> after[Integer.parseInt(each.getKey())] = each.getValue().asLong());
    return after;
  }

  private static String key(JsonNode json) {
    return json.path("partition").asInt() + " " + json.path("file").asText() + " " + json.path("position").asLong();
  }

  static Known apply(Known before, JsonNode json, String tag) {
    long number = json.path("version").asLong();
    boolean begins = before == null || before.deleted();
    if (!begins && !before.topicId().equals(json.path("topicId").asText())) {
      throw new Broken("I10: version " + number + " has another topic id");
    }
    TreeMap<String, Segment> live = begins ? new TreeMap<>() : new TreeMap<>(before.live());
    for (JsonNode removed : json.path("removed")) {
      if (live.remove(key(removed)) == null) {
        throw new Broken("I2: version " + number + " removes what is not live");
      }
    }
    json.path("added").forEach(added -> live.put(key(added), segment(added)));
    boolean deleted = json.path("deleted").asBoolean();
    long[] none = new long[0];
    int partitions = json.path("config").path("partitions").asInt(begins ? 0 : before.ends().length);
    long[] starts = after(begins ? none : before.starts(), json.path("starts"), partitions);
    long[] ends = after(begins ? none : before.ends(), json.path("ends"), partitions);
    Known after = new Known(number, json, tag, deleted ? ends : starts, ends, deleted ? new TreeMap<>() : live);
    if (!deleted) {
      requireWhole(after);
    }
    for (int p = 0; !begins && p < before.ends().length; p++) {
      if (after.starts()[p] < before.starts()[p] || after.ends()[p] < before.ends()[p]) {
        throw new Broken("I4: an offset of partition " + p + " falls in version " + number);
      }
    }
    if (before != null && (after.number("horizon") < before.number("horizon") || after.number("boundary") < before.number("boundary"))) {
      throw new Broken("I4: the horizon or the boundary falls in version " + number);
    }
    return after;
  }

  private static void requireWhole(Known known) {
    for (int p = 0; p < known.ends().length; p++) {
      long at = known.starts()[p];
      for (Segment segment : inOrder(known, p)) {
        boolean first = at == known.starts()[p];
        if (segment.end() > known.starts()[p]) {
          if (segment.base() > at || !first && segment.base() != at) {
            throw new Broken("I4: a gap or an overlap at offset " + at + " of partition " + p + " in version " + known.version());
          }
          at = segment.end();
        }
      }
      if (at != known.ends()[p]) {
        throw new Broken("I4: partition " + p + " ends at " + at + ", not at " + known.ends()[p] + ", in version " + known.version());
      }
    }
  }

  /** The live segments of a partition, by base offset. */
  static List<Segment> inOrder(Known known, int partition) {
    return known.live()
        .values()
        .stream()
        .filter(segment -> segment.partition() == partition)
        .sorted((a, b) -> Long.compare(a.base(), b.base()))
        .toList();
  }
}
