package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.CheckedLine;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.CheckpointFolder;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.random.RandomGenerator;

/**
 * One file of a query's checkpoint: topics that the query reads, and where it begins in them. FORMAT.md annex F.
 *
 * @param topics by name
 */
public record QueryStart(SortedMap<String, Topic> topics) {
  /** The largest file. */
  public static final int BYTES_MAX = 64 << 20;

  /**
   * A topic that a query reads.
   *
   * @param id topic id
   * @param offsets the first offset to read, by partition; partitions that are not named begin at 0
   */
  public record Topic(String id, SortedMap<Integer, Long> offsets) {}

  /** A name that no other caller uses, beside the file {@code name}. */
  public static String temporary(String name, RandomGenerator random) {
    return name + ".tmp-" + Names.identity(random);
  }

  /** The bytes of the file. */
  public byte[] toBytes() {
    ObjectNode json = Json.MAPPER.createObjectNode().put("format", Features.FORMAT);
    ObjectNode named = json.putObject("topics");
    topics.forEach((name, topic) -> {
      ObjectNode offsets = named.putObject(name).put("id", topic.id).putObject("offsets");
      topic.offsets.forEach((partition, offset) -> offsets.put(partition.toString(), offset));
    });
    return CheckedLine.of(json);
  }

  /**
   * Parses the content of a file.
   *
   * @param location of the file, for messages
   * @throws PartlogException QUERY_CHECKPOINT_CORRUPT, FORMAT_TOO_NEW
   */
  public static QueryStart parse(byte[] bytes, String location) {
    try {
      CheckedLine line = CheckedLine.parse(bytes);
      JsonNode json = line.json();
      Features.requireFormat(json, location);
      line.requireEnd();
      TreeMap<String, Topic> topics = new TreeMap<>();
      for (Map.Entry<String, JsonNode> topic : object(json, "topics").properties()) {
        Damaged.unless(Names.illegalTopic(topic.getKey()).isEmpty(), "it names a topic that cannot exist");
        TreeMap<Integer, Long> offsets = new TreeMap<>();
        for (Map.Entry<String, JsonNode> partition : object(topic.getValue(), "offsets").properties()) {
          int number = Names.partition(partition.getKey())
              .orElseThrow(() -> new Damaged("topic " + topic.getKey() + " has a partition that cannot exist"));
          offsets.put(number, Json.number(partition.getValue(), "offsets", 0, Long.MAX_VALUE));
        }
        topics.put(topic.getKey(), new Topic(TopicHead.identity(topic.getValue(), "id"), offsets));
      }
      return new QueryStart(topics);
    } catch (Damaged e) {
      throw PartlogException.caused(e, "QUERY_CHECKPOINT_CORRUPT", "file", location, "reason", e.getMessage());
    }
  }

  private static JsonNode object(JsonNode json, String name) throws Damaged {
    JsonNode value = Json.field(json, name);
    Damaged.unless(value.isObject(), "field " + name + " is not an object");
    return value;
  }

  /**
   * Refuses the checkpoint of a query that has not begun.
   *
   * @param checkpoint a folder of it
   * @throws PartlogException CHECKPOINT_IN_ROOT
   */
  public static void requireOutsideOfRoots(CheckpointFolder checkpoint) {
    checkpoint.above(Names.FOLDER).ifPresent(root -> {
      throw PartlogException.of("CHECKPOINT_IN_ROOT", "checkpoint", checkpoint.location(""), "root", root, "example", root + "-checkpoint");
    });
  }

  /**
   * As the other, unless the query has begun: then its checkpoint has a file of Spark's.
   *
   * @param checkpoint the whole one
   */
  public static void requireOutsideOfRootsIfNew(CheckpointFolder checkpoint) {
    try {
      checkpoint.read("metadata", BYTES_MAX);
    } catch (NoSuchFileException isNew) {
      requireOutsideOfRoots(checkpoint);
    } catch (IOException unknown) {
      // It is for Spark to say that its file cannot be read.
    }
  }
}
