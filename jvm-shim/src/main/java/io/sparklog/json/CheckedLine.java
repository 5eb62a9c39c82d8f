package io.sparklog.json;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.zip.CRC32C;

/**
 * A file of one line of JSON and a line with its checksum. FORMAT.md section 5.
 *
 * @param json of the first line, whose checksum is right
 * @param more how many bytes follow the second line
 */
public record CheckedLine(JsonNode json, int more) {
  /** A line end, the word before the digits, the digits and a line end. */
  private static final int CHECKSUM_BYTES = 17;

  /** The bytes of the file. */
  public static byte[] of(JsonNode json) {
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

  public static CheckedLine parse(byte[] bytes) throws Damaged {
    int line = 0;
    while (line < bytes.length && bytes[line] != '\n') {
      line++;
    }
    CRC32C crc = new CRC32C();
    crc.update(bytes, 0, line);
    int more = bytes.length - line - CHECKSUM_BYTES;
    String checksum = more < 0 ? "" : new String(bytes, line, CHECKSUM_BYTES, StandardCharsets.ISO_8859_1);
    Damaged.unless(checksum.equals("\ncrc32c:" + Json.crc(crc) + "\n"), "its checksum does not fit its content");
    return new CheckedLine(Json.parse(bytes, 0, line), more);
  }

  /** Refuses bytes behind the second line. A later feature may put some there, so look at the features first. */
  public void requireEnd() throws Damaged {
    Damaged.unless(more == 0, more + " bytes follow its second line");
  }
}
