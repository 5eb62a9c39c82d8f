package io.sparklog.segment;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.format.Layout;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.spec.Shown;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * The fields of segments on disk. A version file has an object for each segment. A checkpoint has a line for each segment: the values of
 * the fields that each segment has, in one order, and an object with the other fields. FORMAT.md sections 5 and 6. An instance reads the
 * segments of one file.
 */
public final class SegmentFields {
  /** The names of the values of a line, in their order. */
  private static final List<String> VALUES = List.of("partition", "file", "position", "bytes", "base", "end", "records", "batches",
      "minTimestamp", "maxTimestamp", "offsets", "routed", "ordered", "headerCrc");

  private static final String INDEX = "index";

  /** Fields that this version of sparklog does not know are kept up to this length, so that they fit into the line of a checkpoint. */
  private static final int FURTHER_BYTES_MAX = 32 << 10;

  private static final ObjectNode NO_FIELDS = Json.MAPPER.createObjectNode();

  private final int partitions;
  /** One String for all equal names: many segments share a data file, and a state holds them for long. */
  private final Map<String, String> files = new HashMap<>();

  /** @param partitions the number of partitions in the file */
  public SegmentFields(int partitions) {
    this.partitions = partitions;
  }

  /** Gives the values of the fields that each segment has. They are asked for in the order of a line. */
  @FunctionalInterface
  private interface Values {
    JsonNode next(String name) throws Damaged;
  }

  /** The object in a version file. */
  public static ObjectNode object(Segment segment) {
    ObjectNode object = Json.MAPPER.createObjectNode()
        .put("partition", segment.partition())
        .put("file", segment.file())
        .put("position", segment.position())
        .put("bytes", segment.bytes())
        .put("base", segment.base())
        .put("end", segment.end())
        .put("records", segment.records())
        .put("batches", segment.batches())
        .put("minTimestamp", segment.minTimestamp())
        .put("maxTimestamp", segment.maxTimestamp())
        .put("offsets", segment.offsets().word())
        .put("routed", segment.routed())
        .put("ordered", segment.ordered())
        .put("headerCrc", Integer.toUnsignedLong(segment.headerCrc()));
    return segment.indexBytes() == 0 ? object : object.put(INDEX, segment.indexBytes());
  }

  /** The line in a checkpoint. */
  public static ArrayNode line(Segment segment) {
    ObjectNode object = object(segment);
    ArrayNode line = Json.MAPPER.createArrayNode();
    VALUES.forEach(name -> line.add(object.remove(name)));
    if (!segment.further().isEmpty()) {
      object.setAll(further(segment.further()));
    }
    return object.isEmpty() ? line : line.add(object);
  }

  public Segment ofObject(JsonNode object) throws Damaged {
    ObjectNode rest = Json.MAPPER.createObjectNode();
    for (Map.Entry<String, JsonNode> field : object.size() > VALUES.size() ? object.properties() : NO_FIELDS.properties()) {
      if (!VALUES.contains(field.getKey())) {
        rest.set(field.getKey(), field.getValue());
      }
    }
    return segment(name -> Json.field(object, name), rest);
  }

  /** The segment of a line, which may have an object with its other fields at its end. */
  public Segment ofLine(JsonNode line) throws Damaged {
    Damaged.unless(
        line.isArray() && (line.size() == VALUES.size() || line.size() == VALUES.size() + 1 && line.path(VALUES.size()).isObject()),
        "a segment is no array of its values and perhaps an object");
    ObjectNode rest = line.size() > VALUES.size() ? (ObjectNode) line.get(VALUES.size()) : NO_FIELDS;
    Damaged.unless(rest.isEmpty() || VALUES.stream().noneMatch(rest::has), "a segment has a field twice");
    Iterator<JsonNode> values = line.elements();
    return segment(name -> values.next(), rest);
  }

  /** @param rest the fields that not each segment has */
  private Segment segment(Values values, ObjectNode rest) throws Damaged {
    return checked(new Segment((int) number(values, "partition", 0, partitions - 1), file(values), number(values, "position", 0),
        number(values, "bytes", Layout.HEADER_BYTES, Integer.MAX_VALUE), number(values, "base", 0), number(values, "end", 0),
        number(values, "records", 0), (int) number(values, "batches", 1, Integer.MAX_VALUE), number(values, "minTimestamp", -1),
        number(values, "maxTimestamp", -1), Segment.Offsets.of(Json.string(values.next("offsets"), "offsets")), bool(values, "routed"),
        bool(values, "ordered"), (int) number(values, "headerCrc", 0, 0xffffffffL), index(rest), further(rest)));
  }

  private static int index(ObjectNode rest) throws Damaged {
    return rest.has(INDEX) ? (int) Json.number(rest.get(INDEX), INDEX, 0, Segment.INDEX_BYTES_MAX) : 0;
  }

  private static String further(ObjectNode rest) {
    if (rest.size() == (rest.has(INDEX) ? 1 : 0)) {
      return "";
    }
    String text = rest.without(List.of(INDEX)).toString();
    return text.getBytes(StandardCharsets.UTF_8).length > FURTHER_BYTES_MAX ? "" : text;
  }

  private static ObjectNode further(String text) {
    try {
      return (ObjectNode) Json.MAPPER.readTree(text);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }

  private static long number(Values values, String name, long least) throws Damaged {
    return number(values, name, least, Long.MAX_VALUE);
  }

  private static long number(Values values, String name, long least, long most) throws Damaged {
    return Json.number(values.next(name), name, least, most);
  }

  private static boolean bool(Values values, String name) throws Damaged {
    return Json.bool(values.next(name), name);
  }

  private String file(Values values) throws Damaged {
    String name = dataFile(Json.string(values.next("file"), "file"));
    String first = files.putIfAbsent(name, name);
    return first == null ? name : first;
  }

  /** Checks the name of a data file, and returns it. */
  public static String dataFile(String name) throws Damaged {
    Damaged.unless(Names.isDataFile(name), () -> "it names a data file " + Shown.value(name));
    return name;
  }

  /** Checks the rules of a segment in any state, and returns it. */
  private static Segment checked(Segment segment) throws Damaged {
    long offsets = segment.end() - segment.base();
    Damaged.unless(offsets > 0 && offsets <= Integer.MAX_VALUE, () -> "a segment holds offsets " + segment.base() + " to " + segment.end());
    Damaged.unless(segment.dense() ? segment.records() == offsets : segment.records() <= offsets,
        () -> "a segment of " + offsets + " offsets has " + segment.records() + " records");
    Damaged.unless(segment.batches() <= segment.bytes() / Layout.HEADER_BYTES,
        () -> "a segment of " + segment.bytes() + " bytes has " + segment.batches() + " batches");
    Damaged.unless(segment.position() <= Long.MAX_VALUE - segment.bytes(), () -> "a segment begins at byte " + segment.position());
    Damaged.unless(segment.minTimestamp() <= segment.maxTimestamp(), "a segment's timestamps are out of order");
    return segment;
  }
}
