package io.sparklog.format;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** A record that can be compared and printed: bytes are hex, null stays null. Its offset is relative to the batch. */
record PlainRecord(int offsetDelta, long timestamp, String key, String value, List<Header> headers) {
  record Header(String key, String value) {}

  private static final HexFormat HEX = HexFormat.of();

  static String hex(byte[] data, int at, int length) {
    return length < 0 ? null : HEX.formatHex(data, at, at + length);
  }

  static byte[] bytes(String hex) {
    return hex == null ? null : HEX.parseHex(hex);
  }

  /** Writes a batch with the encoder under test; offset deltas are the positions in the list. */
  static byte[] encode(BatchEncoder encoder, long baseOffset, List<PlainRecord> records) {
    for (PlainRecord record : records) {
      record.addTo(encoder);
    }
    return encoder.close(baseOffset);
  }

  void addTo(BatchEncoder encoder) {
    HeadersEncoder encoded = new HeadersEncoder();
    encoded.begin(headers.size());
    for (Header header : headers) {
      encoded.add(bytes(header.key), bytes(header.value));
    }
    byte[] keyBytes = bytes(key);
    byte[] valueBytes = bytes(value);
    int keyLength = keyBytes == null ? -1 : keyBytes.length;
    int valueLength = valueBytes == null ? -1 : valueBytes.length;
    int expected = encoder.bytesWith(timestamp, keyLength, valueLength, encoded.bytes());
    encoder.begin(timestamp, keyLength, valueLength, encoded.bytes());
    if (encoder.bytes() != expected) {
      throw new AssertionError("bytesWith said " + expected + ", bytes says " + encoder.bytes());
    }
    if (keyBytes != null) {
      System.arraycopy(keyBytes, 0, encoder.buffer(), encoder.keyAt(), keyLength);
    }
    if (valueBytes != null) {
      System.arraycopy(valueBytes, 0, encoder.buffer(), encoder.valueAt(), valueLength);
    }
    if (!headers.isEmpty()) {
      System.arraycopy(encoded.buffer(), 0, encoder.buffer(), encoder.headersAt(), encoded.bytes());
    }
  }

  /** The records that a decoder holds after {@link BatchDecoder#decode}. */
  static List<PlainRecord> of(BatchDecoder decoder) {
    List<PlainRecord> records = new ArrayList<>();
    byte[] data = decoder.data();
    RecordHeaders walker = new RecordHeaders();
    for (int i = 0; i < decoder.count(); i++) {
      List<Header> headers = new ArrayList<>();
      int count = walker.open(data, decoder.headersAt()[i], decoder.headersEnd()[i]);
      while (walker.next()) {
        headers.add(new Header(hex(data, walker.keyAt(), walker.keyLength()), hex(data, walker.valueAt(), walker.valueLength())));
      }
      if (headers.size() != count) {
        throw new AssertionError("open said " + count + " headers, next found " + headers.size());
      }
      records.add(new PlainRecord(decoder.offsetDeltas()[i], decoder.timestamps()[i],
          hex(data, decoder.keyAt()[i], decoder.keyLengths()[i]), hex(data, decoder.valueAt()[i], decoder.valueLengths()[i]), headers));
    }
    return records;
  }

  static List<PlainRecord> decode(byte[] batch) throws BadBatch {
    BatchDecoder decoder = new BatchDecoder(64 << 20);
    decoder.decode(batch, 0, batch.length);
    return of(decoder);
  }

  /** From the form that the vectors have: offsets are absolute, header keys are text. */
  static List<PlainRecord> of(JsonNode records, long baseOffset) {
    List<PlainRecord> result = new ArrayList<>();
    for (JsonNode record : records) {
      List<Header> headers = new ArrayList<>();
      for (JsonNode header : record.get("headers")) {
        headers.add(
            new Header(HEX.formatHex(header.get("key").textValue().getBytes(StandardCharsets.UTF_8)), header.get("value").textValue()));
      }
      result.add(new PlainRecord(Math.toIntExact(record.get("offset").longValue() - baseOffset), record.get("timestamp").longValue(),
          record.get("key").textValue(), record.get("value").textValue(), headers));
    }
    return result;
  }

  ObjectNode toJson(ObjectMapper mapper, long baseOffset) {
    ObjectNode json = mapper.createObjectNode();
    json.put("offset", baseOffset + offsetDelta).put("timestamp", timestamp).put("key", key).put("value", value);
    var array = json.putArray("headers");
    for (Header header : headers) {
      array.addObject().put("key", new String(bytes(header.key), StandardCharsets.UTF_8)).put("value", header.value);
    }
    return json;
  }
}
