package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.CheckedLine;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.routing.Router;
import io.sparklog.routing.RoutingChange;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFields;
import io.sparklog.spec.PartlogException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/**
 * One version file: a commit. FORMAT.md section 5.
 *
 * @param query what this version applied, or null
 * @param previous SHA-256 of the previous version file, or null in version 0
 * @param deleted whether the topic ends with this version
 * @param features of the topic after this version
 * @param routing how it changes the routing, or null
 * @param rebuilt the topic whose records the topic begins with, or null
 * @param producers the batches of producers among the batches that this version adds
 * @param starts log start offsets by partition
 * @param ends end offsets (exclusive) by partition
 */
public record Version(String topic, String topicId, long version, String txn, String previous, long time, String operation, Query query,
    long horizon, long boundary, boolean deleted, Features features, RoutingChange routing, Rebuilt rebuilt, List<Producers.Sent> producers,
    Map<String, String> config, long[] starts, long[] ends, List<Removed> removed, List<Segment> added) {

  static final int BYTES_MAX = 64 << 20;

  static final int SEGMENTS_MAX = 1_000_000;

  private static final String WRITER = "sparklog "
      + Objects.requireNonNullElse(Version.class.getPackage().getImplementationVersion(), "(not from a jar)");

  /** A segment that this version removes: it is no longer live. */
  public record Removed(int partition, String file, long position) {}

  /** How many records it added. */
  public long records() {
    return added.stream().mapToLong(Segment::records).sum();
  }

  /** The file: one line of JSON and the line with its checksum. */
  public byte[] toBytes() {
    ObjectNode json = Json.MAPPER.createObjectNode();
    features.put(json);
    json.put("topic", topic).put("topicId", topicId).put("version", version).put("txn", txn).put("previous", previous);
    json.put("time", time).put("operation", operation).put("writer", WRITER);
    if (query == null) {
      json.putNull("query");
    } else {
      json.putObject("query").put("id", query.id()).put("epoch", query.epoch()).put("input", query.input());
    }
    json.put("horizon", horizon).put("boundary", boundary);
    if (deleted) {
      json.put("deleted", true);
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
    ArrayNode startsJson = json.putArray("starts");
    Arrays.stream(starts).forEach(startsJson::add);
    ArrayNode endsJson = json.putArray("ends");
    Arrays.stream(ends).forEach(endsJson::add);
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
    Features features = Features.parse(json, location);
    line.requireEnd();
    Damaged.unless(Json.text(json, "topic").equals(topic), "it is of topic " + Json.text(json, "topic"));
    Damaged.unless(Json.number(json, "version", 0) == version, "it says it is version " + json.get("version"));
    String txn = identity(json, "txn");
    String previous = Json.field(json, "previous").isNull() ? null : Json.text(json, "previous");
    Damaged.unless(version == 0 ? previous == null : previous != null && isHash(previous), "field previous is not a SHA-256");
    String operation = Json.text(json, "operation");
    Damaged.unless(operation.matches("[a-z-]{1,32}"), "field operation is " + operation);
    Json.text(json, "writer");
    long[] starts = Json.numbers(json, "starts", Router.PARTITIONS_MAX);
    long[] ends = Json.numbers(json, "ends", Router.PARTITIONS_MAX);
    Damaged.unless(starts.length == ends.length && ends.length > 0, "starts and ends differ in length");
    for (int p = 0; p < ends.length; p++) {
      Damaged.unless(starts[p] <= ends[p], "the log start offset of partition " + p + " is above its end");
    }
    List<Removed> removed = new ArrayList<>();
    for (JsonNode segment : Json.array(json, "removed", SEGMENTS_MAX)) {
      int partition = (int) Json.number(Json.field(segment, "partition"), "partition", 0, ends.length - 1);
      removed.add(new Removed(partition, SegmentFields.dataFile(Json.text(segment, "file")), Json.number(segment, "position", 0)));
    }
    List<Segment> added = new ArrayList<>();
    SegmentFields segments = new SegmentFields(ends.length);
    for (JsonNode segment : Json.array(json, "added", SEGMENTS_MAX)) {
      added.add(segments.ofObject(segment));
    }
    JsonNode change = features.haveSlots() ? json.get("routing") : null;
    RoutingChange routing = change == null ? null : RoutingChange.parse(change, ends.length);
    String topicId = identity(json, "topicId");
    JsonNode rebuilt = json.get("rebuilt");
    Version parsed = new Version(topic, topicId, version, txn, previous, Json.number(json, "time", 0), operation,
        query(Json.field(json, "query")), Json.number(json, "horizon", 0), Json.number(json, "boundary", 0), deleted(json), features,
        routing, rebuilt == null ? null : Rebuilt.parse(rebuilt, topicId, starts, ends),
        features.has(Feature.PRODUCERS) ? Producers.parse(json, ends.length, added) : List.of(), config(Json.field(json, "config")), starts,
        ends, removed, added);
    Damaged.unless(!parsed.deleted || parsed.isDeletion(), "it deletes the topic, and does something else too");
    return parsed;
  }

  /** Whether nothing but the topic's end is in this version. */
  private boolean isDeletion() {
    return query == null && routing == null && horizon - 1 == version && boundary == version && config.isEmpty() && removed.isEmpty()
        && added.isEmpty() && Arrays.equals(starts, ends);
  }

  static boolean deleted(JsonNode json) throws Damaged {
    JsonNode field = json.get("deleted");
    Damaged.unless(field == null || field.isBoolean() && field.booleanValue(), "field deleted is not true");
    return field != null;
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

  static String identity(JsonNode json, String name) throws Damaged {
    String text = Json.text(json, name);
    Damaged.unless(Names.isIdentity(text), "field " + name + " is not an identity");
    return text;
  }

  static boolean isHash(String text) {
    return text.matches("[0-9a-f]{64}");
  }

  static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
