package io.sparklog.stream;

import io.sparklog.log.ReadableTopics;
import io.sparklog.query.PartitionJson;
import io.sparklog.spec.PartlogException;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

/** How far a stream is: the offset of the next record to read, of each partition. FORMAT.md annex F. */
public final class StreamOffsets {
  /** Offsets of 100 topics with the most partitions that a topic can have take a tenth of it. */
  private static final int CHARACTERS_MAX = 256 << 20;

  private final SortedMap<String, ? extends SortedMap<Integer, Long>> next;

  /** Null until it is asked for: Spark does so at every poll. */
  private String json;

  /** @param next by topic and partition */
  StreamOffsets(SortedMap<String, ? extends SortedMap<Integer, Long>> next) {
    this.next = next;
  }

  /**
   * The offsets in a text that {@link #json} gave.
   *
   * @param checkpoint of the query, for messages
   * @throws PartlogException QUERY_CHECKPOINT_CORRUPT
   */
  public static StreamOffsets parse(String json, String checkpoint) {
    try {
      if (json.length() > CHARACTERS_MAX) {
        throw new IllegalArgumentException("an offset has more than " + CHARACTERS_MAX + " characters");
      }
      TreeMap<String, TreeMap<Integer, Long>> next = json.equals("{}") ? new TreeMap<>() : PartitionJson.numbers("offsets", json);
      next.forEach((topic, offsets) -> {
        ReadableTopics.requireLegal(topic);
        offsets.forEach((partition, offset) -> {
          if (offset < 0) {
            throw new IllegalArgumentException("partition " + partition + " of topic " + topic + " has the offset " + offset);
          }
        });
      });
      return new StreamOffsets(next);
    } catch (IllegalArgumentException e) {
      String reason = e instanceof PartlogException named ? named.parameters().get("reason") : e.getMessage();
      throw PartlogException.caused(e, "QUERY_CHECKPOINT_CORRUPT", "file", checkpoint, "reason", "Spark's log of offsets: " + reason);
    }
  }

  /** Kafka's JSON, in the one form that equal offsets have. */
  public String json() {
    if (json == null) {
      json = toJson();
    }
    return json;
  }

  private String toJson() {
    StringBuilder json = new StringBuilder("{");
    next.forEach((topic, offsets) -> {
      // A topic's name holds nothing that JSON would escape.
      json.append(json.length() > 1 ? "," : "").append('"').append(topic).append("\":{");
      offsets.forEach((partition, offset) -> json.append(json.charAt(json.length() - 1) == '{' ? "" : ",")
          .append('"')
          .append(partition.intValue())
          .append("\":")
          .append(offset.longValue()));
      json.append('}');
    });
    return json.append('}').toString();
  }

  /** The topics that are read. */
  public Set<String> topics() {
    return next.keySet();
  }

  /** By partition; none for a topic that is not named. */
  public Map<Integer, Long> of(String topic) {
    SortedMap<Integer, Long> offsets = next.get(topic);
    return offsets == null ? Map.of() : offsets;
  }

  @Override
  public boolean equals(Object other) {
    return this == other || other instanceof StreamOffsets offsets && next.equals(offsets.next);
  }

  @Override
  public int hashCode() {
    return next.hashCode();
  }

  @Override
  public String toString() {
    return json();
  }
}
