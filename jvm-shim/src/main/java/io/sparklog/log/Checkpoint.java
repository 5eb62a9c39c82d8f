package io.sparklog.log;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.routing.Router;
import io.sparklog.routing.Routing;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFields;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import io.sparklog.storage.FileReader;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.PutObserver;
import io.sparklog.storage.ReadStore;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.CRC32C;

/** The state of a topic in one file, so that readers need not replay versions from 0. FORMAT.md section 6. */
public final class Checkpoint {
  private static final int HEAD_BYTES_MAX = 64 << 20;
  private static final int LINE_BYTES_MAX = 64 << 10;
  private static final int BLOCK_BYTES = 64 << 10;

  /** The topics that a warning has already called too large for a checkpoint. */
  private static final Set<String> TOO_LARGE = ConcurrentHashMap.newKeySet();

  private Checkpoint() {}

  /**
   * Writes the checkpoint of {@code state}, unless it has more queries than readers accept. A second writer finds the same file: its name
   * depends on its content.
   */
  public static void write(LogStore store, State state, String temporaryTxn) throws IOException {
    Step.CHECKPOINT_PUT.reached();
    Lines lines = new Lines();
    lines.add(head(state));
    if (lines.bytes.size() > HEAD_BYTES_MAX || !Json.fits(lines.json)) {
      if (TOO_LARGE.add(store.location(Names.topicFolder(state.topic())))) {
        Warnings.warn(Checkpoint.class,
            "topic {} has no more checkpoints: the {} queries and txnAppIds that have written to it take {} bytes,"
                + " and are beyond the limits of FORMAT.md; readers replay the versions since the newest one. Set"
                + " transaction.retention.ms of the topic, so that it forgets the oldest of them",
            state.topic(), state.queries().size(), lines.bytes.size());
      }
      return;
    }
    for (int p = 0; p < state.partitions(); p++) {
      for (Segment segment : state.segments(p)) {
        lines.add(SegmentFields.line(segment));
      }
    }
    if (state.hasProducers()) {
      state.producers().forEach(last -> lines.add(last.line()));
    }
    String name = Names.checkpoint(state.version(), HexFormat.of().formatHex(lines.digest.digest()).substring(0, 16));
    try {
      store.putIfAbsent(Names.topicFile(state.topic(), name), Names.topicFile(state.topic(), Names.temporary(temporaryTxn, "checkpoint")),
          lines.bytes.toByteArray(), PutObserver.NONE);
    } catch (FileAlreadyExistsException sameContent) {
      return;
    }
    Step.CHECKPOINT_DONE.reached();
  }

  private static ObjectNode head(State state) {
    TopicHead fields = state.head().fields();
    ObjectNode head = fields.toJson();
    Arrays.stream(state.head().starts()).forEach(head.putArray("starts")::add);
    Arrays.stream(state.head().ends()).forEach(head.putArray("ends")::add);
    head.put("hash", state.hash());
    if (fields.features().haveSlots() && !state.routing().isModulo()) {
      head.set("routing", state.routing().toJson());
    }
    if (state.hasProducers()) {
      head.put("producers", state.producers().count());
    }
    ObjectNode config = head.putObject("config");
    state.config().entries().forEach(config::put);
    ArrayNode queries = head.putArray("queries");
    state.queries()
        .forEach((id, query) -> queries.addArray().add(id).add(query.query().epoch()).add(query.query().input()).add(query.timeMs()));
    ArrayNode segments = head.putArray("segments");
    for (int p = 0; p < state.partitions(); p++) {
      segments.add(state.segments(p).size());
    }
    state.head().further().addTo(head);
    return head;
  }

  /** The state in the checkpoint {@code name}. @throws PartlogException FORMAT_TOO_NEW */
  static Replay read(ReadStore store, String topic, String name) throws IOException, Damaged {
    return read(store, topic, name, null, true);
  }

