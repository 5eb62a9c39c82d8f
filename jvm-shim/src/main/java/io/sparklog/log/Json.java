package io.sparklog.log;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.zip.CRC32C;

/** JSON that may be hostile: bounded, without duplicates, and every field of the type and range that FORMAT.md gives it. Complaints are IllegalArgumentExceptions with the reason. */
final class Json {
  static final JsonMapper MAPPER =
      JsonMapper.builder(
              JsonFactory.builder()
                  .streamReadConstraints(
                      StreamReadConstraints.builder().maxNestingDepth(8).maxStringLength(32 << 10).maxNameLength(1 << 10).maxNumberLength(20).build())
                  .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                  .build())
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .build();

  private Json() {}

  static JsonNode parse(byte[] bytes, int at, int length) {
    try {
      return MAPPER.readTree(bytes, at, length);
    } catch (IOException e) {
      throw new IllegalArgumentException("it is no JSON: " + e.getMessage().lines().findFirst().orElse(""), e);
    }
  }

  static JsonNode field(JsonNode object, String name) {
    JsonNode field = object.get(name);
    if (field == null) {
      throw new IllegalArgumentException("field " + name + " is missing");
    }
    return field;
  }

  static long number(JsonNode object, String name, long least) {
    return number(field(object, name), name, least, Long.MAX_VALUE);
  }

  static long number(JsonNode value, String name, long least, long most) {
    if (!value.isIntegralNumber() || !value.canConvertToLong() || value.longValue() < least || value.longValue() > most) {
      throw new IllegalArgumentException("field " + name + " is " + brief(value) + ", not an integer from " + least + " to " + most);
    }
    return value.longValue();
  }

  static String text(JsonNode object, String name) {
    JsonNode value = field(object, name);
    if (!value.isTextual()) {
      throw new IllegalArgumentException("field " + name + " is " + brief(value) + ", not a string");
    }
    // A lone surrogate can be written in JSON, but neither stored nor shown.
    if (!StandardCharsets.UTF_8.newEncoder().canEncode(value.textValue())) {
      throw new IllegalArgumentException("field " + name + " holds half of a surrogate pair");
    }
    return value.textValue();
  }

  static boolean truth(JsonNode value, String name) {
    if (!value.isBoolean()) {
      throw new IllegalArgumentException("field " + name + " is " + brief(value) + ", not true or false");
    }
    return value.booleanValue();
  }

  static JsonNode array(JsonNode object, String name, int most) {
    JsonNode value = field(object, name);
    if (!value.isArray() || value.size() > most) {
      throw new IllegalArgumentException("field " + name + " is no array of at most " + most);
    }
    return value;
  }

  static long[] numbers(JsonNode object, String name, int most) {
    JsonNode array = array(object, name, most);
    long[] numbers = new long[array.size()];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = number(array.get(i), name, 0, Long.MAX_VALUE);
    }
    return numbers;
  }

  static String crc(CRC32C crc) {
    return HexFormat.of().toHexDigits((int) crc.getValue());
  }

  private static String brief(JsonNode value) {
    String text = value.toString();
    return text.length() > 60 ? text.substring(0, 60) + "…" : text;
  }
}
