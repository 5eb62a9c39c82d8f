package io.sparklog.log;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.zip.CRC32C;

/** A file of one line of JSON and a line with its checksum. FORMAT.md section 5. */
final class CheckedLine {
  private CheckedLine() {}

  /** The bytes of the file. */
  static byte[] of(JsonNode json) {
    try {
      byte[] line = Json.MAPPER.writeValueAsBytes(json);
      CRC32C crc = new CRC32C();
      crc.update(line);
      byte[] end = ("\ncrc32c:" + Json.crc(crc) + "\n").getBytes(StandardCharsets.US_ASCII);
      byte[] bytes = Arrays.copyOf(line, line.length + end.length);
      System.arraycopy(end, 0, bytes, line.length, end.length);
      return bytes;
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The JSON in the bytes of a file, checked. */
  static JsonNode parse(byte[] bytes) throws Damaged {
    int line = 0;
    while (line < bytes.length && bytes[line] != '\n') {
      line++;
    }
    CRC32C crc = new CRC32C();
    crc.update(bytes, 0, line);
    String rest = new String(bytes, line, bytes.length - line, StandardCharsets.ISO_8859_1);
    Damaged.unless(rest.equals("\ncrc32c:" + Json.crc(crc) + "\n"), "its checksum does not fit its content");
    return Json.parse(bytes, 0, line);
  }
}
