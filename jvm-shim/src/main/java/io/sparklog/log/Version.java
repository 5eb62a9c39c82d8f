package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.CheckedLine;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.routing.Router;
import io.sparklog.routing.RoutingChange;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFields;
import io.sparklog.spec.PartlogException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * One version file: a commit. FORMAT.md section 5.
 *
 * @param head of the topic after this version
 * @param previous SHA-256 of the previous version file, or null in version 0
 * @param query the query and epoch that this version applied, or null
 * @param routing how it changes the routing, or null
 * @param rebuilt the topic whose records the topic begins with, or null
 * @param producers the batches of producers among the batches that this version adds
 * @param config the settings that this version changes
 * @param starts log start offsets after this version, of the partitions where they change
 * @param ends end offsets (exclusive) after this version, likewise
 * @param further the fields that this version of sparklog does not know, and does not put
 */
public record Version(TopicHead head, String txn, String previous, String operation, Query query, RoutingChange routing, Rebuilt rebuilt,
    List<Producers.Sent> producers, Map<String, String> config, Map<Integer, Long> starts, Map<Integer, Long> ends, List<Removed> removed,
    List<Segment> added, Further further) {

  static final int BYTES_MAX = 64 << 20;

  static final int SEGMENTS_MAX = 1_000_000;

  /** The number of a partition, below {@link Router#PARTITIONS_MAX}. */
  private static final Pattern PARTITION = Pattern.compile("0|[1-9][0-9]{0,3}");

  /** This program, with its release. */
  public static final String WRITER = "sparklog "
      + Objects.requireNonNullElse(Version.class.getPackage().getImplementationVersion(), "(not from a jar)");

  /** A segment that this version removes: it is no longer live. */
  public record Removed(int partition, String file, long position) {}

  public long version() {
    return head.version();
  }

  /** How many records it added. */
  public long records() {
    return added.stream().mapToLong(Segment::records).sum();
  }

  /** The file: one line of JSON and the line with its checksum. */
  public byte[] toBytes() {
    ObjectNode json = head.toJson();
    json.put("txn", txn).put("previous", previous).put("operation", operation).put("writer", WRITER);
    if (query == null) {
      json.putNull("query");
    } else {
      json.putObject("query").put("id", query.id()).put("epoch", query.epoch()).put("input", query.input());
    }
    if (routing != null) {
      json.set("routing", routing.toJson());
    }
    if (rebuilt != null) {
      json.set("rebuilt", rebuilt.toJson());
    }
    if (!producers.isEmpty()) {
      json.set("producers", Producers.toJson(producers));
    }
    ObjectNode settings = json.putObject("config");
    config.forEach(settings::put);
    ObjectNode startsJson = json.putObject("starts");
    starts.forEach((partition, start) -> startsJson.put(partition.toString(), start));
    ObjectNode endsJson = json.putObject("ends");
    ends.forEach((partition, end) -> endsJson.put(partition.toString(), end));
    ArrayNode removedJson = json.putArray("removed");
    for (Removed segment : removed) {
      removedJson.addObject().put("partition", segment.partition).put("file", segment.file).put("position", segment.position);
    }
    ArrayNode addedJson = json.putArray("added");
    added.forEach(segment -> addedJson.add(SegmentFields.object(segment)));
    return CheckedLine.of(json);
  }

  /**
   * The version in the bytes of its file, which must name this topic and version.
   *
   * @param location for messages
   * @throws PartlogException FORMAT_TOO_NEW
   */
  static Version parse(byte[] bytes, String location, String topic, long version) throws Damaged {
    CheckedLine line = CheckedLine.parse(bytes);
    JsonNode json = line.json();
    TopicHead head = TopicHead.parse(json, location, topic, version);
    line.requireEnd();
    String txn = TopicHead.identity(json, "txn");
    String previous = Json.field(json, "previous").isNull() ? null : Json.text(json, "previous");
    Damaged.unless(version == 0 ? previous == null : previous != null && isHash(previous), "field previous is not a SHA-256");
    String operation = Json.text(json, "operation");
    Json.text(json, "writer");
    List<Removed> removed = new ArrayList<>();
    for (JsonNode segment : Json.array(json, "removed", SEGMENTS_MAX)) {
      int partition = (int) Json.number(Json.field(segment, "partition"), "partition", 0, Router.PARTITIONS_MAX - 1);
      removed.add(new Removed(partition, SegmentFields.dataFile(Json.text(segment, "file")), Json.number(segment, "position", 0)));
    }
    List<Segment> added = new ArrayList<>();
    SegmentFields segments = new SegmentFields(Router.PARTITIONS_MAX);
    for (JsonNode segment : Json.array(json, "added", SEGMENTS_MAX)) {
      added.add(segments.ofObject(segment));
    }
    JsonNode change = head.features().haveSlots() ? json.get("routing") : null;
    RoutingChange routing = change == null ? null : RoutingChange.parse(change);
    JsonNode rebuilt = json.get("rebuilt");
    Version parsed = new Version(head, txn, previous, operation, query(Json.field(json, "query")), routing,
        rebuilt == null ? null : Rebuilt.parse(rebuilt, head.topicId()),
        head.features().has(Feature.PRODUCERS) ? Producers.parse(json, Router.PARTITIONS_MAX, added) : List.of(),
        config(Json.field(json, "config")), offsets(json, "starts"), offsets(json, "ends"), removed, added,
        Further.of(json, change != null));
    Damaged.unless(!head.deleted() || parsed.isDeletion(), "it deletes the topic, and does something else too");
    return parsed;
  }

  /** Whether nothing but the topic's end is in this version. */
  private boolean isDeletion() {
    return query == null && routing == null && head.horizon() - 1 == head.version() && head.boundary() == head.version() && config.isEmpty()
        && starts.isEmpty() && ends.isEmpty() && removed.isEmpty() && added.isEmpty();
  }

  private static Map<Integer, Long> offsets(JsonNode json, String name) throws Damaged {
    JsonNode object = Json.field(json, name);
    Damaged.unless(object.isObject(), "field " + name + " is not an object");
    Map<Integer, Long> offsets = new TreeMap<>();
    for (Map.Entry<String, JsonNode> entry : object.properties()) {
      Damaged.unless(PARTITION.matcher(entry.getKey()).matches(), () -> "field " + name + " names something other than a partition");
      offsets.put(Integer.valueOf(entry.getKey()), Json.number(entry.getValue(), name, 0, Long.MAX_VALUE));
    }
    return offsets;
  }

  static Map<String, String> config(JsonNode json) throws Damaged {
    Map<String, String> config = new TreeMap<>();
    Damaged.unless(json.isObject(), "field config is not an object");
    for (String key : (Iterable<String>) json::fieldNames) {
      config.put(key, Json.text(json, key));
    }
    return config;
  }

  private static Query query(JsonNode json) throws Damaged {
    return json.isNull() ? null : new Query(Json.text(json, "id"), Json.number(json, "epoch", 0), input(Json.field(json, "input")));
  }

  /** The input of an epoch, or null. */
  static String input(JsonNode json) throws Damaged {
    Damaged.unless(json.isNull() || json.isTextual() && Query.isInput(json.textValue()), "an input is neither null nor 16 hex digits");
    return json.textValue();
  }

  static boolean isHash(String text) {
    return text.matches("[0-9a-f]{64}");
  }

  static String sha256(byte[] bytes) {
    return HexFormat.of().formatHex(sha256().digest(bytes));
  }

  static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
