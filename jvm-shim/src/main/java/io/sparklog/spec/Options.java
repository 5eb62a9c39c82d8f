package io.sparklog.spec;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import java.util.stream.Collectors;

/**
 * The options of one read or write, checked against {@code spec/options.json}: each is known, of its type and in its range. Keys count
 * without regard to case, as Spark's do.
 */
public final class Options {
  /** Which options count. */
  public enum Side {
    READ(List.of("read")), WRITE(List.of("write", "topic"));

    private final List<String> scopes;

    Side(List<String> scopes) {
      this.scopes = scopes;
    }

    private String label() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  private static final JsonNode SPEC = Errors.load("options.json");

  /** So much of a long value is shown in an error. */
  private static final int SHOWN_CHARACTERS = 80;

  /** By key in lower case, aliases included. */
  private final Map<String, JsonNode> declared = new TreeMap<>();

  private final Map<String, String> values = new LinkedHashMap<>();

  /** Those of {@link #values} that a table was made with. */
  private final Set<String> ofTable = new HashSet<>();

  /** What is accepted and has no effect, as options.json has it. */
  private final Map<String, JsonNode> ignored = new TreeMap<>();

  private final Side side;

  private Options(Side side) {
    this.side = side;
  }

  /** As {@link #of(Map, Map, Side)}, of no table. */
  public static Options of(Map<String, String> given, Side side) {
    return of(given, Map.of(), side);
  }

  /**
   * The options of a read or a write.
   *
   * @param ofTable the options that a table was made with, which those {@code given} come before
   * @throws PartlogException OPTION_UNKNOWN, OPTION_VALUE, OPTION_CONFLICT
   */
  public static Options of(Map<String, String> given, Map<String, String> ofTable, Side side) {
    Options options = new Options(side);
    SPEC.get("options").forEach(options::declare);
    given.forEach(options::take);
    Set<String> here = new HashSet<>(options.values.keySet());
    ofTable.forEach((key, value) -> {
      if (!here.contains(options.canonicalKey(key)) && given.keySet().stream().noneMatch(key::equalsIgnoreCase)) {
        options.take(key, value);
      }
    });
    options.ofTable.addAll(options.values.keySet());
    options.ofTable.removeAll(here);
    options.checkTogether();
    return options;
  }

  private String canonicalKey(String key) {
    JsonNode option = declared.get(lower(key));
    return option == null ? key : option.get("key").textValue();
  }

  /**
   * What to tell of the options that were given and have no meaning here, with what to give instead.
   *
   * @param isNew whether to tell of a key; asked once for each
   */
  public Optional<String> warning(Predicate<String> isNew) {
    String told = ignored.entrySet()
        .stream()
        .filter(entry -> isNew.test(entry.getKey()))
        .map(entry -> "`" + entry.getKey() + "`" + instead(entry.getValue()))
        .collect(Collectors.joining(", "));
    return told.isEmpty() ? Optional.empty() : Optional.of("partlog has no broker, and ignores options for one: " + told);
  }

  private static String instead(JsonNode entry) {
    return entry.has("instead") ? " (give " + entry.get("instead").textValue() + " instead)" : "";
  }

  private void declare(JsonNode option) {
    if (side.scopes.stream().anyMatch(scope -> contains(option.get("scopes"), scope))) {
      declared.put(lower(option.get("key").textValue()), option);
      JsonNode aliases = option.get("aliases");
      if (aliases != null) {
        aliases.forEach(alias -> declared.put(lower(alias.textValue()), option));
      }
    }
  }

  private void take(String key, String value) {
    JsonNode option = declared.get(lower(key));
    if (option != null) {
      String name = option.get("key").textValue();
      String canonical = canonical(option, key, value);
      String before = values.put(name, canonical);
      if (before != null && !before.equals(canonical)) {
        throw PartlogException.of("OPTION_CONFLICT", "options", "`" + name + "` and `" + key + "`", "reason",
            "they are two names of one option");
      }
    } else if (listed("warned", key).isPresent()) {
      JsonNode entry = listed("warned", key).get();
      String pattern = entry.get("key").textValue();
      // Spark may have put the key into lower case.
      ignored.put(pattern.endsWith("*") ? key : pattern, entry);
    } else if (listed("silent", key).isEmpty() && !isOtherSide(key)) {
      throw PartlogException.of("OPTION_UNKNOWN", "option", key, "nearest", nearest(key));
    }
  }

