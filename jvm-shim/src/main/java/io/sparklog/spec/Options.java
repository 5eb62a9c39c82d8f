package io.sparklog.spec;

import com.fasterxml.jackson.databind.JsonNode;
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
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The options of one read or write, checked against {@code spec/options.json}: each is known, of its type and in its range. Keys count
 * without regard to case, as Spark's do.
 */
public final class Options {
  /**
   * Whether it is a read, a write, or the configuration of a topic: each has its own options. Spark does not say at first whether a read is
   * a batch or a stream.
   */
  public enum Side {
    READ(List.of("read", "batch", "stream")), BATCH(List.of("read", "batch")), STREAM(List.of("read", "stream")),
    WRITE(List.of("write", "topic")), TOPIC(List.of("topic"));

    private final List<String> scopes;

    Side(List<String> scopes) {
      this.scopes = scopes;
    }

    private String label() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** How many requests a process makes to the place of a root at once: an option of reads and writes, and a setting of a catalog. */
  public static final String MAX_REQUESTS = "maxRequests";

  private static final JsonNode SPEC = Option.SPEC;

  /** By key in lower case, aliases included. */
  private final Map<String, Option> declared = new TreeMap<>();

  private final Map<String, String> values = new LinkedHashMap<>();

  /** Those of {@link #values} that a table was made with. */
  private final Set<String> ofTable = new HashSet<>();

  /** Options that are accepted and have no effect, with their entries in options.json. */
  private final Map<String, JsonNode> ignored = new TreeMap<>();

  private final Side side;

  private Options(Side side) {
    this.side = side;
  }

  /** As {@link #of(Map, Map, Side)}, without a table. */
  public static Options of(Map<String, String> given, Side side) {
    return of(given, Map.of(), side);
  }

  /**
   * The options of a read or a write.
   *
   * @param ofTable the options that a table was made with; an option that is also {@code given} is not used
   * @throws PartlogException OPTION_UNKNOWN, OPTION_VALUE, OPTION_CONFLICT
   */
  public static Options of(Map<String, String> given, Map<String, String> ofTable, Side side) {
    Options options = new Options(side);
    Option.ALL.forEach(options::declare);
    given.forEach(options::take);
    Set<String> ofCall = new HashSet<>(options.values.keySet());
    ofTable.forEach((key, value) -> {
      if (!ofCall.contains(options.canonicalKey(key)) && given.keySet().stream().noneMatch(key::equalsIgnoreCase)) {
        options.take(key, value);
      }
    });
    options.ofTable.addAll(options.values.keySet());
    options.ofTable.removeAll(ofCall);
    options.checkTogether();
    return options;
  }

  /**
   * These options of a read, now that it is known to be of a batch. Those that only a stream has are left out.
   *
   * @throws PartlogException OPTION_VALUE for words that only a stream takes
   */
  public Options ofBatch() {
    return of(values.entrySet().stream().filter(option -> !isOnlyOf("stream", option.getKey())), Side.BATCH);
  }

  /** The given options that only a stream has. */
  public List<String> givenOfStream() {
    return values.keySet().stream().filter(key -> isOnlyOf("stream", key)).toList();
  }

  /**
   * These options of a read, now that it is known to be a stream.
   *
   * @throws PartlogException OPTION_VALUE for options that only a batch has
   */
  public Options ofStream() {
    values.keySet().stream().filter(key -> isOnlyOf("batch", key)).findFirst().ifPresent(key -> {
      throw Option.invalidValue(key, values.get(key), "a stream has no end; leave it out, or read in a batch");
    });
    return of(values.entrySet().stream(), Side.STREAM);
  }