  /**
   * As the other.
   *
   * @param listed the file in a listing, so that its length need not be asked for; null if it was not listed
   * @param knowing whether to read the producers too. Without them, nothing behind the segments is read
   */
  static Replay read(ReadStore store, String topic, String name, ReadStore.Listed listed, boolean knowing) throws IOException, Damaged {
    String file = Names.topicFile(topic, name);
    try (FileReader opened = listed == null ? store.open(file) : store.open(file, listed.bytes()); Checked lines = new Checked(opened)) {
      if (listed != null) {
        opened.expect(0, listed.bytes());
      }
      JsonNode head = lines.next(HEAD_BYTES_MAX);
      Damaged.unless(head != null, "it is empty");
      TopicHead fields = TopicHead.parse(head, store.location(file), topic, Names.checkpointVersion(name).orElse(-1));
      long[] counts = Json.numbers(head, "segments", Router.PARTITIONS_MAX);
      SegmentFields segmentFields = new SegmentFields(counts.length);
      List<List<Segment>> live = new ArrayList<>();
      for (int p = 0; p < counts.length; p++) {
        List<Segment> segments = new ArrayList<>();
        while (segments.size() < counts[p]) {
          JsonNode line = lines.next(LINE_BYTES_MAX);
          Damaged.unless(line != null, "segments of partition " + p + " are missing");
          Segment segment = segmentFields.ofLine(line);
          Damaged.unless(segment.partition() == p,
              "a segment of partition " + segment.partition() + " was found where one of partition " + p + " was expected");
          segments.add(segment);
        }
        live.add(segments);
      }
      int count = fields.features().has(Feature.PRODUCERS) && head.has("producers")
          ? (int) Json.number(head.get("producers"), "producers", 0, Producers.PRODUCERS_MAX)
          : 0;
      Damaged.unless(count == 0 || !fields.deleted(), "it is of a deleted topic, and has producers");
      return replay(head, fields, live, knowing ? producers(lines, count, Json.numbers(head, "ends", Router.PARTITIONS_MAX)) : null);
    }
  }

  private static Producers producers(Checked lines, int count, long[] ends) throws IOException, Damaged {
    List<ProducerBatches> found = new ArrayList<>();
    ProducerBatches.Producer before = null;
    while (found.size() < count) {
      JsonNode line = lines.next(LINE_BYTES_MAX);
      Damaged.unless(line != null, "producers are missing");
      ProducerBatches last = ProducerBatches.parse(line, ends, before);
      before = last.producer();
      found.add(last);
    }
    return Producers.of(found);
  }

  private static Replay replay(JsonNode head, TopicHead fields, List<List<Segment>> live, Producers producers) throws Damaged {
    Features features = fields.features();
    Map<String, Query.Applied> queries = new TreeMap<>();
    for (JsonNode query : Json.array(head, "queries", Integer.MAX_VALUE)) {
      Damaged.unless(query.isArray() && query.size() == 4 && query.get(0).isTextual(), "field queries is damaged");
      String id = query.get(0).textValue();
      Query applied = new Query(id, Json.number(query.get(1), "queries", 0, Long.MAX_VALUE), Version.input(query.get(2)));
      Query.Applied other = queries.put(id, new Query.Applied(applied, Json.number(query.get(3), "queries", 0, Long.MAX_VALUE)));
      Damaged.unless(other == null, "field queries names one twice");
    }
    String hash = Json.text(head, "hash");
    Damaged.unless(Version.isHash(hash), "field hash is not a SHA-256");
    TopicConfig config = new TopicConfig(Version.config(Json.field(head, "config")));
    long[] starts = Json.numbers(head, "starts", Router.PARTITIONS_MAX);
    long[] ends = Json.numbers(head, "ends", Router.PARTITIONS_MAX);
    Damaged.unless(starts.length == ends.length && ends.length == live.size(), "starts, ends and segments differ in length");
    for (int p = 0; p < ends.length; p++) {
      Damaged.unless(starts[p] <= ends[p], "the log start offset of partition " + p + " is above its end");
    }
    boolean isRoutingKnown = features.areKnownTo(Feature.Binds.KEY_READERS) && config.areKnownTo(Feature.Binds.KEY_READERS);
    JsonNode field = isRoutingKnown && features.haveSlots() ? head.get("routing") : null;
    Routing routing = field == null
        ? Routing.modulo(config.partitions())
        : Routing.parse(field, fields.version(), ends, features.has(Feature.UNBOUND));
    if (!fields.deleted() && isRoutingKnown) {
      Replay.requirePlacement(config, features, routing);
    }
    Damaged.unless(
        !fields.deleted()
            || queries.isEmpty() && routing.isModulo() && Arrays.equals(starts, ends) && live.stream().allMatch(List::isEmpty),
        "it is of a deleted topic, and has records, queries or slots");
    return new Replay(new State.Head(fields, hash, null, producers, config, routing, starts, ends, Further.of(head, field != null)),
        queries, live);
  }

