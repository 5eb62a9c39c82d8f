package io.sparklog.segment;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.format.Layout;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/**
 * The fields of segments on disk. A version file has an object for each segment. A checkpoint has a line for each segment, with the values
 * of the same fields in the same order. FORMAT.md sections 5 and 6. An instance reads the segments of one file.
 */
public final class SegmentFields {
  private final int partitions;
  /** One String for all equal names: many segments share a data file, and a state holds them for long. */
  private final Map<String, String> files = new HashMap<>();

  /** @param partitions the number of partitions in the file */
  public SegmentFields(int partitions) {
    this.partitions = partitions;
  }

  /** Gives the values of a segment's fields, which are asked for in the order of a line. */
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
    return segment.indexBytes() == 0 ? object : object.put("index", segment.indexBytes());
  }

  /** The line in a checkpoint. */
  public static ArrayNode line(Segment segment) {
    ArrayNode line = Json.MAPPER.createArrayNode();
    object(segment).forEach(line::add);
    return line;
  }

  public Segment ofObject(JsonNode object) throws Damaged {
    return segment(name -> name.equals("index") ? object.path(name) : Json.field(object, name));
  }

  /** The segment of a line, which may have values of further fields at its end. */
  public Segment ofLine(JsonNode line) throws Damaged {
    Damaged.unless(line.isArray(), "a segment is no array");
    Iterator<JsonNode> values = line.elements();
    return segment(name -> {
      Damaged.unless(values.hasNext() || name.equals("index"), () -> "a segment has no " + name);
      return values.hasNext() ? values.next() : MissingNode.getInstance();
    });
  }

  private Segment segment(Values values) throws Damaged {
    return checked(new Segment((int) number(values, "partition", 0, partitions - 1), file(values), number(values, "position", 0),
        number(values, "bytes", Layout.HEADER_BYTES, Integer.MAX_VALUE), number(values, "base", 0), number(values, "end", 0),
        number(values, "records", 0), (int) number(values, "batches", 1, Integer.MAX_VALUE), number(values, "minTimestamp", -1),
        number(values, "maxTimestamp", -1), Offsets.of(Json.string(values.next("offsets"), "offsets")), bool(values, "routed"),
        bool(values, "ordered"), (int) number(values, "headerCrc", 0, 0xffffffffL), index(values)));
  }

  /** The length of the index, which a segment may lack. */
  private static int index(Values values) throws Damaged {
    JsonNode bytes = values.next("index");
    return bytes.isMissingNode() ? 0 : (int) Json.number(bytes, "index", 0, Segment.INDEX_BYTES_MAX);
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
    Damaged.unless(Names.isDataFile(name), () -> "it names a data file " + (name.length() > 100 ? name.substring(0, 100) + "…" : name));
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