  private static Options of(Stream<Map.Entry<String, String>> canonical, Side side) {
    return of(canonical.collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue)), side);
  }

  /**
   * Changes of a topic's configuration, in the one form that a version file may hold.
   *
   * @throws PartlogException OPTION_UNKNOWN, OPTION_VALUE
   */
  public static Map<String, String> ofTopic(Map<String, String> changes) {
    return of(changes, Side.TOPIC).givenTopicConfig();
  }

  /**
   * The change that takes a key of a topic's configuration back to its default.
   *
   * @throws PartlogException OPTION_UNKNOWN
   */
  public static Map<String, String> defaultOfTopic(String key) {
    Options none = of(Map.of(), Side.TOPIC);
    Option option = none.declared.get(Option.lower(key));
    if (option == null) {
      throw PartlogException.of("OPTION_UNKNOWN", "option", key, "nearest", none.nearest(key));
    }
    return Map.of(option.key(), option.defaultValue());
  }

  private boolean isOnlyOf(String scope, String key) {
    return declared.get(Option.lower(key)).isIn(scope);
  }

  private String canonicalKey(String key) {
    Option option = declared.get(Option.lower(key));
    return option == null ? key : option.key();
  }

  /**
   * A warning that names the given options without effect, and the options to give instead; empty without such options.
   *
   * @param isNew whether to name a key; called once for each
   */
  public Optional<String> warning(Predicate<String> isNew) {
    String names = ignored.entrySet()
        .stream()
        .filter(entry -> isNew.test(entry.getKey()))
        .map(entry -> "`" + entry.getKey() + "`" + instead(entry.getValue()))
        .collect(Collectors.joining(", "));
    return names.isEmpty() ? Optional.empty() : Optional.of("partlog has no broker, and ignores options for one: " + names);
  }

  private static String instead(JsonNode entry) {
    return entry.has("instead") ? " (give " + entry.get("instead").textValue() + " instead)" : "";
  }

  private void declare(Option option) {
    if (side.scopes.stream().anyMatch(option::isIn)) {
      Option ofSide = side == Side.STREAM ? option.ofStream() : side == Side.READ ? option.ofAnyRead() : option;
      option.names().forEach(name -> declared.put(name, ofSide));
    }
  }

  private void take(String key, String value) {
    Option option = declared.get(Option.lower(key));
    if (option != null) {
      String canonical = option.canonical(key, value);
      String before = values.put(option.key(), canonical);
      if (before != null && !before.equals(canonical)) {
        throw PartlogException.of("OPTION_CONFLICT", "options", "`" + option.key() + "` and `" + key + "`", "reason",
            "they are two names of one option");
      }
    } else if (side != Side.TOPIC && !isOtherSide(key) && listed("warned", key).isPresent()) {
      JsonNode entry = listed("warned", key).get();
      String pattern = entry.get("key").textValue();
      // Spark may have put the key into lower case.
      ignored.put(pattern.endsWith("*") ? key : pattern, entry);
    } else if (side == Side.TOPIC || listed("silent", key).isEmpty() && !isOtherSide(key)) {
      throw PartlogException.of("OPTION_UNKNOWN", "option", key, "nearest", nearest(key));
    }
  }

  private void checkTogether() {
    for (JsonNode group : SPEC.get("exclusive")) {
      List<String> given = Option.texts(group.get("keys")).stream().filter(values::containsKey).map(key -> "`" + key + "`").toList();
      if (group.get("scope").textValue().equals(side.label()) && given.size() > 1) {
        throw PartlogException.of("OPTION_CONFLICT", "options", String.join(" and ", given), "reason", group.get("reason").textValue());
      }
    }
    for (String key : values.keySet()) {
      Optional<String> other = declared.get(Option.lower(key)).requires();
      if (other.isPresent() && !values.containsKey(other.get())) {
        throw Option.invalidValue(key, values.get(key), "it has no meaning without `" + other.get() + "`; give both or none");
      }
    }
  }

  /** The first entry of a list that matches a key; an entry that ends in * is a prefix. */
  private static Optional<JsonNode> listed(String list, String key) {
    for (JsonNode entry : SPEC.get(list)) {
      String pattern = Option.lower(entry.get("key").textValue());
      if (pattern.endsWith("*")
          ? Option.lower(key).startsWith(pattern.substring(0, pattern.length() - 1))
          : Option.lower(key).equals(pattern)) {
        return Optional.of(entry);
      }
    }
    return Optional.empty();
  }

  /** Whether it is an option that a read takes and a write does not. */
  public static boolean isOnlyOfReads(String key) {
    List<Option> named = Option.ALL.stream().filter(option -> option.names().contains(Option.lower(key))).toList();
    return !named.isEmpty() && named.stream().noneMatch(option -> Side.WRITE.scopes.stream().anyMatch(option::isIn));
  }

  private static boolean isOtherSide(String key) {
    return Option.ALL.stream().anyMatch(option -> option.names().contains(Option.lower(key)));
  }

  /** A hint at the option that may be meant by an unknown key, or why no option is like it. */
  private String nearest(String key) {
    Optional<JsonNode> absent = listed("absent", key);
    if (absent.isPresent()) {
      return " " + absent.get().get("text").textValue();
    }
    Optional<Option> mistaken = declared.values().stream().filter(option -> option.isMistakenFor(key)).findFirst();
    if (mistaken.isPresent()) {
      return meant(mistaken.get().key());
    }
    return nearest(key, declared.entrySet().stream().map(option -> {
      String canonical = option.getValue().key();
      return Option.lower(canonical).equals(option.getKey()) ? canonical : option.getKey();
    }).toList());
  }

  /** A hint at the name that may be meant by an unknown name; empty if no name is like it. */
  public static String nearest(String key, Iterable<String> names) {
    String best = null;
    int least = Math.max(2, key.length() / 3) + 1;
    for (String name : names) {
      int distance = distance(Option.lower(key), Option.lower(name));
      if (distance < least) {
        least = distance;
        best = name;
      }
    }
    return best == null ? "" : meant(best);
  }

  private static String meant(String name) {
    return " Did you mean `" + name + "`?";
  }

  /** Levenshtein's distance: how many letters to insert, remove or change. */
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

  /** Whether this option comes from the table, and not from the read or the write. */
  public boolean isOfTable(String key) {
    return ofTable.contains(key);
  }

  /** The value, or the default; null if there is neither. */
  public String text(String key) {
    String value = values.get(key);
    if (value != null) {
      return value;
    }
    Option option = declared.get(Option.lower(key));
    if (option == null) {
      throw new IllegalStateException("options.json does not declare " + key + " here");
    }
    return option.defaultValue();
  }

  /** As {@link #text}, of an option that has a value or a default. */
  public long number(String key) {
    return Long.parseLong(text(key));
  }

  /** A duration in milliseconds. */
  public long milliseconds(String key) {
    return Option.milliseconds(key, text(key));
  }

  /** As {@link #text}, of an option that has a value or a default. */
  public int integer(String key) {
    return Integer.parseInt(text(key));
  }

  /** As {@link #text}, of an option that has a value or a default. */
  public boolean bool(String key) {
    return Boolean.parseBoolean(text(key));
  }

  /** The names of a comma-separated option, in order, each once; none if it is not given. */
  public List<String> names(String key) {
    String value = text(key);
    return value == null
        ? List.of()
        : Arrays.stream(value.split(",")).map(String::trim).filter(name -> !name.isEmpty()).distinct().toList();
  }

  /** The configuration that these options give a topic they create: every topic option, with defaults, but only given optional ones. */
  public Map<String, String> topicConfig() {
    Map<String, String> config = new TreeMap<>();
    declared.values()
        .stream()
        .filter(option -> option.isIn("topic") && (!option.isOptional() || given(option.key())))
        .forEach(option -> config.put(option.key(), text(option.key())));
    return config;
  }

  /** The topic options that were given. */
  public Map<String, String> givenTopicConfig() {
    Map<String, String> config = topicConfig();
    config.keySet().retainAll(values.keySet());
    return config;
  }
}
