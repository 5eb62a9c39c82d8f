package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Shown;

/**
 * The fields of a topic that version files and checkpoints give alike, as they are after one version. FORMAT.md sections 5 and 6.
 *
 * @param time when the version was written, by its writer's clock, in ms since 1970
 * @param horizon a write that was planned at a lower version must not commit
 * @param boundary version files below it may be gone
 * @param deleted whether the version ended the topic
 */
public record TopicHead(Features features, String topic, String topicId, long version, long time, long horizon, long boundary,
    boolean deleted) {

  /** The JSON of a file that begins with these fields. */
  ObjectNode toJson() {
    ObjectNode json = Json.MAPPER.createObjectNode();
    features.put(json);
    json.put("topic", topic).put("topicId", topicId).put("version", version);
    json.put("time", time).put("horizon", horizon).put("boundary", boundary);
    if (deleted) {
      json.put("deleted", true);
    }
    return json;
  }

  /** The fields in a file at {@code location}, which must name this topic and version. @throws PartlogException FORMAT_TOO_NEW */
  static TopicHead parse(JsonNode json, String location, String topic, long version) throws Damaged {
    Features features = Features.parse(json, location);
    Damaged.unless(Json.text(json, "topic").equals(topic), "it is of topic " + Shown.value(Json.text(json, "topic")));
    Damaged.unless(Json.number(json, "version", 0) == version, "it says it is version " + json.get("version"));
    JsonNode deleted = json.get("deleted");
    Damaged.unless(deleted == null || deleted.isBoolean() && deleted.booleanValue(), "field deleted is not true");
    return new TopicHead(features, topic, identity(json, "topicId"), version, Json.number(json, "time", 0), Json.number(json, "horizon", 0),
        Json.number(json, "boundary", 0), deleted != null);
  }

  /** Whether the fields of {@code other} have the same values. */
  boolean agreesWith(TopicHead other) {
    return features.words().equals(other.features.words()) && withoutFeatures().equals(other.withoutFeatures());
  }

  private ObjectNode withoutFeatures() {
    ObjectNode json = toJson();
    json.remove("features");
    return json;
  }

  static String identity(JsonNode json, String name) throws Damaged {
    String text = Json.text(json, name);
    Damaged.unless(Names.isIdentity(text), "field " + name + " is not an identity");
    return text;
  }
}
