package io.sparklog.kit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.log.State;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.zip.CRC32C;

/** A version file that no writer of ours makes yet: it removes segments, or adds ones of any kind. FORMAT.md section 5. */
public final class HandmadeVersion {
  private final Path folder;
  private final long number;
  private final ObjectNode fields;

  private HandmadeVersion(Path folder, long number, ObjectNode fields) {
    this.folder = folder;
    this.number = number;
    this.fields = fields;
  }

  /** The version after {@code state}; nothing changes in it yet. */
  public static HandmadeVersion after(Path root, State state, String txn) throws IOException {
    Path folder = root.resolve(Names.topicFolder(state.topic()));
    byte[] last = Files.readAllBytes(folder.resolve(Names.versionFile(state.version())));
    String line = new String(last, StandardCharsets.UTF_8).lines().findFirst().orElseThrow();
    ObjectNode fields = (ObjectNode) new ObjectMapper().readTree(line);
    fields.put("version", state.version() + 1).put("txn", txn).put("previous", sha256(last)).putNull("query");
    fields.putObject("config");
    List.of("starts", "ends").forEach(fields::putObject);
    List.of("added", "removed").forEach(fields::putArray);
    return new HandmadeVersion(folder, state.version() + 1, fields);
  }

  private static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  public HandmadeVersion remove(Segment segment) {
    ((ArrayNode) fields.get("removed")).addObject()
        .put("partition", segment.partition())
        .put("file", segment.file())
        .put("position", segment.position());
    return this;
  }

  /** Adds a segment that is as {@code segment}, but in {@code file} and from offset {@code base} on. */
  public HandmadeVersion add(Segment segment, String file, long base) {
    ObjectNode added = ((ArrayNode) fields.get("added")).addObject();
    added.put("partition", segment.partition()).put("file", file).put("position", segment.position()).put("bytes", segment.bytes());
    added.put("base", base)
        .put("end", base + segment.end() - segment.base())
        .put("records", segment.records())
        .put("batches", segment.batches());
    added.put("minTimestamp", segment.minTimestamp())
        .put("maxTimestamp", segment.maxTimestamp())
        .put("offsets", segment.offsets().word())
        .put("routed", segment.routed())
        .put("ordered", segment.ordered());
    added.put("headerCrc", Integer.toUnsignedLong(segment.headerCrc()));
    return this;
  }

  public HandmadeVersion start(int partition, long offset) {
    fields.withObject("/starts").put(Integer.toString(partition), offset);
    return this;
  }

  public HandmadeVersion end(int partition, long offset) {
    fields.withObject("/ends").put(Integer.toString(partition), offset);
    return this;
  }

  public HandmadeVersion boundary(long version) {
    fields.put("boundary", version);
    return this;
  }

  public void write() throws IOException {
    byte[] line = new ObjectMapper().writeValueAsBytes(fields);
    CRC32C crc = new CRC32C();
    crc.update(line);
    String text = new String(line, StandardCharsets.UTF_8) + String.format("%ncrc32c:%08x%n", crc.getValue());
    Files.writeString(folder.resolve(Names.versionFile(number)), text);
  }
}
