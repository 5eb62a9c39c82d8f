package io.sparklog.catalog;

import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.spark.SessionSettings;
import io.sparklog.log.ReadableTopics;
import io.sparklog.spec.PartlogException;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The thing that a name of a catalog is about.
 *
 * @param path of the root
 * @param settings of the root's file system that the catalog has, beside the settings of the session
 * @param topic null if it is about all topics of the root
 * @param about which table about the topic; null for the topic itself
 */
record CatalogTarget(String path, Map<String, String> settings, String topic, String about) {
  Root root() {
    return Root.of(path, () -> SessionSettings.with(settings));
  }

  /** The refusal of CREATE TABLE and of a save in the default mode. Spark would say that a table exists, and advise to drop it. */
  PartlogException isThere() {
    return topic != null
        ? root().topic(topic).exists()
        : PartlogException.of("TOPIC_REQUIRED", "reason",
            "the default mode of a save creates one topic, which the option `topic` names, where the root " + root().location()
                + " has topics already",
            "way", "Write .mode(\"append\"), which also takes a STRING column `topic`; or set option(\"topic\", …) to create one");
  }

  /** Without the values of the settings, which may be secrets. */
  @Override
  public String toString() {
    return path + (topic == null ? "" : ", topic " + topic) + (about == null ? "" : ", " + about);
  }

  /** Whether it is a topic, and not a root or a table about a topic. */
  boolean isTopic() {
    return topic != null && about == null;
  }

  /** Whether the topic exists, or the root has topics. */
  boolean exists() {
    return topic == null ? !root().topics().isEmpty() : state().isPresent();
  }

  /** The options of a read or write of it: the options that say where it is, and {@code more} over them. */
  CaseInsensitiveStringMap options(Map<String, String> more) {
    Map<String, String> options = new HashMap<>(settings);
    options.put("path", path);
    if (topic != null) {
      options.put("topic", topic);
    }
    options.putAll(more);
    return new CaseInsensitiveStringMap(options);
  }

  /** The newest state of the topic; empty without a state. Its cost does not depend on the other topics of the root. */
  Optional<State> state() {
    try {
      ReadableTopics.requireLegal(topic);
    } catch (PartlogException illegal) {
      return Optional.empty();
    }
    return root().newest(topic);
  }
}
