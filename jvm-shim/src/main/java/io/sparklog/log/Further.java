package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.Json;
import java.util.List;

/**
 * Fields of version files and heads of checkpoints that this version of sparklog does not know. They go into the next checkpoint as they
 * came. FORMAT.md section 6.3. Never changes.
 *
 * @param head beside the named fields
 * @param routing within {@code routing}
 */
record Further(ObjectNode head, ObjectNode routing) {
  static final Further NONE = new Further(Json.MAPPER.createObjectNode(), Json.MAPPER.createObjectNode());

  /** The names of FORMAT.md in version files and heads. */
  private static final List<String> HEAD = List.of("format", "features", "topic", "topicId", "version", "time", "horizon", "boundary",
      "deleted", "starts", "ends", "txn", "previous", "operation", "writer", "query", "routing", "rebuilt", "producers", "config",
      "removed", "added", "hash", "queries", "segments");

  private static final List<String> ROUTING = List.of("epoch", "slots", "weights", "moved", "table", "binds", "first", "reroutes");

  private static final String FIELD = "routing";

  /** Those of a version file or a head. @param routes whether its {@code routing} has a meaning */
  static Further of(JsonNode file, boolean routes) {
    return new Further(without(file, HEAD), routes ? without(file.path(FIELD), ROUTING) : NONE.routing);
  }

  private static ObjectNode without(JsonNode object, List<String> names) {
    ObjectNode further = Json.MAPPER.createObjectNode();
    object.properties().forEach(field -> {
      if (!names.contains(field.getKey())) {
        further.set(field.getKey(), field.getValue());
      }
    });
    return further;
  }

  /** These, with the fields of a later version put over them. */
  Further and(Further later) {
    if (later.head.isEmpty() && later.routing.isEmpty()) {
      return this;
    }
    return new Further(head.deepCopy().setAll(later.head), routing.deepCopy().setAll(later.routing));
  }

  /** Adds them to the head of a checkpoint. */
  void addTo(ObjectNode file) {
    file.setAll(head);
    if (file.get(FIELD) instanceof ObjectNode object) {
      object.setAll(routing);
    }
  }
}
