package io.sparklog.sim;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeMap;

/** The topic after a version. {@code live} is by partition, file and position. */
record Known(long version, JsonNode json, String tag, long[] starts, long[] ends, TreeMap<String, Segment> live) {
  record Segment(int partition, String file, long position, long bytes, long base, long end) {}

  String topicId() {
    return json.path("topicId").asText();
  }

  boolean deleted() {
    return json.path("deleted").asBoolean();
  }

  long number(String field) {
    return json.path(field).asLong();
  }

  /** The files of the segments that it removed. */
  Set<String> removed() {
    Set<String> files = new HashSet<>();
    json.path("removed").forEach(removed -> files.add(removed.path("file").asText()));
    return files;
  }

  Set<String> files() {
    Set<String> files = new HashSet<>();
    live.values().forEach(segment -> files.add(segment.file()));
    return files;
  }
}
