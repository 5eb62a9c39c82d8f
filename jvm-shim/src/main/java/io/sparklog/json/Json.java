package io.sparklog.json;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.sparklog.spec.JsonFault;
import io.sparklog.spec.Shown;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import java.util.zip.CRC32C;

/**
 * Reads JSON that may be hostile: accepts what FORMAT.md sections 5 and 10 allow, and each field only with its type and range.
 */
public final class Json {
  private static final int DEPTH_MAX = 8;
  private static final int STRING_BYTES_MAX = 32 << 10;

  /**
   * Opening brackets and braces: enough for a million segments added and as many removed. Bounded because empty arrays take thirty times
   * their bytes in memory.
   */
  private static final int BRACKETS_MAX = 2_100_000;

  /** −2⁶³ has 20 characters, and no allowed integer has more. */
  private static final int NUMBER_CHARACTERS_MAX = 20;

  public static final JsonMapper MAPPER = JsonMapper.builder(JsonFactory.builder()
      .streamReadConstraints(StreamReadConstraints.builder()
          .maxNestingDepth(DEPTH_MAX)
          .maxStringLength(STRING_BYTES_MAX)
          .maxNameLength(STRING_BYTES_MAX)
          .maxNumberLength(NUMBER_CHARACTERS_MAX)
          .build())
      .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
      .build()).enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS).build();

  private Json() {}

  /** Whether JSON that we wrote, which keeps to the other limits, is not too large for {@link #parse}. */
  public static boolean fits(byte[] bytes) {
    return brackets(bytes, 0, bytes.length) <= BRACKETS_MAX;
  }

  private static int brackets(byte[] bytes, int at, int length) {
    int brackets = 0;
    for (int i = at; i < at + length; i++) {
      brackets += bytes[i] == '[' || bytes[i] == '{' ? 1 : 0;
    }
    return brackets;
  }

  public static JsonNode parse(byte[] bytes, int at, int length) throws Damaged {
    int brackets = brackets(bytes, at, length);
    Damaged.unless(brackets <= BRACKETS_MAX,
        () -> "it has " + brackets + " brackets and braces that open, and " + BRACKETS_MAX + " is the limit");
    // Given bytes, the parser would guess their encoding, and accept forms of UTF-8 that are not valid.
    try (Reader text = new InputStreamReader(new ByteArrayInputStream(bytes, at, length), StandardCharsets.UTF_8.newDecoder())) {
      JsonNode value = MAPPER.readTree(text);
      requireBounded(value);
      return value;
    } catch (CharacterCodingException e) {
      throw new Damaged("it is not UTF-8", e);
    } catch (IOException e) {
      throw new Damaged("it is not JSON: " + JsonFault.why(e), e);
    }
  }

  /** Makes the checks that the parser leaves out. The parser has bounded the depth. */
  private static void requireBounded(JsonNode value) throws Damaged {
    if (value.isTextual()) {
      requireBounded(value.textValue());
    } else if (value.isNumber()) {
      Damaged.unless(value.isIntegralNumber() && value.canConvertToLong(),
          () -> "it holds the number " + brief(value) + ", which is not an integer of 64 bits");
    } else if (value.isObject()) {
      for (Map.Entry<String, JsonNode> field : value.properties()) {
        requireBounded(field.getKey());
        requireBounded(field.getValue());
      }
    } else if (value.isArray()) {
      for (JsonNode element : value) {
        requireBounded(element);
      }
    }
  }

  private static void requireBounded(String text) throws Damaged {
    int bytes = 0;
    for (int i = 0; i < text.length(); i++) {
      char unit = text.charAt(i);
      if (Character.isSurrogate(unit)) {
        // JSON can express half of a pair, but it can be neither stored nor shown.
        i++;
        Damaged.unless(i < text.length() && Character.isSurrogatePair(unit, text.charAt(i)), "it holds half of a surrogate pair");
        bytes += 4;
      } else {
        bytes += unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3;
      }
    }
    if (bytes > STRING_BYTES_MAX) {
      throw new Damaged("it holds a string of " + bytes + " bytes, and " + STRING_BYTES_MAX + " is the limit");
    }
  }

  public static JsonNode field(JsonNode object, String name) throws Damaged {
    JsonNode field = object.get(name);
    if (field == null) {
      throw new Damaged("field " + name + " is missing");
    }
    return field;
  }

  public static long number(JsonNode object, String name, long least) throws Damaged {
    return number(field(object, name), name, least, Long.MAX_VALUE);
  }

  public static long number(JsonNode value, String name, long least, long most) throws Damaged {
    if (!value.isIntegralNumber() || !value.canConvertToLong() || value.longValue() < least || value.longValue() > most) {
      throw new Damaged("field " + name + " is " + brief(value) + ", not an integer from " + least + " to " + most);
    }
    return value.longValue();
  }

  public static String text(JsonNode object, String name) throws Damaged {
    return string(field(object, name), name);
  }

  public static String string(JsonNode value, String name) throws Damaged {
    if (!value.isTextual()) {
      throw new Damaged("field " + name + " is " + brief(value) + ", not a string");
    }
    return value.textValue();
  }

  public static boolean bool(JsonNode value, String name) throws Damaged {
    if (!value.isBoolean()) {
      throw new Damaged("field " + name + " is " + brief(value) + ", not true or false");
    }
    return value.booleanValue();
  }

  public static JsonNode array(JsonNode object, String name, int most) throws Damaged {
    JsonNode value = field(object, name);
    if (!value.isArray() || value.size() > most) {
      throw new Damaged("field " + name + " is not an array of at most " + most);
    }
    return value;
  }

  public static long[] numbers(JsonNode object, String name, int most) throws Damaged {
    JsonNode array = array(object, name, most);
    long[] numbers = new long[array.size()];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = number(array.get(i), name, 0, Long.MAX_VALUE);
    }
    return numbers;
  }

  public static String crc(CRC32C crc) {
    return HexFormat.of().toHexDigits((int) crc.getValue());
  }

  private static String brief(JsonNode value) {
    return Shown.value(value.toString());
  }

  /** An array of these numbers. */
  public static ArrayNode array(int[] numbers) {
    ArrayNode json = MAPPER.createArrayNode();
    Arrays.stream(numbers).forEach(json::add);
    return json;
  }

  /** The integers of a field, at most {@code most} of them, each from 0 to {@code greatest}. */
  public static int[] ints(JsonNode json, String name, int most, int greatest) throws Damaged {
    JsonNode array = array(json, name, most);
    int[] ints = new int[array.size()];
    for (int i = 0; i < ints.length; i++) {
      ints[i] = (int) number(array.get(i), name, 0, greatest);
    }
    return ints;
  }
}
