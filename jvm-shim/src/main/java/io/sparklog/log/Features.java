package io.sparklog.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.sparklog.json.Damaged;
import io.sparklog.json.Json;
import io.sparklog.spec.PartlogException;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.stream.Stream;

/**
 * The features of a topic at one version. A record reader goes on with features that it does not know, unless they bind it, too.
 *
 * @param names also of features that this version of sparklog does not know
 * @param location of the file that named the features, for messages; null for features that this process chose
 */
public record Features(SortedSet<String> names, String location) {
  public static final Features NONE = new Features(new TreeSet<>(), null);

  /** The format number of version files and checkpoints. */
  static final int FORMAT = 1;

  /** Characters of the names of unknown features that an error shows: a hostile file may have very many. */
  private static final int NAMES_SHOWN = 200;

  /**
   * The features that a version file or the head of a checkpoint names.
   *
   * @param location of the file
   * @throws PartlogException FORMAT_TOO_NEW if the format number is higher, or an unknown feature binds record readers
   */
  static Features parse(JsonNode json, String location) throws Damaged {
    requireFormat(json, location);
    SortedSet<String> readers = names(json, "readerFeatures");
    requireNone(readers.stream().filter(name -> Feature.of(name).isEmpty()), location);
    SortedSet<String> names = names(json, "writerFeatures");
    Damaged.unless(names.containsAll(readers), "field writerFeatures lacks a feature of readerFeatures");
    Features features = new Features(names, location);
    for (Feature feature : Feature.values()) {
      Damaged.unless(!features.has(feature) || feature.requires().stream().allMatch(features::has),
          "it has the feature " + feature.text() + ", and lacks a feature that " + feature.text() + " requires");
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

  private static SortedSet<String> names(JsonNode json, String field) throws Damaged {
    SortedSet<String> names = new TreeSet<>();
    for (JsonNode name : Json.array(json, field, Integer.MAX_VALUE)) {
      names.add(Json.string(name, field));
    }
    return names;
  }

  /** Puts the format number and the features. */
  void put(ObjectNode json) {
    json.put("format", FORMAT);
    ArrayNode readers = json.putArray("readerFeatures");
    Arrays.stream(Feature.values())
        .filter(feature -> has(feature) && feature.binds(Feature.Binds.RECORD_READERS))
        .forEach(feature -> readers.add(feature.text()));
    ArrayNode all = json.putArray("writerFeatures");
    names.forEach(all::add);
  }

  boolean has(Feature feature) {
    return names.contains(feature.text());
  }

  /** Whether keys have slots, and all features that decide where keys go are known. */
  boolean haveSlots() {
    return has(Feature.SLOTS) && areKnownTo(Feature.Binds.KEY_READERS);
  }

  /** These features and others. */
  Features and(Collection<Feature> added) {
    SortedSet<String> all = new TreeSet<>(names);
    added.forEach(feature -> all.add(feature.text()));
    return new Features(all, location);
  }

  /** Whether this version of sparklog knows all features that bind these programs. */
  boolean areKnownTo(Feature.Binds programs) {
    return unknownTo(programs).findAny().isEmpty();
  }

  /** Refuses the topic to programs that an unknown feature binds. @throws PartlogException FORMAT_TOO_NEW */
  void requireKnownTo(Feature.Binds programs) {
    requireNone(unknownTo(programs), location);
  }

  private Stream<String> unknownTo(Feature.Binds programs) {
    return names.stream().filter(name -> Feature.of(name).isEmpty() && Feature.unknownBinds(name, programs));
  }

  private static void requireNone(Stream<String> unknown, String location) {
    String names = String.join(", ", unknown.toList());
    if (!names.isEmpty()) {
      throw PartlogException.of("FORMAT_TOO_NEW", "file", location, "reason",
          "it needs the features " + (names.length() > NAMES_SHOWN ? names.substring(0, NAMES_SHOWN) + "…" : names));
    }
  }
}
