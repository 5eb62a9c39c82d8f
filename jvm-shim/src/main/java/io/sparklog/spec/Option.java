package io.sparklog.spec;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/** One option as {@code spec/options.json} declares it, or a setting of {@code spec/server.json}: its names, its type and its range. */
public final class Option {
  static final JsonNode SPEC = Errors.load("options.json");

  static final List<Option> ALL = all();

  private static final Pattern DURATION = Pattern.compile("([0-9]+)\\s*(us|ms|s|m|min|h|d)");

  private static final Map<String, Duration> UNITS = Map.of("us", Duration.ofNanos(1000), "ms", Duration.ofMillis(1), "s",
      Duration.ofSeconds(1), "m", Duration.ofMinutes(1), "min", Duration.ofMinutes(1), "h", Duration.ofHours(1), "d", Duration.ofDays(1));

  private final JsonNode declaration;

  Option(JsonNode declaration) {
    this.declaration = declaration;
  }

  private static List<Option> all() {
    List<Option> options = new ArrayList<>();
    SPEC.get("options").forEach(declaration -> options.add(new Option(declaration)));
    return List.copyOf(options);
  }

  /** The option that sets {@code key} in a topic's configuration. */
  public static Option ofTopic(String key) {
    return ALL.stream()
        .filter(option -> option.key().equals(key) && option.isIn("topic"))
        .findFirst()
        .orElseThrow(() -> new IllegalStateException("options.json does not declare " + key + " for topics"));
  }

  String key() {
    return declaration.get("key").textValue();
  }

  /** The key and its aliases, in lower case. */
  List<String> names() {
    List<String> names = new ArrayList<>(List.of(lower(key())));
    texts(declaration.path("aliases")).forEach(alias -> names.add(lower(alias)));
    return names;
  }

  /** Whether it is an option of reads, of writes, or of topics that a write creates. */
  boolean isIn(String scope) {
    return texts(declaration.get("scopes")).contains(scope);
  }

  /** Whether users of other systems may write {@code key} and mean this option. */
  boolean isMistakenFor(String key) {
    return texts(declaration.path("mistaken")).stream().anyMatch(key::equalsIgnoreCase);
  }

  /** The option without which this one has no meaning. */
  Optional<String> requires() {
    return Optional.ofNullable(declaration.path("requires").textValue());
  }

  /** Whether a topic need not have it in its configuration. */
  public boolean isOptional() {
    return declaration.path("optional").booleanValue();
  }

  /** The default, or null. */
  public String defaultValue() {
    return declaration.get("default").isNull() ? null : declaration.get("default").asText();
  }

  /** The option as it is in a stream. */
  Option ofStream() {
    return declaration.has("stream")
        ? new Option(((ObjectNode) declaration).deepCopy().setAll((ObjectNode) declaration.get("stream")))
        : this;
  }

  /** The option as a read takes it that may be a batch or a stream. */
  Option ofAnyRead() {
    return declaration.has("stream")
        ? new Option(((ObjectNode) declaration).deepCopy()
            .<ObjectNode>set("words", declaration.get("stream").get("words"))
            .set("batchWords", declaration.get("words")))
        : this;
  }

  /**
   * The value as it is used: trimmed, numbers without a sign or leading zeros, words as options.json spells them.
   *
   * @param name that the user gave the option, for errors
   * @throws PartlogException OPTION_VALUE
   */
  String canonical(String name, String given) {
    String value = given == null ? "" : given.trim();
    return switch (declaration.get("type").textValue()) {
      case "boolean", "choice", "int", "long", "pattern", "time" ->
        canonical(value).orElseThrow(() -> invalidValue(name, value, "it must be " + expected()));
      case "regex" -> regex(name, given);
      case "duration" -> {
        milliseconds(name, value);
        yield value;
      }
      case "json" -> json(name, value);
      case "names" -> {
        if (Arrays.stream(value.split(",")).map(String::trim).allMatch(String::isEmpty)) {
          throw invalidValue(name, value, "it must have one name or more, separated by commas");
        }
        yield value;
      }
      default -> text(name, given);
    };
  }

  /** Whether {@code value} is a number, a word or a text that is allowed, and already in the one form that a version file may hold. */
  public boolean isCanonical(String value) {
    return canonical(value).filter(value::equals).isPresent();
  }

  /** {@code "an integer from 1 to 10000"} or {@code "one of CreateTime, LogAppendTime"}. */
  public String expected() {
    if (isTime()) {
      return TimeText.EXPECTED + "; not before 1970";
    }
    if (isPattern()) {
      return declaration.get("expected").textValue();
    }
    return isNumber() ? "an integer from " + least() + " to " + most() + unit() : "one of " + String.join(", ", words());
  }