  /** Lines, each with the checksum of all JSON so far. */
  private static final class Lines {
    private static final HexFormat HEX = HexFormat.of();

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(BLOCK_BYTES);
    private final MessageDigest digest = Version.sha256();
    private final CRC32C crc = new CRC32C();
    /** The JSON of the line that was added last. */
    private byte[] json;

    private void add(JsonNode line) {
      try {
        // As bytes at once, characters of four bytes would be escaped, and take twelve.
        json = Json.MAPPER.writeValueAsString(line).getBytes(StandardCharsets.UTF_8);
      } catch (JsonProcessingException e) {
        throw new IllegalStateException(e);
      }
      crc.update(json);
      digest.update(json);
      bytes.writeBytes(json);
      bytes.writeBytes(("\t" + HEX.toHexDigits((int) crc.getValue()) + "\n").getBytes(StandardCharsets.US_ASCII));
    }
  }

  /** The lines of a checkpoint, read one by one, each at most to its limit and checked with all before it. */
  private static final class Checked implements Closeable {
    /** A tab and eight digits. */
    private static final int TAIL_BYTES = 9;

    private final FileReader file;
    private final CRC32C crc = new CRC32C();
    private byte[] buffer = new byte[BLOCK_BYTES];
    private int at;
    private int end;
    private long position;

    private Checked(FileReader file) {
      this.file = file;
    }

    /** The JSON of the next line, which must not have more than {@code bytesMax} bytes; null at the end of the file. */
    private JsonNode next(int bytesMax) throws IOException, Damaged {
      int length = 0;
      while (true) {
        if (at + length == end && !fill()) {
          Damaged.unless(length == 0, "a line is cut");
          return null;
        }
        if (buffer[at + length] == '\n') {
          break;
        }
        length++;
        if (length > bytesMax) {
          throw new Damaged("a line has more than " + bytesMax + " bytes");
        }
      }
      int json = length - TAIL_BYTES;
      Damaged.unless(json > 0 && buffer[at + json] == '\t', "a line has no checksum");
      crc.update(buffer, at, json);
      Damaged.unless(new String(buffer, at + json + 1, TAIL_BYTES - 1, StandardCharsets.ISO_8859_1).equals(Json.crc(crc)),
          "a checksum does not fit");
      JsonNode line = Json.parse(buffer, at, json);
      at += length + 1;
      return line;
    }

    /** Reads more bytes behind the bytes that are not consumed yet; false at the end of the file. */
    private boolean fill() throws IOException {
      int kept = end - at;
      byte[] to = kept <= buffer.length / 2 ? buffer : new byte[2 * buffer.length];
      System.arraycopy(buffer, at, to, 0, kept);
      buffer = to;
      at = 0;
      int bytes = (int) Math.min(buffer.length - kept, file.bytes() - position);
      file.read(position, buffer, kept, bytes);
      position += bytes;
      end = kept + bytes;
      return bytes > 0;
    }

    @Override
    public void close() throws IOException {
      file.close();
    }
  }
}
