package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Shown;
import java.util.Collection;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The features of a topic at one version. A record reader goes on with features that it does not know, unless they bind it, too.
 *
 * @param entries by name, as they came: also of features that this version of sparklog does not know, and with fields that it does not know
 * @param location of the file that named the features, for messages; null for features that this process chose
 */
public record Features(SortedMap<String, JsonNode> entries, String location) {
  public static final Features NONE = new Features(new TreeMap<>(), null);

  /** The format number of version files and checkpoints. */
  static final int FORMAT = 1;

  private static final Pattern NAME = Pattern.compile("[a-z0-9.-]{1,64}");

  /**
   * The features that a version file or the head of a checkpoint names.
   *
   * @param location of the file
   * @throws PartlogException FORMAT_TOO_NEW if the format number is higher, or an unknown feature binds record readers
   */
  static Features parse(JsonNode json, String location) throws Damaged {
    requireFormat(json, location);
    SortedMap<String, JsonNode> entries = new TreeMap<>();
    for (JsonNode entry : Json.array(json, "features", Integer.MAX_VALUE)) {
      String name = Json.text(entry, "name");
      Damaged.unless(NAME.matcher(name).matches(), "the name of a feature is not 1 to 64 characters of a-z, 0-9, . and -");
      Json.text(entry, "binds");
      Damaged.unless(entries.put(name, entry) == null, "field features has " + name + " twice");
    }
    Features features = new Features(entries, location);
    features.requireKnownTo(Feature.Binds.RECORD_READERS);
    for (Feature feature : Feature.values()) {
      if (features.has(feature)) {
        String word = feature.binds().word();
        Damaged.unless(word(entries.get(feature.text())).equals(word), "the feature " + feature.text() + " binds others than " + word);
        Damaged.unless(feature.requires().stream().allMatch(features::has),
            "it has the feature " + feature.text() + ", and lacks a feature that " + feature.text() + " requires");
      }
    }
    return features;
  }

  /** Refuses a higher format number. @throws PartlogException FORMAT_TOO_NEW */
  static void requireFormat(JsonNode json, String location) throws Damaged {
    long format = Json.number(json, "format", 1);
    if (format > FORMAT) {
      throw PartlogException.of("FORMAT_TOO_NEW", "file", location, "reason",
          "its format is " + format + ", and this version of sparklog reads up to " + FORMAT);
    }
  }

  /** Puts the format number and the features. */
  void put(ObjectNode json) {
    json.put("format", FORMAT).putArray("features").addAll(entries.values());
  }

  boolean has(Feature feature) {
    return entries.containsKey(feature.text());
  }

  /** The word of each feature that says whom it binds, by name. */
  Map<String, String> words() {
    return entries.entrySet()
        .stream()
        .collect(Collectors.toMap(Map.Entry::getKey, entry -> word(entry.getValue()), (a, b) -> a, TreeMap::new));
  }

  private static String word(JsonNode entry) {
    return entry.get("binds").textValue();
  }

  /** Whether keys have slots, and all features that decide where keys go are known. */
  boolean haveSlots() {
    return has(Feature.SLOTS) && areKnownTo(Feature.Binds.KEY_READERS);
  }

  /** These features and others. */
  Features and(Collection<Feature> added) {
    SortedMap<String, JsonNode> all = new TreeMap<>(entries);
    added.forEach(feature -> all.computeIfAbsent(feature.text(),
        name -> Json.MAPPER.createObjectNode().put("name", name).put("binds", feature.binds().word())));
    return new Features(all, location);
  }

  /** Whether this version of sparklog knows all features that bind these programs. */
  boolean areKnownTo(Feature.Binds programs) {
    return unknownTo(programs).isEmpty();
  }

  /** Refuses the topic to programs that an unknown feature binds. @throws PartlogException FORMAT_TOO_NEW */
  void requireKnownTo(Feature.Binds programs) {
    String names = unknownTo(programs);
    if (!names.isEmpty()) {
      throw PartlogException.of("FORMAT_TOO_NEW", "file", location, "reason", "it needs the features " + Shown.value(names));
    }
  }

  /** The names of the unknown features that bind these programs, with commas in between. */
  private String unknownTo(Feature.Binds programs) {
    return words().entrySet()
        .stream()
        .filter(entry -> Feature.of(entry.getKey()).isEmpty() && Feature.Binds.of(entry.getValue()).includes(programs))
        .map(Map.Entry::getKey)
        .collect(Collectors.joining(", "));
  }
}