  private static String canonical(JsonNode option, String key, String given) {
    String value = given == null ? "" : given.trim();
    return switch (option.get("type").textValue()) {
      case "boolean" -> choice(option, key, value, List.of("true", "false"));
      case "choice" -> choice(option, key, value, texts(option.get("values")));
      case "int", "long" -> number(option, key, value);
      case "regex" -> regex(key, given);
      case "json" -> json(option, key, value);
      case "names" -> {
        if (Arrays.stream(value.split(",")).map(String::trim).allMatch(String::isEmpty)) {
          throw bad(key, value, "it names nothing");
        }
        yield value;
      }
      default -> text(option, key, given);
    };
  }

  private static String text(JsonNode option, String key, String given) {
    JsonNode most = option.get("max");
    int bytes = given == null ? 0 : given.getBytes(StandardCharsets.UTF_8).length;
    if (most != null && bytes > most.intValue()) {
      throw bad(key, given.substring(0, SHOWN_CHARACTERS) + "…", "it has " + bytes + " bytes in UTF-8, and at most " + most + " fit");
    }
    return given;
  }

  private static String choice(JsonNode option, String key, String value, List<String> choices) {
    JsonNode synonym = option.path("synonyms").get(lower(value));
    String meant = synonym == null ? value : synonym.textValue();
    return choices.stream()
        .filter(choice -> choice.equalsIgnoreCase(meant))
        .findFirst()
        .orElseThrow(() -> bad(key, value, "it must be one of " + String.join(", ", choices)));
  }

  private static String number(JsonNode option, String key, String value) {
    long least = option.get("min").longValue();
    long most = option.get("max").longValue();
    try {
      long number = Long.parseLong(value);
      if (number >= least && number <= most) {
        return Long.toString(number);
      }
    } catch (NumberFormatException noNumber) {
      // told below
    }
    throw bad(key, value, "it must be an integer from " + least + " to " + most);
  }

  private static String regex(String key, String value) {
    try {
      return Pattern.compile(value).pattern();
    } catch (PatternSyntaxException e) {
      throw bad(key, value, "it is no regular expression: " + e.getDescription());
    }
  }

  /** What the JSON must say of topics and partitions is for those to check who know them. */
  private static String json(JsonNode option, String key, String value) {
    JsonNode words = option.get("words");
    if (words != null && contains(words, lower(value))) {
      return lower(value);
    }
    if (!value.startsWith("{")) {
      throw bad(key, value,
          "it must be " + (words == null ? "" : String.join(" or ", texts(words)) + ", or ") + "JSON that names topics and partitions");
    }
    return value;
  }

  /** OPTION_VALUE. */
  public static PartlogException bad(String key, String value, String reason) {
    return PartlogException.of("OPTION_VALUE", "option", key, "value", value, "reason", reason);
  }

  private void checkTogether() {
    for (JsonNode group : SPEC.get("exclusive")) {
      List<String> given = texts(group.get("keys")).stream().filter(values::containsKey).map(key -> "`" + key + "`").toList();
      if (group.get("scope").textValue().equals(side.label()) && given.size() > 1) {
        throw PartlogException.of("OPTION_CONFLICT", "options", String.join(" and ", given), "reason", group.get("reason").textValue());
      }
    }
    for (String key : values.keySet()) {
      JsonNode other = declared.get(lower(key)).get("requires");
      if (other != null && !values.containsKey(other.textValue())) {
        throw bad(key, values.get(key), "it has no meaning without `" + other.textValue() + "`");
      }
    }
  }

  /** The first entry of a list that a key fits; one that ends in * is a prefix. */
  private static Optional<JsonNode> listed(String list, String key) {
    for (JsonNode entry : SPEC.get(list)) {
      String pattern = lower(entry.get("key").textValue());
      if (pattern.endsWith("*") ? lower(key).startsWith(pattern.substring(0, pattern.length() - 1)) : lower(key).equals(pattern)) {
        return Optional.of(entry);
      }
    }
    return Optional.empty();
  }