  private String unit() {
    return declaration.has("unit") ? ", in " + declaration.get("unit").textValue() : "";
  }

  private Optional<String> canonical(String value) {
    return isPattern() ? Optional.of(value).filter(this::matches) : isNumber() ? number(value) : word(value);
  }

  private Optional<String> number(String value) {
    try {
      long number = isTime() ? TimeText.millis(value).orElseThrow(NumberFormatException::new) : Long.parseLong(value);
      return number < least() || number > most() ? Optional.empty() : Optional.of(Long.toString(number));
    } catch (NumberFormatException e) {
      return Optional.empty();
    }
  }

  private Optional<String> word(String value) {
    JsonNode synonym = declaration.path("synonyms").get(lower(value));
    String meant = synonym == null ? value : synonym.textValue();
    return words().stream().filter(meant::equalsIgnoreCase).findFirst();
  }

  private boolean isPattern() {
    return declaration.has("pattern");
  }

  private boolean matches(String value) {
    String pattern = declaration.get("pattern").textValue();
    // A possessive quantifier takes no stack for each number of a long value. Python has none before 3.11.
    return value.length() <= declaration.get("max").intValue() && value.matches(pattern.endsWith(")*") ? pattern + "+" : pattern);
  }

  private boolean isTime() {
    return declaration.get("type").textValue().equals("time");
  }

  private boolean isNumber() {
    return declaration.has("min");
  }

  private long least() {
    return declaration.get("min").longValue();
  }

  private long most() {
    return declaration.get("max").longValue();
  }

  /** The words that a choice or a boolean may be. */
  public List<String> words() {
    return declaration.has("values") ? texts(declaration.get("values")) : List.of("true", "false");
  }

  private String text(String name, String given) {
    JsonNode most = declaration.get("max");
    int bytes = given == null ? 0 : given.getBytes(StandardCharsets.UTF_8).length;
    if (most != null && bytes > most.intValue()) {
      throw invalidValue(name, Shown.value(given), "it must have at most " + most + " bytes in UTF-8, and has " + bytes);
    }
    return given;
  }

  private static String regex(String name, String value) {
    try {
      return Pattern.compile(value).pattern();
    } catch (PatternSyntaxException e) {
      throw invalidValue(name, value, "it must be a regular expression of Java, and is not: " + e.getDescription());
    }
  }

  /** The milliseconds of a duration in Spark's form. @throws PartlogException OPTION_VALUE */
  static long milliseconds(String name, String value) {
    if (value.equals("0")) {
      return 0; // in every unit
    }
    Matcher duration = DURATION.matcher(lower(value));
    if (!duration.matches()) {
      throw invalidValue(name, value, "it must be a number with a unit, such as 30s, 15m or 2h");
    }
    Duration unit = UNITS.get(duration.group(2));
    try {
      return unit.multipliedBy(Long.parseLong(duration.group(1))).toMillis();
    } catch (ArithmeticException | NumberFormatException e) {
      throw invalidValue(name, value, "it must be a time whose milliseconds 64 bits hold, such as 15m");
    }
  }

  /** Checks the outer form only; the reader of the option validates topics and partitions. */
  private String json(String name, String value) {
    List<String> words = texts(declaration.path("words"));
    if (words.contains(lower(value))) {
      return lower(value);
    }
    if (!value.startsWith("{")) {
      List<String> ofBatch = declaration.has("batchWords") ? texts(declaration.get("batchWords")) : words;
      List<String> ofStream = words.stream().filter(word -> !ofBatch.contains(word)).toList();
      throw invalidValue(name, value, "it must be " + (ofBatch.isEmpty() ? "" : String.join(" or ", ofBatch) + ", or ")
          + "JSON that names topics and partitions" + (ofStream.isEmpty() ? "" : "; in a stream it may also be " + ofStream.get(0)));
    }
    return value;
  }

  /** OPTION_VALUE. */
  public static PartlogException invalidValue(String key, String value, String reason) {
    return PartlogException.of("OPTION_VALUE", "option", key, "value", value, "reason", reason);
  }

  static List<String> texts(JsonNode array) {
    List<String> texts = new ArrayList<>();
    array.forEach(each -> texts.add(each.textValue()));
    return texts;
  }

  static String lower(String text) {
    return text.toLowerCase(Locale.ROOT);
  }
}