  private static boolean isOtherSide(String key) {
    for (JsonNode option : SPEC.get("options")) {
      JsonNode aliases = option.get("aliases");
      if (lower(option.get("key").textValue()).equals(lower(key)) || aliases != null && contains(aliases, lower(key))) {
        return true;
      }
    }
    return false;
  }

  /** What may be meant by an unknown key. */
  private String nearest(String key) {
    String best = null;
    int least = Math.max(2, key.length() / 3) + 1;
    for (Map.Entry<String, JsonNode> option : declared.entrySet()) {
      JsonNode mistaken = option.getValue().get("mistaken");
      int distance = mistaken != null && contains(mistaken, lower(key)) ? 0 : distance(lower(key), option.getKey());
      if (distance < least) {
        String canonical = option.getValue().get("key").textValue();
        least = distance;
        best = distance == 0 || lower(canonical).equals(option.getKey()) ? canonical : option.getKey();
      }
    }
    return best == null ? "" : " Did you mean `" + best + "`?";
  }

  /** Levenshtein's: single letters put in, left out or changed. */
  private static int distance(String one, String other) {
    int[] row = new int[other.length() + 1];
    for (int j = 0; j < row.length; j++) {
      row[j] = j;
    }
    for (int i = 1; i <= one.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j < row.length; j++) {
        int changed = diagonal + (one.charAt(i - 1) == other.charAt(j - 1) ? 0 : 1);
        diagonal = row[j];
        row[j] = Math.min(changed, 1 + Math.min(row[j], row[j - 1]));
      }
    }
    return row[other.length()];
  }

  /** Whether the option was given, not merely has a default. */
  public boolean given(String key) {
    return values.containsKey(key);
  }

  /** Whether it is the table that has this option, and not the read or the write. */
  public boolean isOfTable(String key) {
    return ofTable.contains(key);
  }

  /** The value, or the default; null if there is neither. */
  public String text(String key) {
    String value = values.get(key);
    if (value != null) {
      return value;
    }
    JsonNode option = declared.get(lower(key));
    if (option == null) {
      throw new IllegalStateException("options.json declares no " + key + " here");
    }
    return option.get("default").isNull() ? null : option.get("default").asText();
  }

  /** As {@link #text}, of an option that has a value or a default. */
  public long number(String key) {
    return Long.parseLong(text(key));
  }

  /** As {@link #text}, of an option that has a value or a default. */
  public int integer(String key) {
    return Integer.parseInt(text(key));
  }

  /** As {@link #text}, of an option that has a value or a default. */
  public boolean truth(String key) {
    return Boolean.parseBoolean(text(key));
  }

  /** The names of a comma-separated option, in order, each once; none if it is not given. */
  public List<String> names(String key) {
    String value = text(key);
    return value == null
        ? List.of()
        : Arrays.stream(value.split(",")).map(String::trim).filter(name -> !name.isEmpty()).distinct().toList();
  }

  /** The configuration that these options give a topic they create: every topic option, with defaults. */
  public Map<String, String> topicConfig() {
    Map<String, String> config = new TreeMap<>();
    declared.values()
        .stream()
        .filter(Options::isOfTopic)
        .forEach(option -> config.put(option.get("key").textValue(), text(option.get("key").textValue())));
    return config;
  }

  /** The topic options that were given. */
  public Map<String, String> givenTopicConfig() {
    Map<String, String> config = topicConfig();
    config.keySet().retainAll(values.keySet());
    return config;
  }

  private static boolean isOfTopic(JsonNode option) {
    return contains(option.get("scopes"), "topic");
  }

  private static boolean contains(JsonNode array, String text) {
    return texts(array).stream().anyMatch(each -> lower(each).equals(text));
  }

  private static List<String> texts(JsonNode array) {
    List<String> texts = new ArrayList<>();
    array.forEach(each -> texts.add(each.textValue()));
    return texts;
  }

  private static String lower(String text) {
    return text.toLowerCase(Locale.ROOT);
  }
}
